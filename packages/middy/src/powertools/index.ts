import type { LeaseEventListener } from "@leasehold/client";
import { checkOptions, type Rules, withMethods } from "@leasehold/client/internal";
import { type Logger, logListener } from "@leasehold/client/log";
import type { MetricsCollector } from "../invocation-metrics.ts";
import type { LeaseLockOptions } from "../options.ts";
import { type SegmentTracer, segmentListener } from "./segments.ts";

export type { MetricsCollector } from "../invocation-metrics.ts";
export type { SegmentTracer, TraceSegment } from "./segments.ts";

/** The instances of Powertools that your function has already. */
export interface PowertoolsInstances {
  /** Your Logger: each event is an entry, at the level of `logListener`. @default - events are not logged */
  readonly logger?: Logger;
  /**
   * Your Metrics: the metrics go into its own line, with its namespace and dimensions. The alarms of `@leasehold/cdk`,
   * which read the namespace `Leasehold`, do not see them. @default - the lock writes a line of its own
   */
  readonly metrics?: MetricsCollector;
  /**
   * Your Tracer: each lease is a subsegment `leasehold.hold`, and the subsegments of the handler are its children.
   * @default - no segments
   */
  readonly tracer?: SegmentTracer;
}

const instanceRules: Rules<PowertoolsInstances> = {
  logger: withMethods<Logger>("debug", "info", "warn", "error"),
  metrics: withMethods<MetricsCollector>("addMetric"),
  tracer: withMethods<SegmentTracer>("isTracingEnabled", "getSegment", "setSegment"),
};

/**
 * Returns the options with which a lock reports to your own Logger, Metrics and Tracer of Powertools.
 *
 * Let Powertools' own middleware or decorator be around the lock: it publishes the metrics, and opens the segment whose
 * child the lease's is. A `client` of your own takes the listeners as its own `onEvent`.
 *
 * Throws InvalidOptionsError. Sends no requests.
 *
 * ```ts
 * export const handler = middy()
 *   .use(injectLambdaContext(logger))
 *   .use(logMetrics(metrics))
 *   .use(captureLambdaHandler(tracer))
 *   .use(leaseLock({ tableName: "leases", key: "import", ...powertools({ logger, metrics, tracer }) }))
 *   .handler(async (_event, context) => importAll({ signal: context.lock.signal }));
 * ```
 */
export function powertools(
  instances: PowertoolsInstances,
): Pick<LeaseLockOptions, "metrics"> & { readonly onEvent: readonly LeaseEventListener[] } {
  const { logger, metrics, tracer } = checkOptions(instances, instanceRules);
  const onEvent = [
    ...(logger ? [logListener({ logger })] : []),
    ...(tracer ? [segmentListener(tracer)] : []),
  ];
  return { onEvent, ...(metrics && { metrics }) };
}
