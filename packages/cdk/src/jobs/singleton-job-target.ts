import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import {
  aDuration,
  aFlag,
  aFunction,
  aListOf,
  aNumber,
  aRedriveGuard,
  aStateMachine,
  aText,
  checkKind,
  checkProps,
  having,
  type Kinds,
} from "../prop-kinds.ts";
import { FunctionTarget, type FunctionTargetOptions } from "./function-target.ts";
import { JobTarget } from "./job-target.ts";
import {
  type LockedFunctionTargetOptions,
  type LockedTaskTargetOptions,
  lockedFunction,
  lockedTask,
  taskKinds,
} from "./locked-target.ts";
import {
  type BatchJobTargetOptions,
  batchJob,
  type EcsTaskTargetOptions,
  ecsTask,
  execution,
  type GlueJobTargetOptions,
  glueJob,
  longestGlueTimeout,
} from "./service-tasks.ts";
import { type LeasedStateMachine, WorkflowTarget } from "./workflow-target.ts";

const functionKinds: Kinds<FunctionTargetOptions> = { retryAttempts: aNumber };
const workflowKinds: Kinds<LeasedStateMachine> = {
  stateMachine: aStateMachine,
  redriveGuard: aRedriveGuard,
};
const ecsKinds: Kinds<EcsTaskTargetOptions> = {
  ...taskKinds,
  cluster: having("a cluster of aws-ecs", "clusterArn", "vpc", "node"),
  taskDefinition: having(
    "a task definition of aws-ecs, defined in this app",
    "family",
    "networkMode",
    "node",
  ),
  launchTarget: having("an EcsFargateLaunchTarget or an EcsEc2LaunchTarget", "bind"),
  containerOverrides: aListOf(having("an override with a containerDefinition", "containerDefinition")),
  subnets: having("a selection of subnets"),
  securityGroups: aListOf(having("a security group", "securityGroupId")),
  assignPublicIp: aFlag,
  propagatedTagSource: aText,
  enableExecuteCommand: aFlag,
  cpu: aText,
  memoryMiB: aText,
};
const batchKinds: Kinds<BatchJobTargetOptions> = {
  ...taskKinds,
  jobDefinitionArn: aText,
  jobQueueArn: aText,
  arraySize: aNumber,
  containerOverrides: having("an object of overrides"),
  dependsOn: aListOf(having("a job that it depends on")),
  payload: having("a TaskInput", "type", "value"),
  attempts: aNumber,
  tags: having("an object of tags"),
};
const glueKinds: Kinds<GlueJobTargetOptions> = {
  ...taskKinds,
  glueJobName: aText,
  arguments: having("an object of texts"),
  securityConfiguration: aText,
  notifyDelayAfter: aDuration,
  workerConfiguration: having("a worker configuration", "numberOfWorkers"),
  executionClass: aText,
};

/** The work of a job. */
export abstract class SingletonJobTarget extends JobTarget {
  /**
   * A function whose own handler acquires the lock, by `leaseLock()` or `leased()` of `@leasehold/middy`. A handler
   * that does not acquire it runs WITHOUT the lock: the construct cannot see that, and runs overlap without a warning.
   * For such a function, or one in another language than JavaScript, use `lockedLambda`.
   *
   * To check: after the job's first run its table has an item with `pk` = the job's key and `sk` = `lease`. Only a
   * handler that takes the lock writes it. Runs of a handler that does not take the lock also report nothing, so the
   * alarm DidNotRun goes off although the function runs.
   *
   * The job sets all of the middleware's settings in the function's environment, so the handler need not repeat them.
   * A function serves one job. An alias or a version has to be of the function's `currentVersion`, which is published
   * with those settings. Any other version, and a function that is defined elsewhere, is refused at synth.
   *
   * ```ts
   * const target = SingletonJobTarget.lambda(closeUnpaidOrders, { retryAttempts: 0 });
   * ```
   */
  static lambda(fn: IFunction, options: FunctionTargetOptions = {}): JobTarget {
    return new FunctionTarget(checkKind("fn", fn, aFunction), checkProps(options, functionKinds));
  }

  /**
   * Any function, even without its own locking code: in any language, an alias, a version, or a function that is
   * defined elsewhere.
   *
   * A small workflow takes the lock, calls the function, waits for its answer, and releases the lock; a keeper renews
   * the lease meanwhile. The function is never called without the lease. Its event is that of `lambda`, and
   * `fencingToken`, a number that only grows. A function that stores this number with its writes, and refuses to
   * write over a larger one, is safe from late calls. Its result is the execution's, up to 60,000 characters.
   *
   * - A throttled call is repeated until the run is as old as `maxEventAge`, and an error of the function's own
   *   `retryAttempts` times. After an error of Lambda's that does not say whether the function runs, the workflow
   *   waits until the function must have ended, and calls it up to 3 more times.
   * - When these calls fail too, the run fails with the function's own error, and the lock is released.
   * - `lockAtMostFor` is how long the lock is held after the keeper itself has died (3 minutes by default).
   *   `heartbeat` is refused: the keeper has its own.
   * - `queue` and `replace` need a table with a stream, and a `wakeup`. When a run is replaced, or stopped by hand,
   *   its call goes on to its own end. The next run has the lock, and waits until that call must have ended.
   * - With `permits`, at most that many runs call the function at once. Their calls leave no marks: when a run is
   *   stopped, the next run begins beside its call. A run costs 2 writes and 2 transitions less.
   * - The job's runs are executions: `job.runs` counts them, and a skipped one has succeeded. The function must be in
   *   the job's region. A function of another account has to permit the workflow's role to invoke it.
   *
   * Costs 9 state transitions and 5 writes a run, and those of its keeper.
   *
   * ```ts
   * const target = SingletonJobTarget.lockedLambda(reportInPython, { timeout: Duration.minutes(5) });
   * ```
   */
  static lockedLambda(fn: IFunction, options: LockedFunctionTargetOptions = {}): JobTarget {
    return lockedFunction(checkKind("fn", fn, aFunction), checkProps(options, taskKinds));
  }

  /**
   * A task of ECS, on Fargate or EC2, whose containers need no locking code.
   *
   * A small workflow takes the lock, runs the task, waits for its end, and releases the lock; a keeper renews the lease
   * meanwhile. The task's default container gets `LEASEHOLD_JOB`, `LEASEHOLD_KEY`, `LEASEHOLD_SLOT` (the scheduled time),
   * `LEASEHOLD_FENCING_TOKEN` and `LEASEHOLD_INPUT` (the job's `input`, as JSON) in its environment.
   *
   * - A task whose container ends with another code than 0 has failed. It is run again `retryAttempts` times, and then
   *   the run fails and the lock is released.
   * - If ECS has no capacity, or throttles, the start is repeated until the run is as old as `maxEventAge`.
   * - When the lease is lost, the run is replaced or stopped, or `timeout` is over, Step Functions stops the task: its
   *   containers get SIGTERM, and SIGKILL after their `stopTimeout`. The next run has the lock, and waits for 3 minutes
   *   before it starts its task. Step Functions does not promise the stop: fence your writes.
   * - If the answer to the start is lost, the run holds the lock for the `timeout` and 3 minutes, and then fails.
   * - `lockAtMostFor`, `queue` and `replace` are as for `lockedLambda`.
   *
   * The run uses the revision of the task definition that this app deploys: add its containers before the job. Without
   * `securityGroups`, a task with its own network interface gets a security group without inbound rules.
   *
   * Costs what `lockedLambda` costs, and the task.
   *
   * ```ts
   * const target = SingletonJobTarget.ecsTask({ cluster, taskDefinition, launchTarget: new EcsFargateLaunchTarget() });
   * ```
   */
  static ecsTask(options: EcsTaskTargetOptions): JobTarget {
    const given = checkProps(options, ecsKinds, "cluster", "taskDefinition", "launchTarget");
    return lockedTask("ECS task", ecsTask(given), given);
  }

  /**
   * A job of AWS Batch, under the lock in the same way as {@link SingletonJobTarget.ecsTask}, and with the same
   * variables in its container's environment. When its run is stopped, Step Functions terminates the job.
   *
   * `timeout` is the job's too, from its start on. Batch's own repetitions of a job are `attempts`. Not for jobs on EKS
   * or of several nodes, whose environment Batch takes in another form.
   *
   * ```ts
   * const target = SingletonJobTarget.batchJob({ jobDefinitionArn, jobQueueArn, timeout: Duration.hours(6) });
   * ```
   */
  static batchJob(options: BatchJobTargetOptions): JobTarget {
    const given = checkProps(options, batchKinds, "jobDefinitionArn", "jobQueueArn");
    return lockedTask("Batch job", batchJob(given), given);
  }

  /**
   * A job of AWS Glue, under the lock in the same way as {@link SingletonJobTarget.ecsTask}. The variables are
   * arguments of the run: `--LEASEHOLD_FENCING_TOKEN` and so on. When its run is stopped, Step Functions stops the job
   * run. While Glue itself refuses another run of the job, the start is repeated. Glue takes a `timeout` of at most 7 days.
   *
   * ```ts
   * const target = SingletonJobTarget.glueJob({ glueJobName: "nightly-import", timeout: Duration.hours(2) });
   * ```
   */
  static glueJob(options: GlueJobTargetOptions): JobTarget {
    const given = checkProps(options, glueKinds, "glueJobName");
    return lockedTask("Glue job", glueJob(given), given, longestGlueTimeout);
  }

  /**
   * A state machine without its own locking code, such as another team's: any of the type STANDARD, also an imported
   * one, of the job's account and region.
   *
   * A small workflow takes the lock, starts an execution, waits for its end, and releases the lock; a keeper renews the
   * lease meanwhile. The execution's input is the run's event, and `fencingToken`; its output is the run's, up to
   * 60,000 characters. The lock does not keep out other starters of the machine. For your own machine,
   * {@link SingletonJobTarget.workflow} runs the states themselves under the lease.
   *
   * If the machine has a key of KMS, the workflow has to decrypt the output. It may, for a machine of this app. For an
   * imported one, permit it yourself, because otherwise a run fails after the execution has succeeded, and repeats it:
   * `key.grantDecrypt((job.node.findChild("Workflow") as LeasedWorkflow).stateMachine)`.
   *
   * When the lease is lost, the run is replaced or stopped, or `timeout` is over, Step Functions stops the execution.
   * That also stops its tasks of the kind `.sync`. A function that it has called, or a task that it only started, goes
   * on.
   *
   * ```ts
   * const target = SingletonJobTarget.stateMachine(theirMachine, { timeout: Duration.hours(3) });
   * ```
   */
  static stateMachine(machine: IStateMachine, options: LockedTaskTargetOptions = {}): JobTarget {
    const task = execution(checkKind("machine", machine, aStateMachine));
    return lockedTask("state machine", task, checkProps(options, taskKinds));
  }

  /** A leased workflow. It has its own key, durations and behaviour when the lock is held. */
  static workflow(workflow: LeasedStateMachine): JobTarget {
    return new WorkflowTarget(checkProps(workflow, workflowKinds, "stateMachine"));
  }
}
