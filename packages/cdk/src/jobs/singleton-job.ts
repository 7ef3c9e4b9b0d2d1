import { type MetricName, metricNames } from "@leasehold/client/metrics";
import { Duration, Names, Stack, Token } from "aws-cdk-lib";
import type { Metric, MetricOptions } from "aws-cdk-lib/aws-cloudwatch";
import { EventField, RuleTargetInput } from "aws-cdk-lib/aws-events";
import type { Grant, IGrantable } from "aws-cdk-lib/aws-iam";
import { ContextAttribute, Schedule, ScheduleTargetInput } from "aws-cdk-lib/aws-scheduler";
import type { IQueue, Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { deadLetterQueueOf, permitKeyToRules, withKeyOf } from "../dead-letter-queue.ts";
import { longestSilence } from "../monitoring/alarm-kinds.ts";
import { JobAlarms, type JobRunMetrics } from "../monitoring/job-alarms.ts";
import { alarmOnRedriveGuard, alarmsOnHeartbeat } from "../monitoring/lease-alarms.ts";
import { aGrantee, checkKind, checkProps, picked } from "../prop-kinds.ts";
import { type ILeaseTable, leaseMetric } from "../table/lease-table-base.ts";
import { observabilityOf } from "../workflow/state-machine.ts";
import type { IBoundTarget } from "./job-target.ts";
import { checkSingletonJob, jobKinds, overlapOf, type ScheduleTiming } from "./singleton-job-checks.ts";
import type { SingletonJobProps } from "./singleton-job-props.ts";

/**
 * A job with one working run at a time, even if its schedule or trigger delivers twice or late, or if an earlier run
 * goes on.
 *
 * A schedule starts it, or a `trigger`: each message of a queue, or each event of a rule.
 *
 * Defines the schedule, the dead-letter queue, the permissions, the function's environment, and alarms that refer to a
 * runbook. The event of a scheduled run is `{ "job", "scheduledTime", "executionId", "input"? }`. Two deliveries with
 * the same `scheduledTime` are one run.
 *
 * The lock is a lease: if a run loses it, the run's signal aborts, and nothing stops the run by force. The lock does
 * not promise that a run happens: the alarms watch for that.
 *
 * ```ts
 * new SingletonJob(this, "CloseUnpaidOrders", {
 *   table,
 *   schedule: ScheduleExpression.rate(Duration.minutes(1)),
 *   target: SingletonJobTarget.lambda(closeUnpaidOrders),
 *   lockAtLeastFor: Duration.seconds(30),
 * });
 * ```
 */
export class SingletonJob extends Construct {
  /** The job's name in metrics, alarms and events. */
  readonly jobName: string;
  /** The key of the runs' lock; undefined for a workflow, which has its own. */
  readonly key: string | undefined;
  /** Undefined for a job with a trigger. */
  readonly schedule: Schedule | undefined;
  /** The queue for runs that could not start, or have finally failed. */
  readonly deadLetterQueue: IQueue;
  /** Undefined if the alarms are turned off. */
  readonly alarms: JobAlarms | undefined;
  /** The metrics of the job's runs. */
  readonly runs: JobRunMetrics;
  /** The ARN of the function or state machine that a run starts, with {@link SingletonJob.runEvent} as its input. */
  readonly targetArn: string;

  readonly #table: ILeaseTable;
  readonly #bound: IBoundTarget;
  readonly #input: unknown;

  constructor(scope: Construct, id: string, props: SingletonJobProps) {
    super(scope, id);
    const given = checkProps(props, jobKinds, "table", "target");
    const timing = checkSingletonJob(this, given);
    const { table, target, trigger } = given;
    const maxInterval = given.maxInterval ?? defaultMaxInterval(given, timing);
    const maxEventAge = given.maxEventAge ?? defaultMaxEventAge(timing.interval ?? maxInterval);

    this.#table = table;
    this.jobName = given.jobName ?? Names.uniqueResourceName(this, { maxLength: 128, separator: "-" });
    const key = given.key ?? this.jobName;
    this.key = "key" in target.refusedProps ? undefined : key;
    this.deadLetterQueue =
      given.deadLetterQueue ?? deadLettersOf(trigger?.sourceQueue) ?? deadLetterQueueOf(this);

    const bound = target.bind(this, {
      table,
      key,
      jobName: this.jobName,
      overlap: overlapOf(given),
      once: given.once ?? trigger === undefined,
      queue: trigger?.sourceQueue,
      permits: given.permits,
      enabled: given.enabled ?? true,
      heartbeat: given.heartbeat,
      lockAtMostFor: given.lockAtMostFor,
      lockAtLeastFor: given.lockAtLeastFor,
      maxEventAge,
      deadLetterQueue: this.deadLetterQueue,
      wakeup: given.wakeup,
      keeper: given.keeper,
      observability: observabilityOf(given),
    });
    this.#bound = bound;
    this.#input = given.input;
    this.runs = bound.runs;
    this.targetArn = bound.arn;
    const delivery = {
      deadLetterQueue: this.deadLetterQueue,
      maxEventAge,
      ...picked(given, "retryAttempts"),
    };
    if (trigger?.sourceRule) permitKeyToRules(this.deadLetterQueue);
    trigger?.sourceRule?.addTarget(bound.ruleTarget({ ...delivery, event: this.#eventOfRule() }));
    this.schedule =
      given.schedule &&
      new Schedule(this, "Schedule", {
        schedule: given.schedule,
        description: `Runs the job ${this.jobName}, one at a time.`,
        enabled: given.enabled ?? true,
        ...picked(given, "scheduleGroup", "timeWindow", "scheduleName", "start", "end"),
        target: withKeyOf(
          this.deadLetterQueue,
          bound.scheduleTarget({
            ...delivery,
            input: ScheduleTargetInput.fromObject(
              this.#eventOf(ContextAttribute.scheduledTime, ContextAttribute.executionId),
            ),
          }),
        ),
      });
    // A run before these permissions exist would fail, and its event would be lost.
    if (bound.permissions) (this.schedule ?? trigger?.sourceRule)?.node.addDependency(bound.permissions);
    const interval = timing.interval ?? maxInterval;
    const settings = { actions: given.alarmActions ?? [], ...picked(given, "runbookUrl") };
    this.alarms =
      given.alarms === false
        ? undefined
        : new JobAlarms(this, "Alarms", {
            jobName: this.jobName,
            deadLetterQueue: this.deadLetterQueue,
            metrics: this.runs,
            // A schedule that is not active runs nothing, and that needs no alarm.
            ...(maxInterval && given.enabled !== false ? { maxInterval } : {}),
            ...(interval ? { interval } : {}),
            ...picked(given, "skipsInARow"),
            ...settings,
          });
    if (this.alarms && bound.redriveGuard) alarmOnRedriveGuard(bound.redriveGuard, settings);
    if (this.alarms && bound.keeper) alarmsOnHeartbeat(bound.keeper, settings);
  }

  /**
   * Returns the event of a run that you start by hand, as JSON text, for the slot of a time. Send it to
   * {@link SingletonJob.targetArn}: the run has that slot, as if the schedule had started it.
   *
   * With `once`, a run skips a slot that is done, or earlier than a done slot. A run refuses a time more than a minute
   * ahead. To run at once, pass the present time: the next scheduled time keeps its own run.
   *
   * Throws for a job with a trigger: put an event, or send a message.
   *
   * ```ts
   * const event = job.runEvent("2026-11-21T08:00:00Z");
   * ```
   *
   * @param scheduledTime an ISO time with its zone
   */
  runEvent(scheduledTime: string): string {
    if (this.schedule === undefined) {
      throw new Error(`the job ${this.jobName} has a trigger: send a message to its queue, or put an event`);
    }
    const isTime = /T.*(Z|[+-]\d\d:\d\d)$/.test(scheduledTime) && !Number.isNaN(Date.parse(scheduledTime));
    if (!(isTime || Token.isUnresolved(scheduledTime))) {
      throw new Error(
        `scheduledTime is ${JSON.stringify(scheduledTime)}: give an ISO time, such as 2026-11-21T08:00:00Z`,
      );
    }
    return Stack.of(this).toJsonString(this.#eventOf(scheduledTime, "by hand"));
  }

  /** Permits a caller to start runs by hand. */
  grantRun(grantee: IGrantable): Grant {
    return this.#bound.grantStart(checkKind("grantee", grantee, aGrantee));
  }

  /** Gives one of the metrics that this job's runs write; a workflow's runs write none. */
  metric(name: MetricName, props?: MetricOptions): Metric {
    return leaseMetric(name, { tableName: this.#table.nameFor(this), job: this.jobName }, props);
  }

  /** How many runs finished their work. */
  metricSucceeded(props?: MetricOptions): Metric {
    return this.metric(metricNames.jobSucceeded, props);
  }

  /** How many runs failed. */
  metricFailed(props?: MetricOptions): Metric {
    return this.metric(metricNames.jobFailed, props);
  }

  /** How many runs found the lock held. */
  metricSkipped(props?: MetricOptions): Metric {
    return this.metric(metricNames.jobSkipped, props);
  }

  /** How many runs found the lock paused by an operator. */
  metricPaused(props?: MetricOptions): Metric {
    return this.metric(metricNames.jobPaused, props);
  }

  /** How many runs lost their lease before they had ended. */
  metricLost(props?: MetricOptions): Metric {
    return this.metric(metricNames.lost, props);
  }

  #eventOf(scheduledTime: string, executionId: string): Record<string, unknown> {
    const input = this.#input === undefined ? {} : { input: this.#input };
    return { job: this.jobName, scheduledTime, executionId, ...input };
  }

  /** By `time`, a replacing run knows which run is newer; only a schedule has a `scheduledTime`. */
  #eventOfRule(): RuleTargetInput {
    return RuleTargetInput.fromObject({
      job: this.jobName,
      time: EventField.time,
      executionId: EventField.eventId,
      input: EventField.fromPath("$"),
    });
  }
}

/** The dead-letter queue of the queue that triggers a job. */
function deadLettersOf(queue: (IQueue & Pick<Queue, "deadLetterQueue">) | undefined): IQueue | undefined {
  if (queue === undefined) return undefined;
  if (queue.deadLetterQueue) return queue.deadLetterQueue.queue;
  throw new Error(
    `the queue ${queue.node.path} shows no dead-letter queue, and a message whose runs always fail would come again ` +
      "until it expires: give the queue one; name that of an imported queue as deadLetterQueue",
  );
}

/** One missed run is tolerated, and the scheduler may be late by its window; undefined beyond CloudWatch's limit. */
function defaultMaxInterval(props: SingletonJobProps, { interval }: ScheduleTiming): Duration | undefined {
  // Before its start and after its end no run is missed.
  if (interval === undefined || props.start !== undefined || props.end !== undefined) return undefined;
  const window = props.timeWindow?.maxWindow ?? Duration.seconds(0);
  const most = interval.plus(interval).plus(window);
  return most.toSeconds() > longestSilence.toSeconds() ? undefined : most;
}

/** A run that is later than the next one is useless; within the scheduler's own limits. */
function defaultMaxEventAge(interval: Duration | undefined): Duration {
  const day = Duration.days(1);
  return interval === undefined || interval.toSeconds() > day.toSeconds() ? day : interval;
}
