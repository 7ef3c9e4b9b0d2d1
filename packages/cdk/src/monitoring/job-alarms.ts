import { Duration } from "aws-cdk-lib";
import { type Alarm, type IMetric, MathExpression, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import {
  aDuration,
  aMetric,
  aNumber,
  aQueue,
  aText,
  checkProps,
  having,
  type Kinds,
  numberText,
  picked,
} from "../prop-kinds.ts";
import { checkKnown } from "../workflow/durations.ts";
import {
  type AlarmText,
  alarmOnBacklog,
  alarmOnEvent,
  alarmOnSilence,
  alarmWindow,
  define,
  longestAlarmWindow,
  metricDelay,
  type NamedMetrics,
  namedMetrics,
} from "./alarm-kinds.ts";
import { type AlarmSettings, alarmSettingKinds, alarmText, type RunbookEntry } from "./runbook.ts";

/** The metrics of a job's runs. */
export interface JobRunMetrics {
  /** Counts runs that finished their work. */
  readonly succeeded: IMetric;
  /** Each counts failed runs, or failed attempts. */
  readonly failed: NamedMetrics;
  /** Counts runs that found the lock held. @default - these runs are not counted separately */
  readonly skipped?: IMetric;
  /** Counts runs that found the lock paused by an operator. @default - these runs are not counted separately */
  readonly paused?: IMetric;
  /** Counts runs whose lease ended before the run. @default - these runs are not counted separately */
  readonly lost?: IMetric;
  /** Each counts runs that were given up and not kept in a queue. @default - they are not counted */
  readonly undelivered?: NamedMetrics;
}

/** Properties of {@link JobAlarms}. */
export interface JobAlarmsProps extends AlarmSettings {
  /** The queue for runs that could not start, or have finally failed. */
  readonly deadLetterQueue: IQueue;
  /** How often the job runs. @default - no alarm for skips in a row */
  readonly interval?: Duration;
  /** The job's name, for the descriptions. */
  readonly jobName: string;
  /** How long may pass without a run; at most 6 days. @default - no alarm on missed runs */
  readonly maxInterval?: Duration;
  readonly metrics: JobRunMetrics;
  /** How many skips in a row are too many. @default 5 */
  readonly skipsInARow?: number;
}

const kinds: Kinds<JobAlarmsProps> = {
  ...alarmSettingKinds,
  deadLetterQueue: aQueue,
  interval: aDuration,
  jobName: aText,
  maxInterval: aDuration,
  metrics: having("the metrics of a job's runs", "succeeded", "failed"),
  skipsInARow: aNumber,
};
const metricKinds: Kinds<JobRunMetrics> = {
  succeeded: aMetric,
  failed: namedMetrics,
  skipped: aMetric,
  paused: aMetric,
  lost: aMetric,
  undelivered: namedMetrics,
};

/** More than the skips that any window can have. */
const moreThanAllSkips = 1_000_000;

/** The alarms of one job. Each description says what is wrong and where the runbook is. */
export class JobAlarms extends Construct {
  /** No run has succeeded, and none was skipped or paused, for too long. */
  readonly didNotRun: Alarm | undefined;
  /** A run failed. */
  readonly failed: Alarm;
  /** A run's lease ended before the run did. */
  readonly lostLease: Alarm | undefined;
  /** Every run of a time span was skipped, and not because of a pause. */
  readonly skippedInARow: Alarm | undefined;
  /** A run was given up. */
  readonly deadLetters: Alarm;
  /** A run was given up, and could not be put into the dead-letter queue. */
  readonly deadLetterLost: Alarm | undefined;

  readonly #props: JobAlarmsProps;

  constructor(scope: Construct, id: string, props: JobAlarmsProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "deadLetterQueue", "jobName", "metrics");
    this.#props = { ...given, metrics: checkProps(given.metrics, metricKinds, "succeeded", "failed") };
    checkSkips(given.skipsInARow);
    const reason = "the alarms' periods are worked out from it";
    if (given.interval) checkKnown("interval", given.interval, reason);
    if (given.maxInterval) checkKnown("maxInterval", given.maxInterval, reason);
    this.didNotRun = this.#didNotRun();
    this.failed = this.#failed();
    this.lostLease = this.#lostLease();
    this.skippedInARow = this.#skippedInARow();
    this.deadLetters = this.#deadLetters();
    this.deadLetterLost = this.#deadLetterLost();
  }

  /** All alarms of the job. */
  get all(): Alarm[] {
    const { didNotRun, failed, lostLease, skippedInARow, deadLetters, deadLetterLost } = this;
    return [didNotRun, failed, lostLease, skippedInARow, deadLetters, deadLetterLost].filter(
      (alarm) => alarm !== undefined,
    );
  }

  #didNotRun(): Alarm | undefined {
    const { jobName, maxInterval, metrics } = this.#props;
    if (maxInterval === undefined) return undefined;
    return alarmOnSilence(this, "DidNotRun", {
      ...this.#text(
        "didNotRun",
        `The job ${jobName} has neither succeeded nor been skipped for ${maxInterval.toHumanString()}.`,
      ),
      metrics: picked(metrics, "succeeded", "skipped", "paused"),
      longest: maxInterval,
    });
  }

  #failed(): Alarm {
    const { jobName, metrics } = this.#props;
    return alarmOnEvent(this, "Failed", {
      ...this.#text("failed", `A run of the job ${jobName} failed.`),
      metrics: metrics.failed,
    });
  }

  #lostLease(): Alarm | undefined {
    const { lost } = this.#props.metrics;
    const what =
      `A run of the job ${this.#props.jobName} lost its lease before it had ended: ` +
      "another run may have overlapped it.";
    return lost && alarmOnEvent(this, "LostLease", { ...this.#text("lostLease", what), metrics: { lost } });
  }

  #skippedInARow(): Alarm | undefined {
    const { jobName, metrics, interval, skipsInARow = 5 } = this.#props;
    const { succeeded, skipped } = metrics;
    if (interval === undefined || skipped === undefined) return undefined;
    // The span includes late skips: without the delay, the skips of the last minutes would always be missing.
    const span = Duration.seconds(skipsInARow * interval.toSeconds()).plus(metricDelay);
    if (span.toSeconds() > longestAlarmWindow.toSeconds()) return undefined;
    const window = alarmWindow(span);
    return define(this, "SkippedInARow", {
      ...this.#text(
        "skippedInARow",
        `The job ${jobName} was skipped ${skipsInARow} times in a row: something holds its lock.`,
      ),
      // One success outweighs all skips. A sum also works if one of the metrics has never been written.
      metric: new MathExpression({
        expression: `SUM([FILL(skipped, 0), FILL(succeeded, 0) * -${moreThanAllSkips}])`,
        usingMetrics: { skipped, succeeded },
        label: "skipped without a success",
      }),
      window,
      datapointsToAlarm: window.evaluationPeriods,
      threshold: Math.max(1, Math.floor(skipsInARow / window.evaluationPeriods)),
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
  }

  #deadLetters(): Alarm {
    const { jobName, deadLetterQueue } = this.#props;
    return alarmOnBacklog(this, "DeadLetters", {
      ...this.#text(
        "deadLetters",
        `A run of the job ${jobName} was given up and lies in the dead-letter queue.`,
      ),
      queue: deadLetterQueue,
    });
  }

  #deadLetterLost(): Alarm | undefined {
    const { jobName, metrics } = this.#props;
    const what = `A run of the job ${jobName} was given up, and could not be put into the dead-letter queue.`;
    return (
      metrics.undelivered &&
      alarmOnEvent(this, "DeadLetterLost", {
        ...this.#text("deadLetterLost", what),
        metrics: metrics.undelivered,
      })
    );
  }

  #text(entry: RunbookEntry, what: string): AlarmText {
    return alarmText(entry, what, this.#props);
  }
}

/** Refuses a number of skips that no window can have. */
export function checkSkips(skipsInARow: number | undefined): void {
  if (skipsInARow === undefined || (Number.isSafeInteger(skipsInARow) && skipsInARow > 0)) return;
  throw new Error(`skipsInARow is ${numberText(skipsInARow)}: set a whole number above 0`);
}
