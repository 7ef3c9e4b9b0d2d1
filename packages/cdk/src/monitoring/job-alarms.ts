import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  ComparisonOperator,
  type IAlarmAction,
  type IMetric,
  MathExpression,
  Metric,
  Stats,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { type AlarmWindow, alarmWindow, longestAlarmWindow } from "./alarm-window.ts";
import { alarmDescription, defaultRunbookUrl, type RunbookEntry } from "./runbook.ts";

/** What the runs of a job can be seen by. */
export interface JobRunMetrics {
  /** Counts runs that finished their work. */
  readonly succeeded: IMetric;
  /** Each counts runs, or attempts at one, that went wrong. */
  readonly failed: Readonly<Record<string, IMetric>>;
  /** Counts runs that found the lock held. @default - runs of this kind are not counted apart */
  readonly skipped?: IMetric;
  /** Counts runs whose lease ended before they did. @default - runs of this kind are not counted apart */
  readonly lost?: IMetric;
}

/** Properties of {@link JobAlarms}. */
export interface JobAlarmsProps {
  /** @default - nobody is told */
  readonly actions?: readonly IAlarmAction[];
  /** Where runs go that could not be started, or failed for good. */
  readonly deadLetterQueue: IQueue;
  /** How often the job runs. @default - no alarm for skips in a row */
  readonly interval?: Duration;
  /** The job's name, for the descriptions. */
  readonly jobName: string;
  /** How long may pass without a run; at most 7 days. @default - no alarm for runs that stay away */
  readonly maxInterval?: Duration;
  readonly metrics: JobRunMetrics;
  /** Address of the runbook; an anchor is appended. @default "docs/RUNBOOK.md" */
  readonly runbookUrl?: string;
  /** How many skips in a row are too many. @default 5 */
  readonly skipsInARow?: number;
}

/** Above the number of skips that any window can have. */
const moreThanAllSkips = 1_000_000;

/** The alarms of one job; each description says what is wrong and where the runbook is. */
export class JobAlarms extends Construct {
  /** No run has succeeded, and none was skipped, for too long. */
  readonly didNotRun: Alarm | undefined;
  /** A run failed. */
  readonly failed: Alarm;
  /** A run's lease ended before the run did. */
  readonly lostLease: Alarm | undefined;
  /** Every run of a while was skipped. */
  readonly skippedInARow: Alarm | undefined;
  /** A run was given up. */
  readonly deadLetters: Alarm;

  readonly #props: JobAlarmsProps;

  constructor(scope: Construct, id: string, props: JobAlarmsProps) {
    super(scope, id);
    this.#props = props;
    this.didNotRun = this.#didNotRun();
    this.failed = this.#failed();
    this.lostLease = this.#lostLease();
    this.skippedInARow = this.#skippedInARow();
    this.deadLetters = this.#deadLetters();
  }

  /** Every alarm that there is. */
  get all(): readonly Alarm[] {
    const { didNotRun, failed, lostLease, skippedInARow, deadLetters } = this;
    return [didNotRun, failed, lostLease, skippedInARow, deadLetters].filter((alarm) => alarm !== undefined);
  }

  #didNotRun(): Alarm | undefined {
    const { jobName, maxInterval, metrics } = this.#props;
    if (maxInterval === undefined) return undefined;
    const { succeeded, skipped } = metrics;
    return this.#alarm("DidNotRun", "didNotRun", {
      what: `The job ${jobName} has neither succeeded nor been skipped for ${maxInterval.toHumanString()}.`,
      metric: sum({ succeeded, ...(skipped ? { skipped } : {}) }),
      window: alarmWindow(maxInterval),
      threshold: 1,
      comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
      // A job that does not run writes nothing.
      treatMissingData: TreatMissingData.BREACHING,
    });
  }

  #failed(): Alarm {
    const { jobName, metrics } = this.#props;
    return this.#alarm("Failed", "failed", {
      what: `A run of the job ${jobName} failed.`,
      metric: sum(metrics.failed),
    });
  }

  #lostLease(): Alarm | undefined {
    const { jobName, metrics } = this.#props;
    return (
      metrics.lost &&
      this.#alarm("LostLease", "lostLease", {
        what: `A run of the job ${jobName} lost its lease before it had ended: another run may have overlapped it.`,
        metric: metrics.lost,
      })
    );
  }

  #skippedInARow(): Alarm | undefined {
    const { jobName, metrics, interval, skipsInARow = 5 } = this.#props;
    const { succeeded, skipped } = metrics;
    if (interval === undefined || skipped === undefined) return undefined;
    const span = Duration.seconds(skipsInARow * interval.toSeconds());
    if (span.toSeconds() > longestAlarmWindow.toSeconds()) return undefined;
    const window = alarmWindow(span);
    return this.#alarm("SkippedInARow", "skippedInARow", {
      what: `The job ${jobName} was skipped ${skipsInARow} times in a row: something holds its lock.`,
      // A single success outweighs all skips. A sum works where one of them has never been written, too.
      metric: new MathExpression({
        expression: `SUM([FILL(skipped, 0), FILL(succeeded, 0) * -${moreThanAllSkips}])`,
        usingMetrics: { skipped, succeeded },
        label: "skipped without a success",
      }),
      window,
      threshold: Math.max(1, Math.floor(skipsInARow / window.evaluationPeriods)),
    });
  }

  #deadLetters(): Alarm {
    const { jobName, deadLetterQueue } = this.#props;
    return this.#alarm("DeadLetters", "deadLetters", {
      what: `A run of the job ${jobName} was given up and lies in the dead-letter queue.`,
      metric: deadLetterQueue.metricApproximateNumberOfMessagesVisible({ statistic: Stats.MAXIMUM }),
    });
  }

  #alarm(
    id: string,
    entry: RunbookEntry,
    alarm: {
      readonly what: string;
      readonly metric: IMetric;
      readonly window?: AlarmWindow;
      readonly threshold?: number;
      readonly comparisonOperator?: ComparisonOperator;
      readonly treatMissingData?: TreatMissingData;
    },
  ): Alarm {
    const { actions = [], runbookUrl = defaultRunbookUrl } = this.#props;
    const { period, evaluationPeriods } = alarm.window ?? alarmWindow(Duration.minutes(5));
    const created = new Alarm(this, id, {
      alarmDescription: alarmDescription(alarm.what, entry, runbookUrl),
      metric: every(alarm.metric, period),
      evaluationPeriods,
      threshold: alarm.threshold ?? 1,
      comparisonOperator: alarm.comparisonOperator ?? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: alarm.treatMissingData ?? TreatMissingData.NOT_BREACHING,
    });
    created.addAlarmAction(...actions);
    return created;
  }
}

/** Adds metrics up; a metric without data counts as nothing. */
function sum(metrics: Readonly<Record<string, IMetric>>): IMetric {
  const names = Object.keys(metrics);
  const [only, ...more] = Object.values(metrics);
  if (only !== undefined && more.length === 0) return only;
  return new MathExpression({
    expression: `SUM([${names.map((name) => `FILL(${name}, 0)`).join(", ")}])`,
    usingMetrics: { ...metrics },
    label: names.join(" or "),
  });
}

function every(metric: IMetric, period: Duration): IMetric {
  return metric instanceof Metric || metric instanceof MathExpression ? metric.with({ period }) : metric;
}
