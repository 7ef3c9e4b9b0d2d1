import { Duration } from "aws-cdk-lib";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { aDuration, aNumber, checkWholeNumber, type Kinds } from "../prop-kinds.ts";
import { aYear, checkedMs } from "../workflow/durations.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import { callOfLocked } from "./function-calls.ts";
import { type IBoundTarget, type JobOverlap, JobTarget, type TargetSettings } from "./job-target.ts";
import { lockedCall, retriesOf } from "./locked-call.ts";
import { type JobWork, jobWorkflow } from "./workflow-target.ts";

const whenHeld: Readonly<Record<JobOverlap, WhenHeld>> = { skip: "skip", queue: "wait", replace: "replace" };

/** Work without its own locking code, behind a workflow that holds the lock. */
class LockedTarget extends JobTarget {
  /** The keeper renews the lease while a run takes. */
  readonly timeout = undefined;
  readonly refusedProps = {
    heartbeat:
      "for work that is locked from outside: leave it out, for a keeper renews the lease every third of lockAtMostFor",
  };
  override readonly takesPermits = true;
  readonly waitingOverlaps: JobOverlap[] = ["queue", "replace"];
  readonly keptOverlaps: JobOverlap[] = ["skip", "queue", "replace"];

  /** Defines the states that work under the lease. */
  readonly #work: (job: Construct, settings: TargetSettings) => JobWork;

  constructor(work: (job: Construct, settings: TargetSettings) => JobWork) {
    super();
    this.#work = work;
  }

  bind(job: Construct, settings: TargetSettings): IBoundTarget {
    const { lockAtMostFor } = settings;
    if (lockAtMostFor) checkedMs("lockAtMostFor", lockAtMostFor, Duration.seconds(3), aYear);
    const bound = jobWorkflow(job, "Workflow", settings, {
      key: settings.key,
      whenHeld: whenHeld[settings.overlap],
      leaseDuration: lockAtMostFor,
      ...this.#work(job, settings),
    });
    if (settings.overlap !== "replace") return bound;
    // A replaced run is stopped on purpose.
    const { aborted: _, ...failed } = bound.runs.failed;
    return { ...bound, runs: { ...bound.runs, failed } };
  }
}

/** Options of {@link SingletonJobTarget.lockedLambda}. */
export interface LockedFunctionTargetOptions {
  /**
   * How often a run repeats the function after the function's own error or timeout; 0 to 20. The run keeps its lease
   * meanwhile. It repeats after about 5 seconds, then after twice as long each time, up to 10 minutes.
   * @default 2
   */
  readonly retryAttempts?: number;
  /**
   * The function's own timeout, 1 second to 15 minutes. If Lambda's answer is lost, the run waits this long before it
   * calls again or releases the lock, so that no two calls overlap. Never state less than the function's real timeout.
   *
   * @default - the function's; 15 minutes for an alias, a version or an imported function, whose timeout is not known
   */
  readonly timeout?: Duration;
}

/** A function without its own locking code, behind a workflow that holds the lock. */
export function lockedFunction(fn: IFunction, options: LockedFunctionTargetOptions): JobTarget {
  const retryAttempts = checkedRetryAttempts("function", options);
  const [least, most] = [Duration.seconds(1), Duration.minutes(15)];
  const timeout = options.timeout && checkedTimeout("function", options.timeout, least, most);
  return new LockedTarget((job, settings) => callOfLocked(job, fn, { ...settings, retryAttempts, timeout }));
}

/** Options of every target that is a task of another service. */
export interface LockedTaskTargetOptions {
  /**
   * How often a run repeats the task after the task's own error; 0 to 20. The run keeps its lease meanwhile. It repeats
   * after about 5 seconds, then after twice as long each time, up to 10 minutes. A task that took longer than `timeout`
   * is not repeated.
   * @default 2
   */
  readonly retryAttempts?: number;
  /**
   * How long the task may take, including its wait for capacity; whole seconds from 1 minute to 365 days. After that
   * Step Functions stops it, and the run fails with States.Timeout.
   * @default Duration.hours(1)
   */
  readonly timeout?: Duration;
}

export const taskKinds: Kinds<LockedTaskTargetOptions> = { retryAttempts: aNumber, timeout: aDuration };

/** A task of another service: how to run it, and the meaning of its errors. */
export interface ServiceTask {
  /** The Task state that starts the task and waits for its end, without retries and exits. */
  readonly state: Readonly<Record<string, unknown>>;
  /** The workflow's permissions: to start the task, describe it, and stop it. */
  readonly statements: readonly PolicyStatement[];
  /** JSONata for the result. @default "$states.result" */
  readonly result?: string;
  /** Errors that say that nothing was started, because there was no capacity. */
  readonly noRoom: readonly string[];
  /** Errors that leave open whether the task was started. */
  readonly unclear: readonly string[];
}

/** Defines a job's task; `timeout` is for services that enforce a timeout themselves. */
export type TaskOfJob = (job: Construct, settings: TargetSettings, timeout: Duration) => ServiceTask;

/**
 * How long a stopped task may go on: a Fargate container has at most 2 minutes between its signals. Step Functions and
 * the service take up to a minute to pass on the stop.
 */
const stopsWithin = Duration.minutes(3).toSeconds();

/** A task of another service, behind a workflow that holds the lock. */
export function lockedTask(
  kind: string,
  task: TaskOfJob,
  options: LockedTaskTargetOptions,
  longest: Duration = aYear,
): JobTarget {
  const retryAttempts = checkedRetryAttempts(kind, options);
  const timeout = checkedTimeout(kind, options.timeout ?? Duration.hours(1), Duration.minutes(1), longest);
  return new LockedTarget((job, settings) => {
    const { state, statements, result = "$states.result", noRoom, unclear } = task(job, settings, timeout);
    // Another task would begin beside the task that may still run.
    const afterUnclear = { ErrorEquals: [...unclear, "States.Timeout"], MaxAttempts: 0 };
    const Retry = retriesOf({ noRoom, afterUnclear, retryAttempts }, settings.maxEventAge);
    const work = lockedCall(job, settings, {
      what: "task",
      task: { ...state, Retry, TimeoutSeconds: timeout.toSeconds() },
      result,
      unclear,
      endsWithin: timeout.toSeconds() + stopsWithin,
      stopping: ["States.Timeout"],
      stopsWithin,
    });
    return { work, statements };
  });
}

/** Returns a timeout in whole seconds. */
function checkedTimeout(kind: string, timeout: Duration, least: Duration, most: Duration): Duration {
  return Duration.seconds(Math.ceil(checkedMs(`timeout of the ${kind}`, timeout, least, most) / 1000));
}

/** Returns how often work is repeated after its own error. */
function checkedRetryAttempts(kind: string, { retryAttempts = 2 }: { retryAttempts?: number }): number {
  checkWholeNumber(`retryAttempts of the ${kind}`, retryAttempts, 0, 20);
  return retryAttempts;
}
