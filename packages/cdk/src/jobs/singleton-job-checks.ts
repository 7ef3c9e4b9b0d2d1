import { Annotations, Duration, Token } from "aws-cdk-lib";
import type { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { QueueEncryption } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { longestSilence } from "../monitoring/alarm-kinds.ts";
import {
  aDate,
  aDuration,
  aFlag,
  aHeartbeat,
  alarmActions,
  aNumber,
  aQueue,
  aTable,
  aText,
  aWakeup,
  checkWholeNumber,
  having,
  type Kinds,
  oneOf,
} from "../prop-kinds.ts";
import { checkLeaseKey } from "../table/leading-keys.ts";
import { checkKnown } from "../workflow/durations.ts";
import { observabilityKinds, observabilityOf } from "../workflow/state-machine.ts";
import type { JobOverlap, JobTarget } from "./job-target.ts";
import type { SingletonJobProps } from "./singleton-job-props.ts";

/** The kinds of a job's props. */
export const jobKinds: Kinds<SingletonJobProps> = {
  ...observabilityKinds,
  alarmActions,
  alarms: aFlag,
  deadLetterQueue: aQueue,
  enabled: aFlag,
  end: aDate,
  heartbeat: aDuration,
  input: { name: "a value that JSON has", accepts: isJson },
  jobName: aText,
  keeper: aHeartbeat,
  key: aText,
  lockAtLeastFor: aDuration,
  lockAtMostFor: aDuration,
  maxEventAge: aDuration,
  maxInterval: aDuration,
  once: aFlag,
  overlap: oneOf("skip", "queue", "replace"),
  permits: aNumber,
  retryAttempts: aNumber,
  runbookUrl: aText,
  schedule: having("a ScheduleExpression", "expressionString"),
  scheduleGroup: having("a schedule group", "scheduleGroupName", "node"),
  scheduleName: aText,
  skipsInARow: aNumber,
  start: aDate,
  table: aTable,
  target: having("a target, made by SingletonJobTarget", "bind", "refusedProps", "keptOverlaps"),
  timeWindow: having("a TimeWindow", "mode"),
  trigger: having("a trigger, made by SingletonJobTrigger", "refusedProps"),
  wakeup: aWakeup,
};

/** Accepts a value with tokens, too: these write themselves as JSON. */
function isJson(value: unknown): boolean {
  return JSON.stringify(value) !== undefined;
}

/**
 * Refuses props that cannot work together, before anything is defined; warns of props that work badly together.
 *
 * A duration that is known only at deployment is accepted if the function gets it unchanged, and refused if a
 * calculation needs it.
 */
export function checkSingletonJob(job: Construct, props: SingletonJobProps): ScheduleTiming {
  const timing = timingOf(props);
  for (const refusal of refusalsOf(props, timing)) throw new Error(refusal);
  warn(job, props, timing);
  return timing;
}

type Refusals = Generator<string, void>;

function* refusalsOf(props: SingletonJobProps, timing: ScheduleTiming): Refusals {
  yield* ofRefusedProps(props);
  yield* ofTrigger(props);
  if (props.key !== undefined) checkLeaseKey("key", props.key);
  if (props.jobName === "") yield "jobName is empty: leave it out, or name the job";
  yield* ofPermits(props);
  yield* ofWaiting(props);
  yield* ofSchedule(props, timing);
  yield* ofLock(props, timing);
  yield* ofInterval(props, timing);
  yield* ofRetries(props);
  yield* ofDeadLetters(props);
}

/** The default overlap: a skipped tick comes again, but other work does not. */
export function overlapOf({ overlap, trigger }: SingletonJobProps): JobOverlap {
  return overlap ?? (trigger === undefined ? "skip" : "queue");
}

/**
 * The overlaps with which runs wait in the table, and with which the job makes a state machine. A message waits in its
 * own queue.
 */
function overlapsOf({
  target,
  trigger,
}: SingletonJobProps): Pick<JobTarget, "waitingOverlaps" | "keptOverlaps"> {
  return trigger?.sourceQueue ? { waitingOverlaps: [], keptOverlaps: [] } : target;
}

function timingOf({ schedule, trigger }: SingletonJobProps): ScheduleTiming {
  if (schedule !== undefined && trigger !== undefined) {
    throw new Error(
      "schedule and trigger are both set: leave one out, or define a job for each, with one key",
    );
  }
  if (schedule !== undefined) return scheduleTiming(schedule);
  if (trigger !== undefined) return { isOnce: false };
  throw new Error("schedule is undefined: give a ScheduleExpression, or a queue or an event rule as trigger");
}

/** The time between two runs, if a schedule's expression shows it. */
export interface ScheduleTiming {
  /** Whether the job runs a single time. */
  readonly isOnce: boolean;
  /** Known only for a rate. */
  readonly interval?: Duration;
}

const units: Readonly<Record<string, (count: number) => Duration>> = {
  minute: Duration.minutes,
  hour: Duration.hours,
  day: Duration.days,
};

const cronFields =
  "cron has six fields: minutes, hours, day of month, month, day of week, year; it has no seconds, and day 1 of a week is Sunday";

/**
 * Reads a schedule's expression: `rate(...)`, `cron(...)` or `at(...)`.
 *
 * Throws when EventBridge Scheduler would refuse it at deployment: an unknown form, a cron expression without exactly
 * six fields, or one in which not exactly one of day of month and day of week is `?`.
 */
function scheduleTiming(schedule: ScheduleExpression): ScheduleTiming {
  const { expressionString: text } = schedule;
  if (Token.isUnresolved(text)) return { isOnce: false };
  const [, form, body = ""] = /^(rate|cron|at)\((.*)\)$/.exec(text) ?? [];
  switch (form) {
    case "rate": {
      const [, count, unit = ""] = /^([1-9]\d*) (minute|hour|day)s?$/.exec(body) ?? [];
      const inUnit = units[unit];
      if (inUnit === undefined)
        throw invalid(text, "a rate is a whole number above 0 and minutes, hours or days");
      return { isOnce: false, interval: inUnit(Number(count)) };
    }
    case "cron": {
      const fields = body.trim().split(/\s+/);
      if (fields.length !== 6) {
        throw invalid(text, cronFields);
      }
      if ((fields[2] === "?") === (fields[4] === "?")) {
        const days = "set the day of the month or the day of the week, and write ? for the other";
        throw invalid(text, `${days}; ${cronFields}`);
      }
      return { isOnce: false };
    }
    case "at":
      return { isOnce: true };
    default:
      throw invalid(text, `use ScheduleExpression.rate, .cron or .at; ${cronFields}`);
  }
}

function invalid(text: string, advice: string): Error {
  return new Error(`schedule is ${JSON.stringify(text)}: ${advice}`);
}

function* ofRefusedProps({ target, trigger, ...props }: SingletonJobProps): Refusals {
  const given: Readonly<Record<string, unknown>> = { ...props };
  for (const [prop, reason] of Object.entries({ ...target.refusedProps, ...trigger?.refusedProps }))
    if (given[prop] !== undefined) yield `${prop} is set ${reason}`;
}

function* ofTrigger({ trigger, once, overlap, target }: SingletonJobProps): Refusals {
  if (trigger === undefined) return;
  if (once === true)
    yield "once is true, but a slot that is done excludes all earlier ones, and messages and events need not come in order: " +
      "leave it out, and let the work recognise what it has done by the message's or event's id";
  if (trigger.sourceQueue === undefined) return;
  if (target.refusedQueue !== undefined)
    yield `trigger is a queue, which cannot start this target: ${target.refusedQueue}`;
  if (overlap === "replace")
    yield 'overlap is "replace", but the message of a run that is replaced would be deleted: choose "queue" or "skip"';
}

/** The workflow checks their number. */
function* ofPermits(props: SingletonJobProps): Refusals {
  const { permits, target, trigger, once = trigger === undefined } = props;
  const overlap = overlapOf(props);
  if (permits === undefined) return;
  if (!target.takesPermits)
    yield "permits is set, and no workflow holds the lock of such a target's runs: use SingletonJobTarget.lockedLambda, or " +
      "SingletonJobTarget.workflow with a LeasedWorkflow that has permits";
  if (once)
    yield "permits is set, and a semaphore has no slots, by which a trigger that is delivered twice is one run: set once: false, " +
      "if two runs of one time do no harm";
  if (overlap !== "skip")
    yield `permits is set with overlap: "${overlap}", and nothing tells runs of a permit that is free again: choose "skip"`;
}

const overlaps: readonly JobOverlap[] = ["skip", "queue", "replace"];

function* ofWaiting(props: SingletonJobProps): Refusals {
  const { table, wakeup, keeper } = props;
  const overlap = overlapOf(props);
  const { waitingOverlaps, keptOverlaps } = overlapsOf(props);
  const isKept = keptOverlaps.includes(overlap);
  if (keeper && !isKept) yield unused("keeper", keptOverlaps);
  const [observability] = Object.keys(observabilityOf(props));
  const waits = waitingOverlaps.includes(overlap);
  if (wakeup && !waits) yield unused("wakeup", waitingOverlaps);
  // A LeaseWakeup has a table with a stream, even if this app does not know the stream.
  if (waits && wakeup === undefined) {
    const others = overlaps.filter((other) => !waitingOverlaps.includes(other));
    if (table.tableStreamArn === undefined)
      yield `overlap is "${overlap}", but the table ${table.node.path} has no stream to wake waiting runs by: ` +
        `make the LeaseTable with stream: true, or choose ${quoted(others)}`;
    yield `overlap is "${overlap}", but nothing would wake the waiting runs: give a LeaseWakeup of the table as wakeup`;
  }
  if (observability !== undefined && !isKept)
    yield `${observability} is set, but the job makes no state machine: set it on the function or the workflow that it runs`;
}

function unused(prop: string, usedFor: readonly JobOverlap[]): string {
  const advice = usedFor.length === 0 ? "" : `, or set overlap: ${quoted(usedFor)}`;
  return `${prop} is set, but no run waits: leave it out${advice}`;
}

function quoted(values: readonly JobOverlap[]): string {
  return values.map((value) => `"${value}"`).join(" or ");
}

function* ofSchedule({ scheduleName, start, end }: SingletonJobProps, { isOnce }: ScheduleTiming): Refusals {
  const name = scheduleName ?? "unnamed";
  if (!(Token.isUnresolved(name) || /^[\w.-]{1,64}$/.test(name)))
    yield `scheduleName is ${JSON.stringify(name)}: set 1 to 64 letters, digits, hyphens, underscores or dots`;
  if (isOnce && (start ?? end))
    yield `${start ? "start" : "end"} is set, but the job runs a single time, which the schedule names: leave it out`;
  if (start && end && start.getTime() >= end.getTime())
    yield `start is ${start.toISOString()}, not before end (${end.toISOString()}): no run would begin; set a later end`;
}

function* ofLock(props: SingletonJobProps, { interval }: ScheduleTiming): Refusals {
  const { lockAtMostFor, lockAtLeastFor, heartbeat, overlap, target } = props;
  yield* ofZeros({ lockAtMostFor, heartbeat });
  if (ms(lockAtLeastFor) > ms(lockAtMostFor))
    yield `lockAtLeastFor is ${text(lockAtLeastFor)}, longer than lockAtMostFor (${text(lockAtMostFor)}): ` +
      "shorten it, or lengthen lockAtMostFor";
  if (ms(lockAtLeastFor) >= ms(interval))
    yield `lockAtLeastFor is ${text(lockAtLeastFor)}, but the job runs every ${text(interval)}, so each run would keep ` +
      "the next one out: shorten it below the interval";
  if (heartbeat && lockAtMostFor === undefined)
    yield `heartbeat is ${text(heartbeat)}, but there is no lockAtMostFor to renew: set it to more than twice that, ` +
      "or leave heartbeat out, and the lease covers the whole run";
  if (ms(heartbeat) >= ms(lockAtMostFor) / 2)
    yield `heartbeat is ${text(heartbeat)}, not below half of lockAtMostFor (${text(lockAtMostFor)}), so one lost ` +
      "renewal would lose the lease: beat more often, or lengthen lockAtMostFor";
  // A run that can be replaced renews its lease anyway, because it learns of the replacement by its renewals.
  const renews = heartbeat !== undefined || overlap === "replace";
  if (!renews && ms(target.timeout) > ms(lockAtMostFor))
    yield `lockAtMostFor is ${text(lockAtMostFor)}, shorter than the function's timeout (${text(target.timeout)}), so a ` +
      "second run could start while the first one works: lengthen it, shorten the timeout, or set heartbeat";
}

function* ofInterval(props: SingletonJobProps, { isOnce, interval }: ScheduleTiming): Refusals {
  const { maxInterval, skipsInARow } = props;
  yield* ofZeros({ maxInterval });
  if (maxInterval) checkKnown("maxInterval", maxInterval, "the alarms' periods are worked out from it");
  if (maxInterval && isOnce)
    yield `maxInterval is ${text(maxInterval)}, but the job runs a single time: leave it out`;
  if (ms(interval) > ms(maxInterval))
    yield `maxInterval is ${text(maxInterval)}, but the job runs every ${text(interval)}: lengthen it beyond that`;
  if (ms(maxInterval) > ms(longestSilence))
    yield `maxInterval is ${text(maxInterval)}, but an alarm can watch for ${text(longestSilence)} without a run at most: ` +
      "leave it out, and watch so rare a job by its failures";
  checkWholeNumber("skipsInARow", skipsInARow, 1);
}

function* ofRetries({ maxEventAge, retryAttempts }: SingletonJobProps): Refusals {
  const [least, most] = [Duration.minutes(1), Duration.days(1)];
  if (maxEventAge) checkKnown("maxEventAge", maxEventAge, "how often to try again is worked out from it");
  if (ms(least) > ms(maxEventAge) || ms(maxEventAge) > ms(most))
    yield `maxEventAge is ${text(maxEventAge)}: set it from ${text(least)} to ${text(most)}`;
  checkWholeNumber("retryAttempts", retryAttempts, 0, 185);
}

function* ofDeadLetters({ deadLetterQueue, trigger }: SingletonJobProps): Refusals {
  if (deadLetterQueue === undefined || trigger?.sourceQueue) return;
  if (deadLetterQueue.fifo)
    yield `deadLetterQueue is the FIFO queue ${deadLetterQueue.node.path}, which EventBridge and Lambda do not send to: ` +
      "give a standard queue";
  if (trigger?.sourceRule && deadLetterQueue.encryptionType === QueueEncryption.KMS_MANAGED)
    yield `deadLetterQueue is ${deadLetterQueue.node.path}, encrypted with the key aws/sqs, which EventBridge's rules cannot ` +
      "use: encrypt it with QueueEncryption.SQS_MANAGED, or with a key of yours";
}

function warn(job: Construct, props: SingletonJobProps, { isOnce, interval }: ScheduleTiming): void {
  const { lockAtMostFor, target, trigger, maxInterval, alarms } = props;
  const isBounded = props.start !== undefined || props.end !== undefined;
  if (ms(lockAtMostFor) > ms(interval)) {
    Annotations.of(job).addWarningV2(
      "@leasehold/cdk:lockOutlastsInterval",
      `a run that dies keeps the lock for lockAtMostFor (${text(lockAtMostFor)}), while the job runs every ` +
        `${text(interval)}: the runs in between find it held; shorten it, with heartbeat if a run takes that long`,
    );
  }
  if (ms(lockAtMostFor) > ms(target.timeout) + 60_000) {
    Annotations.of(job).addWarningV2(
      "@leasehold/cdk:lockOutlastsFunction",
      `lockAtMostFor is ${text(lockAtMostFor)}, though the function is stopped after ${text(target.timeout)}: ` +
        "after a run dies, the lock is held for the rest; shorten it, or leave it out",
    );
  }
  const isUnwatched = trigger === undefined && (interval === undefined || isBounded);
  if (alarms !== false && isUnwatched && maxInterval === undefined) {
    const unknown = isOnce ? "the job runs a single time" : "the time between runs is not known";
    const reason = interval === undefined ? unknown : "the schedule has a start or an end";
    const advice = isOnce ? "" : ": set maxInterval";
    Annotations.of(job).addInfoV2(
      "@leasehold/cdk:noAlarmForMissedRuns",
      `no alarm watches for runs that stay away${interval === undefined ? " or are skipped in a row" : ""}, because ${reason}${advice}`,
    );
  }
}

function* ofZeros(durations: Readonly<Record<string, Duration | undefined>>): Refusals {
  for (const [prop, duration] of Object.entries(durations))
    if (ms(duration) === 0) yield `${prop} is 0: set a time above that, or leave it out`;
}

/** Milliseconds; NaN without a duration, or if only the deployment knows it, so that every comparison is false. */
function ms(duration: Duration | undefined): number {
  return duration === undefined || duration.isUnresolved() ? Number.NaN : duration.toMilliseconds();
}

function text(duration: Duration | undefined): string | undefined {
  return duration?.toHumanString();
}
