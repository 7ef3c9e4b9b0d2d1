/**
 * What is measured, under which names, and how a Lambda function says so: a log line in CloudWatch's embedded
 * metric format, which costs no request. Shared with the alarms and the dashboard, which look for these very names.
 */
import type { LeaseEvent, LeaseEventListener } from "./events.ts";

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
  /** Milliseconds by which this machine's clock and the service's differ at least, where that is too much. */
  clockSkew: "ClockSkew",
  /** A slot's work was done and could not be recorded, so that it will run again. */
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
 * Dimensions of the metrics. Each value appears once by table, again by table and job where there is a job, and again by
 * table and key where that was asked for.
 */
export const dimensionNames = { table: "Table", job: "Job", key: "Key" } as const;

/** Whom a measurement is about. */
export interface MetricSubject {
  readonly tableName: string;
  /** @default - only the table's metrics are written */
  readonly job?: string | undefined;
  /** The lock's key, or the group that it belongs to. @default - no metric says which lock it is about */
  readonly key?: string | undefined;
}

/** Gives the value of the dimension `Key` for a lock: a group of keys, or undefined for none. */
export type KeyDimension = (key: string) => string | undefined;

/** What {@link metricsListener} measures. */
export interface MetricsListenerOptions extends Omit<MetricSubject, "key"> {
  /**
   * Measures each lock by itself, too, with the dimension `Key`. CloudWatch bills each value of it as further metrics, 9 of
   * them at most. So give a function that groups the keys, such as `(key) => key.split("/")[0]`; `true` is
   * for tables with few keys. Characters that CloudWatch does not take are percent-encoded, and long keys are cut.
   * @default false
   */
  readonly keyDimension?: boolean | KeyDimension | undefined;
}

/** Values by metric. */
export type Measurements = Partial<Record<MetricName, number>>;

/** The metrics whose unit is milliseconds; the others are counts. */
export const inMilliseconds: readonly string[] = [
  metricNames.waitTime,
  metricNames.holdTime,
  metricNames.clockSkew,
];

/** Gives the log line that CloudWatch turns into metrics. No token and no payload is in it. */
export function metricsLine(subject: MetricSubject, measurements: Measurements, nowMs: number): string {
  const { table, job, key } = dimensionNames;
  const narrower = {
    ...(subject.job !== undefined && { [job]: subject.job }),
    ...(subject.key !== undefined && { [key]: dimensionValue(subject.key) }),
  };
  return JSON.stringify({
    _aws: {
      Timestamp: nowMs,
      CloudWatchMetrics: [
        {
          Namespace: metricsNamespace,
          Dimensions: [[table], ...Object.keys(narrower).map((name) => [table, name])],
          Metrics: Object.keys(measurements).map((Name) => ({
            Name,
            Unit: inMilliseconds.includes(Name) ? "Milliseconds" : "Count",
          })),
        },
      ],
    },
    [table]: subject.tableName,
    ...narrower,
    ...measurements,
  });
}

const longestDimension = 1024;

/** CloudWatch takes printable ASCII alone, no colon at the beginning, and a limited length. */
function dimensionValue(key: string): string {
  return key
    .toWellFormed()
    .replace(/^:|^ +$|[^ -~]+/gu, encodeURIComponent)
    .slice(0, longestDimension);
}

/** The metric that counts each event; those that are only for people have none. */
const counted: Readonly<Partial<Record<LeaseEvent["type"], MetricName>>> = {
  ...metricNames,
  takeover: metricNames.takenOver,
};

/** Gives an event in numbers. */
export function measurementsOf(event: LeaseEvent): Measurements {
  const name = counted[event.type];
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
 * Makes a listener that writes every event of a client as metrics.
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
