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
  checkWholeNumber,
  having,
  type Kinds,
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

  constructor(scope: Construct, id: string, props: JobAlarmsProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "deadLetterQueue", "jobName", "metrics");
    const { deadLetterQueue, interval, jobName, maxInterval, skipsInARow = 5 } = given;
    const metrics = checkProps(given.metrics, metricKinds, "succeeded", "failed");
    checkWholeNumber("skipsInARow", skipsInARow, 1);
    const reason = "the alarms' periods are worked out from it";
    if (interval) checkKnown("interval", interval, reason);
    if (maxInterval) checkKnown("maxInterval", maxInterval, reason);
    const textOf = (entry: RunbookEntry, what: string): AlarmText => alarmText(entry, what, given);
    const onEvent = (alarmId: string, entry: RunbookEntry, what: string, counted: NamedMetrics): Alarm =>
      alarmOnEvent(this, alarmId, { ...textOf(entry, what), metrics: counted });
    const { succeeded, failed, skipped, lost, undelivered } = metrics;

    this.didNotRun =
      maxInterval &&
      alarmOnSilence(this, "DidNotRun", {
        ...textOf(
          "didNotRun",
          `The job ${jobName} has neither succeeded nor been skipped for ${maxInterval.toHumanString()}.`,
        ),
        metrics: picked(metrics, "succeeded", "skipped", "paused"),
        longest: maxInterval,
      });
    this.failed = onEvent("Failed", "failed", `A run of the job ${jobName} failed.`, failed);
    const overlapped = `A run of the job ${jobName} lost its lease before it had ended: another run may have overlapped it.`;
    this.lostLease = lost && onEvent("LostLease", "lostLease", overlapped, { lost });
    const held = `The job ${jobName} was skipped ${skipsInARow} times in a row: something holds its lock.`;
    this.skippedInARow =
      interval &&
      skipped &&
      alarmOnSkips(this, textOf("skippedInARow", held), { skipped, succeeded }, interval, skipsInARow);
    this.deadLetters = alarmOnBacklog(this, "DeadLetters", {
      ...textOf("deadLetters", `A run of the job ${jobName} was given up and lies in the dead-letter queue.`),
      queue: deadLetterQueue,
    });
    const gone = `A run of the job ${jobName} was given up, and could not be put into the dead-letter queue.`;
    this.deadLetterLost = undelivered && onEvent("DeadLetterLost", "deadLetterLost", gone, undelivered);
  }

  /** All alarms of the job. */
  get all(): Alarm[] {
    const { didNotRun, failed, lostLease, skippedInARow, deadLetters, deadLetterLost } = this;
    return [didNotRun, failed, lostLease, skippedInARow, deadLetters, deadLetterLost].filter(
      (alarm) => alarm !== undefined,
    );
  }
}

/** An alarm on so many skips in a row; undefined if they take longer than an alarm can look back. */
function alarmOnSkips(
  scope: Construct,
  text: AlarmText,
  usingMetrics: Record<"skipped" | "succeeded", IMetric>,
  interval: Duration,
  skipsInARow: number,
): Alarm | undefined {
  // The span includes late skips: without the delay, the skips of the last minutes would always be missing.
  const span = Duration.seconds(skipsInARow * interval.toSeconds()).plus(metricDelay);
  if (span.toSeconds() > longestAlarmWindow.toSeconds()) return undefined;
  const window = alarmWindow(span);
  return define(scope, "SkippedInARow", {
    ...text,
    // One success outweighs all skips. A sum also works if one of the metrics has never been written.
    metric: new MathExpression({
      expression: `SUM([FILL(skipped, 0), FILL(succeeded, 0) * -${moreThanAllSkips}])`,
      usingMetrics,
      label: "skipped without a success",
    }),
    window,
    datapointsToAlarm: window.evaluationPeriods,
    threshold: Math.max(1, Math.floor(skipsInARow / window.evaluationPeriods)),
    treatMissingData: TreatMissingData.NOT_BREACHING,
  });
}
