import { alarmOnEvent, alarmOnLasting, alarmOnSilence } from "@leasehold/cdk";
import { metricsNamespace } from "@leasehold/client/metrics";
import { Duration } from "aws-cdk-lib";
import { MathExpression, type Metric, Stats } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { FilterPattern, type ILogGroup, MetricFilter } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";

/** The entries of docs/systems/alarms.md: the alarms of the app, besides those of the constructs. */
export const systemRunbookAnchors = {
  importFailed: "import-failed",
  ordersParked: "orders-parked",
  functionFailing: "function-failing",
  eventsDropped: "events-dropped",
  scheduleStalled: "schedule-stalled",
  expiriesUnreported: "expiries-unreported",
  longWaits: "long-waits",
} as const;

/** An alarm of the app's own. */
type SystemRunbookEntry = keyof typeof systemRunbookAnchors;

/** The text of an alarm: what is wrong, and where to read on. */
export function systemAlarmText(entry: SystemRunbookEntry, what: string): { readonly description: string } {
  return { description: `${what}\nRunbook: docs/systems/alarms.md#${systemRunbookAnchors[entry]}` };
}

/** Gives Lambda's count of asynchronous events that it gave up without keeping them. */
export function droppedEvents(fn: IFunction): Metric {
  return fn.metric("AsyncEventsDropped", { statistic: Stats.SUM });
}

/**
 * The alarms of a function that callers invoke.
 *
 * A caller notices a single error, and many errors are the caller's own. So one alarm is for half of all calls, again
 * and again. No caller notices when Lambda gives an asynchronous event up: the other alarm reports each of them.
 */
export class CalledFunctionAlarms extends Construct {
  constructor(scope: Construct, id: string, props: { readonly fn: IFunction }) {
    super(scope, id);
    const { fn } = props;
    const { path } = fn.node;
    alarmOnLasting(this, "Failing", {
      ...systemAlarmText("functionFailing", `At least half of the calls of ${path} fail.`),
      metric: new MathExpression({
        expression: "100 * FILL(errors, 0) / FILL(invocations, 1)",
        usingMetrics: { errors: fn.metricErrors(), invocations: fn.metricInvocations() },
        label: "errors in 100 calls",
      }),
      threshold: 50,
    });
    alarmOnEvent(this, "Dropped", {
      ...systemAlarmText("eventsDropped", `An event that was sent to ${path} was given up.`),
      metrics: { dropped: droppedEvents(fn) },
    });
  }
}

/** How many runs in a row may fail, or be missing, before the alarm. */
const runsMissed = 3;

/** The alarm of a function that a schedule calls, and whose next run makes up for a missing one. */
export class ScheduledFunctionAlarm extends Construct {
  constructor(scope: Construct, id: string, props: { readonly fn: IFunction; readonly interval: Duration }) {
    super(scope, id);
    const { fn, interval } = props;
    const longest = Duration.seconds(runsMissed * interval.toSeconds());
    const what = `${fn.node.path} has not run without an error for ${longest.toHumanString()}.`;
    alarmOnSilence(this, "Stalled", {
      ...systemAlarmText("scheduleStalled", what),
      metrics: { invocations: fn.metricInvocations() },
      less: { errors: fn.metricErrors() },
      longest,
    });
  }
}

/** Properties of {@link SystemAlarm}. */
interface SystemAlarmProps {
  /** What is wrong. */
  readonly what: string;
  readonly entry: SystemRunbookEntry;
  /** The words of the log lines that count. */
  readonly messages: readonly string[];
  /** The functions that write them, by a name for each. */
  readonly functions: Readonly<Record<string, { readonly logGroup: ILogGroup }>>;
  /** Other metrics to count, by a name for each. @default - none */
  readonly metrics?: Readonly<Record<string, Metric>>;
}

/** An alarm of one of the systems: something was logged or counted that a person has to look at. */
export class SystemAlarm extends Construct {
  constructor(scope: Construct, id: string, props: SystemAlarmProps) {
    super(scope, id);
    const { what, entry, messages, functions, metrics } = props;
    const counted: Record<string, Metric> = { ...metrics };
    for (const [name, { logGroup }] of Object.entries(functions)) {
      const filter = new MetricFilter(this, name, {
        logGroup,
        filterPattern: FilterPattern.anyTerm(...messages),
        metricNamespace: metricsNamespace,
        metricName: this.node.path.replaceAll("/", "-") + name,
      });
      counted[name.toLowerCase()] = filter.metric({ statistic: Stats.SUM });
    }
    alarmOnEvent(this, "Alarm", { ...systemAlarmText(entry, what), metrics: counted });
  }
}
