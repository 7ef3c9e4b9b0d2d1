/**
 * The measured values, their names, and how a Lambda function reports them: a log line in CloudWatch's embedded metric
 * format, which costs no request. The alarms and the dashboard use these same names.
 */
import type { LeaseEvent, LeaseEventListener } from "../base/events.ts";

/** The CloudWatch namespace of all metrics. */
export const metricsNamespace = "Leasehold";

/** Names of the metrics. Counts unless the comment says otherwise. */
export const metricNames = {
  acquired: "LeaseAcquired",
  contended: "LeaseContended",
  takenOver: "LeaseTakenOver",
  renewed: "LeaseRenewed",
  lost: "LeaseLost",
  released: "LeaseReleased",
  /** A lease that was neither released nor taken over before ttl removed it: its holder died. */
  expired: "LeaseExpired",
  /** Milliseconds from the call to the grant. */
  waitTime: "WaitTime",
  /** Milliseconds from the grant to the release or the loss. */
  holdTime: "HoldTime",
  /** The least difference between this machine's clock and the service's, in milliseconds, if it is too large. */
  clockSkew: "ClockSkew",
  /** A slot's work was done and could not be recorded, so it will run again. */
  completionFailed: "CompletionFailed",
  jobSucceeded: "JobSucceeded",
  jobFailed: "JobFailed",
  jobSkipped: "JobSkipped",
  /** A run that was skipped because an operator has paused the lock: no alarm counts it as stuck. */
  jobPaused: "JobPaused",
} as const;

/** The name of a metric. */
export type MetricName = (typeof metricNames)[keyof typeof metricNames];

/**
 * Dimensions of the metrics. Each value appears by table, again by table and job if there is a job, and again by table
 * and key if the caller asked for that.
 */
export const dimensionNames = { table: "Table", job: "Job", key: "Key" } as const;

/** The subject of a measurement. */
export interface MetricSubject {
  readonly tableName: string;
  /** @default - only the table's metrics are written */
  readonly job?: string | undefined;
  /** The lock's key, or the group that it belongs to. @default - no metric names its lock */
  readonly key?: string | undefined;
}

/** Returns the value of the dimension `Key` for a lock: a group of keys, or undefined for none. */
export type KeyDimension = (key: string) => string | undefined;

/** Options of {@link metricsListener}. */
export interface MetricsListenerOptions extends Omit<MetricSubject, "key"> {
  /**
   * Also measures each lock by itself, with the dimension `Key`. CloudWatch bills each value of it as up to 9 further
   * metrics. So give a function that groups the keys, such as `(key) => key.split("/")[0]`; `true` is for tables with
   * few keys. Characters that CloudWatch refuses are percent-encoded, and long keys are cut.
   * @default false
   */
  readonly keyDimension?: boolean | KeyDimension | undefined;
}

/** Values by metric; of a metric in milliseconds there can be several samples, at most 100 in a line. */
export type Measurements = Partial<Record<MetricName, number | readonly number[]>>;

/** The metrics whose unit is milliseconds; the others are counts. */
export const inMilliseconds: readonly string[] = [
  metricNames.waitTime,
  metricNames.holdTime,
  metricNames.clockSkew,
];

/** The metrics that are about no single lock: none of them has the dimension `Key`. */
const aboutNoKey: readonly string[] = [
  metricNames.clockSkew,
  metricNames.jobSucceeded,
  metricNames.jobFailed,
  metricNames.jobSkipped,
  metricNames.jobPaused,
];

/** Returns the log line that CloudWatch turns into metrics. It contains no token and no payload. */
export function metricsLine(subject: MetricSubject, measurements: Measurements, nowMs: number): string {
  const { table, job, key } = dimensionNames;
  const narrower = {
    ...(subject.job !== undefined && { [job]: subject.job }),
    ...(subject.key !== undefined && { [key]: dimensionValue(subject.key) }),
  };
  const names = Object.keys(measurements);
  const directive = (dimensions: readonly string[], metrics: readonly string[]) => ({
    Namespace: metricsNamespace,
    Dimensions: [[table], ...dimensions.map((name) => [table, name])],
    Metrics: metrics.map((Name) => ({
      Name,
      Unit: inMilliseconds.includes(Name) ? "Milliseconds" : "Count",
    })),
  });
  const about = (isKey: boolean): string[] => names.filter((name) => aboutNoKey.includes(name) !== isKey);
  const all = Object.keys(narrower);
  const directives =
    subject.key === undefined
      ? [directive(all, names)]
      : [directive(all, about(true)), directive(all.slice(0, -1), about(false))];
  return JSON.stringify({
    _aws: {
      Timestamp: nowMs,
      CloudWatchMetrics: directives.filter(({ Metrics }) => Metrics.length > 0),
    },
    [table]: subject.tableName,
    ...narrower,
    ...measurements,
  });
}

const longestDimension = 1024;

/** CloudWatch accepts only printable ASCII, no colon at the beginning, and a limited length. */
function dimensionValue(key: string): string {
  return key
    .toWellFormed()
    .replace(/^:|^ +$|[^ -~]+/gu, encodeURIComponent)
    .slice(0, longestDimension);
}

/** The metric that counts each event. Events that are only for people have none. */
const metricsByEvent: Readonly<Partial<Record<LeaseEvent["type"], MetricName>>> = {
  ...metricNames,
  takeover: metricNames.takenOver,
};

/** Returns the measurements of an event. */
export function measurementsOf(event: LeaseEvent): Measurements {
  const name = metricsByEvent[event.type];
  return {
    ...(name && { [name]: 1 }),
    ...("waitedMs" in event && { [metricNames.waitTime]: event.waitedMs }),
    ...("heldMs" in event && { [metricNames.holdTime]: event.heldMs }),
    ...(event.type === "skew" && {
      [metricNames.clockSkew]: Math.max(0, event.offsetMinMs, -event.offsetMaxMs),
    }),
  };
}

/**
 * Writes a line to the standard output, past `console`: under Lambda's JSON log format `console` wraps each line into
 * an object of its own, in which CloudWatch finds no metric, and above level INFO it drops them.
 */
export function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/**
 * Returns a listener that writes every event of a client as metrics.
 *
 * ```ts
 * const measured = new LeaseClient({ tableName, onEvent: metricsListener({ tableName }) });
 * ```
 */
export function metricsListener(
  { tableName, job, keyDimension = false }: MetricsListenerOptions,
  write: (line: string) => void = writeLine,
): LeaseEventListener {
  const groupOf = keyDimension === true ? (key: string) => key : keyDimension || undefined;
  return (event) => {
    const measurements = measurementsOf(event);
    if (Object.keys(measurements).length === 0) return;
    const key = ("key" in event && groupOf?.(event.key)) || undefined;
    write(metricsLine({ tableName, job, key }, measurements, Date.now()));
  };
}
