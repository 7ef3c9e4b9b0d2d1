import type { Duration } from "aws-cdk-lib";
import type { IRuleTarget, RuleTargetInput } from "aws-cdk-lib/aws-events";
import type { TargetBaseProps } from "aws-cdk-lib/aws-events-targets";
import type { Grant, IGrantable } from "aws-cdk-lib/aws-iam";
import type { IScheduleTarget } from "aws-cdk-lib/aws-scheduler";
import type { ScheduleTargetBaseProps } from "aws-cdk-lib/aws-scheduler-targets";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type { Construct, IDependable } from "constructs";
import type { JobRunMetrics } from "../monitoring/job-alarms.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import type { ILeaseHeartbeat } from "../workflow/lease-heartbeat.ts";
import type { ILeaseWakeup } from "../workflow/lease-wakeup.ts";
import type { RedriveGuard } from "../workflow/redrive-guard.ts";
import type { ObservabilityProps } from "../workflow/state-machine.ts";

/**
 * What a run does when an earlier run still works.
 *
 * - `skip`: it ends at once, as a success.
 * - `queue`: it waits for its turn, without polling and without a running function, at most maxEventAge. Needs a table
 *   with a stream, and a `wakeup`. A message of a queue waits in that queue, and needs neither.
 * - `replace`: it asks the other run to stop, and starts when that run has released the lock or its lease has ended.
 *   The signal of a function that takes the lock aborts. For a locked function or task the run is stopped, and the newer
 *   run begins when the earlier call or task must have ended.
 */
export type JobOverlap = "skip" | "queue" | "replace";

/** The settings that a job gives to its target. */
export interface TargetSettings {
  readonly deadLetterQueue: IQueue;
  /** Whether the target reads the queue that triggers the job. */
  readonly enabled: boolean;
  readonly heartbeat: Duration | undefined;
  readonly jobName: string;
  readonly key: string;
  readonly lockAtLeastFor: Duration | undefined;
  readonly lockAtMostFor: Duration | undefined;
  readonly maxEventAge: Duration;
  readonly once: boolean;
  readonly overlap: JobOverlap;
  /** How many runs may work at once; undefined for a lock. */
  readonly permits: number | undefined;
  /** The queue whose messages are the runs; undefined if no queue triggers the job. */
  readonly queue: IQueue | undefined;
  readonly table: ILeaseTable;
  /** The wakeup for waiting runs. */
  readonly wakeup: ILeaseWakeup | undefined;
  /** The heartbeat that renews a lease. */
  readonly keeper: ILeaseHeartbeat | undefined;
  /** For the state machines that the target makes. */
  readonly observability: ObservabilityProps;
}

/** The properties that a rule needs of its target. */
export interface JobRuleTargetProps extends TargetBaseProps {
  /** The event of a run. */
  readonly event: RuleTargetInput;
}

/** A target that is bound to one job. */
export interface IBoundTarget {
  readonly runs: JobRunMetrics;
  /** The heartbeat of the runs' leases, if it is the one that the stack has by default. */
  readonly keeper?: ILeaseHeartbeat;
  /** The guard that stops redriven runs; undefined when runs are no leased workflows of this app. */
  readonly redriveGuard?: RedriveGuard | undefined;
  /** Permissions that must exist before a run begins. */
  readonly permissions?: IDependable | undefined;
  /** The ARN of the function or state machine that a run starts. */
  readonly arn: string;
  /** Permits a caller to start runs by hand. */
  grantStart(grantee: IGrantable): Grant;
  scheduleTarget(props: ScheduleTargetBaseProps): IScheduleTarget;
  ruleTarget(props: JobRuleTargetProps): IRuleTarget;
}

/** The work of a job, and what it needs of the job. */
export abstract class JobTarget {
  /** The longest time of a run whose lease is not renewed; undefined when there is no such limit. */
  abstract readonly timeout: Duration | undefined;
  /** Properties of the job that this target does not accept, each with the reason and what to do instead. */
  abstract readonly refusedProps: { readonly [prop: string]: string };
  /** The overlaps with which runs wait, parked in the table: these need its stream and a wakeup. */
  abstract readonly waitingOverlaps: JobOverlap[];
  /** The overlaps with which the target makes a state machine, whose lease a keeper renews. */
  abstract readonly keptOverlaps: JobOverlap[];
  /** Whether a workflow holds the lock: then the lock may also be a permit. */
  readonly takesPermits: boolean = false;
  /** Why no queue can trigger this target, and what to do instead; undefined if one can. */
  readonly refusedQueue: string | undefined =
    "a message is deleted when the run has been started, so that a run that fails would lose it: consume the queue with a " +
    "function of SingletonJobTarget.lambda, or trigger the job by a rule";
  /** Connects the target to its job, and to the queue that triggers it. */
  abstract bind(job: Construct, settings: TargetSettings): IBoundTarget;
}
