import type { Duration } from "aws-cdk-lib";
import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import type { IScheduleGroup, ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import type { ILeaseHeartbeat } from "../workflow/lease-heartbeat.ts";
import type { ILeaseWakeup } from "../workflow/lease-wakeup.ts";
import type { ObservabilityProps } from "../workflow/state-machine.ts";
import type { JobOverlap, JobTarget } from "./job-target.ts";
import type { SingletonJobTrigger } from "./singleton-job-trigger.ts";

/**
 * Properties of {@link SingletonJob}.
 *
 * `logLevel`, `logGroup`, `logRetention` and `tracing` apply to the state machines that the job makes: for a locked
 * function or task, and for `overlap: "queue"`.
 */
export interface SingletonJobProps extends ObservabilityProps {
  /** The actions of the job's alarms. @default - none */
  readonly alarmActions?: IAlarmAction[];
  /** Whether the job has alarms. @default true */
  readonly alarms?: boolean;
  /**
   * The queue for runs that could not start, or have finally failed. For messages of a queue it is that queue's own
   * dead-letter queue; name it if the queue is imported. Otherwise a standard queue, because EventBridge takes no FIFO
   * queue. A key of KMS of this app permits what sends to the queue. An imported key has to permit it itself for a rule:
   * `kms:GenerateDataKey` and `kms:Decrypt` to `events.amazonaws.com`.
   *
   * @default - the dead-letter queue of the queue that triggers the job; else an encrypted queue of its own, which keeps them for 14 days and refuses plain HTTP
   */
  readonly deadLetterQueue?: IQueue;
  /**
   * When the schedule ends: no run begins after it. Then the job has no alarm on missed runs, unless `maxInterval` is
   * set. Not for a single run.
   *
   * @default - the schedule has no end
   */
  readonly end?: Date;
  /** Whether the schedule is active, or the queue is read. @default true */
  readonly enabled?: boolean;
  /**
   * How often the function renews its lease; below half of lockAtMostFor. A function with heartbeats may run for longer than lockAtMostFor.
   * Not for a locked function, whose keeper has its own.
   *
   * @default - one lease covers a run of up to a minute; a longer one renews a lease of 30 s, unless it has a lockAtMostFor
   */
  readonly heartbeat?: Duration;
  /** The `input` of the job's runs: any JSON value. @default - none */
  readonly input?: unknown;
  /** The job's name in metrics, alarms and events. @default - a unique name made from the construct's path */
  readonly jobName?: string;
  /**
   * The heartbeat that renews the lease of a locked function, or a waiting run's position in the queue; only for these.
   *
   * @default - the stack's heartbeat for this table, which may keep every lock of the table
   */
  readonly keeper?: ILeaseHeartbeat;
  /**
   * The key of the lock that the runs share. Jobs with one key exclude each other. With `once` they also share their
   * slots: a run skips a time at which, or after which, the other job has run. So set `once: false` for both.
   *
   * @default - the job's name
   */
  readonly key?: string;
  /**
   * How long the lock is held after a run has begun, however soon the run ends (its cooldown). It should be longer
   * than the clocks differ, so that a late trigger of the same time is refused. At most lockAtMostFor, and shorter
   * than the interval. Where a workflow holds the lock, a run that fails or is stopped frees it at once.
   *
   * @default - the lock is free when the run ends
   */
  readonly lockAtLeastFor?: Duration;
  /**
   * How long the lock stays held after its run has died.
   *
   * @default - up to a minute, the time that the invocation has left; 30 s beyond, renewed by the function; 3 minutes for
   *   a locked function, whose keeper renews it
   */
  readonly lockAtMostFor?: Duration;
  /**
   * How old a run may be at its start; 1 minute to 24 hours.
   *
   * @default - the interval; maxInterval if the interval is not known; 24 hours without either
   */
  readonly maxEventAge?: Duration;
  /**
   * The longest time between two runs, for the alarm on missed runs; at most 6 days, because CloudWatch looks back 7
   * days. The alarm waits 5 minutes longer, because metrics can be late, and up to a fifth of the time.
   *
   * @default - twice the interval of a rate and the time window; without a rate there is no such alarm
   */
  readonly maxInterval?: Duration;
  /**
   * Whether a scheduled time runs once even if its trigger is delivered twice. It cannot be set with a `trigger`: a
   * done slot excludes all earlier slots, and messages and events may arrive out of order.
   *
   * @default - true with a schedule
   */
  readonly once?: boolean;
  /** What a run does when the lock is held. @default - "skip" with a schedule; "queue" with a trigger, so that no work is lost */
  readonly overlap?: JobOverlap;
  /**
   * At most this many runs of a locked function or task work at once; 1 to 500. Each takes a permit of the semaphore of
   * `key`, which clients share by `new Semaphore(client, key, { permits })`.
   *
   * Needs `once: false`, because a semaphore has no slots: a trigger that is delivered twice is two runs. Also needs
   * `overlap: "skip"`. When a run is stopped by hand or loses its lease, its permit is free at once. Meanwhile its call
   * goes on to its own end, or its task is being stopped.
   *
   * @default - one run at a time
   */
  readonly permits?: number;
  /** How often the scheduler tries again to start a run; 0 to 185. @default 185 */
  readonly retryAttempts?: number;
  /** Address of the runbook that the alarms refer to; an anchor is appended. @default "docs/RUNBOOK.md" */
  readonly runbookUrl?: string;
  /**
   * When the job runs, if it has no `trigger`: `ScheduleExpression.rate(...)`, `.cron({ ..., timeZone })` with all of AWS's syntax
   * (`?`, `L`, `W`, `LW`, `#`), or `.at(date, timeZone)` for a single run.
   */
  readonly schedule?: ScheduleExpression;
  /** @default - the account's default group */
  readonly scheduleGroup?: IScheduleGroup;
  /** The schedule's name: 1 to 64 letters, digits, `-`, `_` or `.`, unique in its group. @default - a unique name */
  readonly scheduleName?: string;
  /** How many skips in a row are too many. @default 5 */
  readonly skipsInARow?: number;
  /**
   * When the schedule begins: no run begins before it. Then the job has no alarm on missed runs, unless `maxInterval`
   * is set. Not for a single run.
   *
   * @default - at once
   */
  readonly start?: Date;
  /** The table of the lock. */
  readonly table: ILeaseTable;
  /** The function or workflow that runs. */
  readonly target: JobTarget;
  /** How late the scheduler may be, to spread the load. @default TimeWindow.off() */
  readonly timeWindow?: TimeWindow;
  /** What starts the runs of a job without a `schedule`: a queue or an event rule. @default - the schedule */
  readonly trigger?: SingletonJobTrigger;
  /**
   * Wakes the run that has waited longest. Needed only for `overlap: "queue"`, and for `"replace"` of a locked
   * function.
   * @default - none
   */
  readonly wakeup?: ILeaseWakeup;
}
