import { environmentNames } from "@leasehold/client/environment";
import { metricNames } from "@leasehold/client/metrics";
import { Duration, Tokenization } from "aws-cdk-lib";
import { Stats } from "aws-cdk-lib/aws-cloudwatch";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { SqsDestination } from "aws-cdk-lib/aws-lambda-destinations";
import type { IScheduleTarget } from "aws-cdk-lib/aws-scheduler";
import { type ScheduleTargetBaseProps, StepFunctionsStartExecution } from "aws-cdk-lib/aws-scheduler-targets";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import type { JobRunMetrics } from "../monitoring/job-alarms.ts";
import { leaseMetric } from "../table/lease-metrics.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import type { LeaseHeartbeat } from "../workflow/lease-heartbeat.ts";
import type { LeaseWakeup } from "../workflow/lease-wakeup.ts";
import { InvokeFunction } from "./invoke-function.ts";
import { queueWorkflow } from "./queue-workflow.ts";
import type { JobOverlap, SingletonJobProps } from "./singleton-job-props.ts";

/** What a target is told about its job. */
export interface TargetSettings {
  readonly deadLetterQueue: IQueue;
  readonly heartbeat: Duration | undefined;
  readonly jobName: string;
  readonly key: string;
  readonly lockAtLeastFor: Duration | undefined;
  readonly lockAtMostFor: Duration | undefined;
  readonly maxEventAge: Duration;
  readonly once: boolean;
  readonly overlap: JobOverlap;
  readonly table: ILeaseTable;
  /** Both for a queue only. */
  readonly wakeup: LeaseWakeup | undefined;
  readonly keeper: LeaseHeartbeat | undefined;
}

/** A target made ready for one job. */
export interface BoundTarget {
  readonly runs: JobRunMetrics;
  /** What keeps the leases of waiting runs, where the target has made it itself. */
  readonly keeper?: LeaseHeartbeat;
  scheduleTarget(props: ScheduleTargetBaseProps): IScheduleTarget;
}

/** Options of {@link SingletonJobTarget.lambda}. */
export interface FunctionTargetOptions {
  /**
   * How often Lambda repeats a run that failed, after 1 and 2 minutes; 0 to 2. A repetition fails while a run that was
   * killed still has its lease: keep `lockAtMostFor` below a minute, or leave it out, for the first one to find it over.
   * @default 2
   */
  readonly retryAttempts?: number;
}

/** The part of a leased workflow that a job needs. */
export interface LeasedStateMachine {
  readonly stateMachine: IStateMachine;
}

/** What a job runs. */
export abstract class SingletonJobTarget {
  /**
   * A function whose handler takes the lock by `leaseLock()` or `leased()` of `@leasehold/middy`.
   *
   * The job sets all of their settings in the function's environment, so the handler need not repeat any. A function
   * serves one job.
   */
  static lambda(fn: LambdaFunction, options: FunctionTargetOptions = {}): SingletonJobTarget {
    return new FunctionTarget(fn, options);
  }

  /** A leased workflow. It brings its own key, durations and what to do when the lock is held. */
  static workflow(workflow: LeasedStateMachine): SingletonJobTarget {
    return new WorkflowTarget(workflow.stateMachine);
  }

  /** The longest that a run can take; undefined where there is no such bound. */
  abstract readonly timeout: Duration | undefined;
  /** Properties of the job that this target has settings of its own for. */
  abstract readonly ownProps: readonly (keyof SingletonJobProps)[];
  /** Wires the target to its job. */
  abstract bind(job: Construct, settings: TargetSettings): BoundTarget;
}

/** Which job a function serves: its environment has room for one. */
const jobOfFunction = new WeakMap<LambdaFunction, string>();

class FunctionTarget extends SingletonJobTarget {
  readonly timeout: Duration;
  readonly ownProps = [] as const;
  readonly #function: LambdaFunction;
  readonly retryAttempts: number;

  constructor(fn: LambdaFunction, options: FunctionTargetOptions) {
    super();
    this.#function = fn;
    this.retryAttempts = options.retryAttempts ?? 2;
    if (![0, 1, 2].includes(this.retryAttempts)) {
      throw new Error(
        `retryAttempts of the function is ${this.retryAttempts}: Lambda repeats a run 0, 1 or 2 times`,
      );
    }
    // Lambda's own default.
    this.timeout = fn.timeout ?? Duration.seconds(3);
  }

  bind(job: Construct, settings: TargetSettings): BoundTarget {
    const fn = this.#function;
    const other = jobOfFunction.get(fn);
    if (other !== undefined) {
      throw new Error(
        `the function ${fn.node.path} already serves the job ${other}: define a function for each job`,
      );
    }
    jobOfFunction.set(fn, job.node.path);

    setEnvironment(fn, settings);
    settings.table.grants.useLeases(fn, { keys: [settings.key] });
    if (settings.overlap === "queue") {
      const { retryAttempts } = this;
      const { stateMachine, heartbeat } = queueWorkflow(job, fn, { ...settings, retryAttempts });
      const { runs, scheduleTarget } = new WorkflowTarget(stateMachine).bind();
      return {
        runs: { ...runs, lost: leaseMetric(metricNames.lost, subjectOf(settings)) },
        scheduleTarget,
        ...(settings.keeper === undefined ? { keeper: heartbeat } : {}),
      };
    }
    this.#configureRetries(settings);
    return {
      runs: functionRuns(fn, settings),
      scheduleTarget: (props) => new InvokeFunction(fn, props),
    };
  }

  /** What the function's own definition says about its asynchronous invocations stands. */
  #configureRetries({ deadLetterQueue, maxEventAge }: TargetSettings): void {
    if (this.#function.node.tryFindChild("EventInvokeConfig") !== undefined) return;
    this.#function.configureAsyncInvoke({
      retryAttempts: this.retryAttempts,
      maxEventAge: shorter(longer(maxEventAge, retriesTake), Duration.hours(6)),
      onFailure: new SqsDestination(deadLetterQueue),
    });
  }
}

class WorkflowTarget extends SingletonJobTarget {
  readonly timeout = undefined;
  readonly ownProps = ["key", "overlap", "once", "lockAtMostFor", "lockAtLeastFor", "heartbeat"] as const;
  readonly #stateMachine: IStateMachine;

  constructor(stateMachine: IStateMachine) {
    super();
    this.#stateMachine = stateMachine;
  }

  bind(): BoundTarget {
    const stateMachine = this.#stateMachine;
    return {
      runs: {
        succeeded: stateMachine.metricSucceeded(),
        failed: {
          failed: stateMachine.metricFailed(),
          timedOut: stateMachine.metricTimedOut(),
          aborted: stateMachine.metricAborted(),
        },
      },
      scheduleTarget: (props) => new StepFunctionsStartExecution(stateMachine, props),
    };
  }
}

/** A function that is queued for finds the lock free, or is told to come back. */
const whenHeld: Readonly<Record<JobOverlap, string>> = { skip: "skip", queue: "throw", replace: "replace" };

function setEnvironment(fn: LambdaFunction, settings: TargetSettings): void {
  const { lockAtMostFor, heartbeat } = settings;
  // A queue is kept closed by its workflow, whose waiting runs cost nothing.
  const lockAtLeastFor = settings.overlap === "queue" ? undefined : settings.lockAtLeastFor;
  const environment: Record<string, string | undefined> = {
    [environmentNames.tableName]: settings.table.tableName,
    [environmentNames.key]: settings.key,
    [environmentNames.job]: settings.jobName,
    [environmentNames.whenHeld]: whenHeld[settings.overlap],
    [environmentNames.once]: String(settings.once),
    [environmentNames.lockAtMostForMs]: lockAtMostFor && milliseconds(lockAtMostFor),
    [environmentNames.heartbeatMs]: heartbeat && String(heartbeat.toMilliseconds()),
    [environmentNames.lockAtLeastForMs]: lockAtLeastFor && milliseconds(lockAtLeastFor),
  };
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined) fn.addEnvironment(name, value);
  }
}

function functionRuns(fn: LambdaFunction, settings: TargetSettings): JobRunMetrics {
  const subject = subjectOf(settings);
  return {
    succeeded: leaseMetric(metricNames.jobSucceeded, subject),
    // Lambda counts what the handler cannot report: time-outs, crashes, and modules that do not load.
    failed: { failed: fn.metricErrors() },
    undelivered: {
      toDestination: fn.metric("DestinationDeliveryFailures", { statistic: Stats.SUM }),
      toQueue: fn.metric("DeadLetterErrors", { statistic: Stats.SUM }),
    },
    skipped: leaseMetric(metricNames.jobSkipped, subject),
    // A run that is replaced loses its lease on purpose, and no metric tells the two apart.
    ...(settings.overlap === "replace" ? {} : { lost: leaseMetric(metricNames.lost, subject) }),
  };
}

function subjectOf({ table, jobName }: TargetSettings): { readonly tableName: string; readonly job: string } {
  return { tableName: table.tableName, job: jobName };
}

/** Lambda repeats a failed run after 1 minute and after 2 more; one that comes too late finds its slot done. */
const retriesTake = Duration.minutes(5);

function longer(a: Duration, b: Duration): Duration {
  return a.toSeconds() > b.toSeconds() ? a : b;
}

function shorter(a: Duration, b: Duration): Duration {
  return a.toSeconds() < b.toSeconds() ? a : b;
}

/** As text, also where the number is known at deployment only. */
function milliseconds(duration: Duration): string {
  return Tokenization.stringifyNumber(duration.toMilliseconds());
}
