import { Duration } from "aws-cdk-lib";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import { aDuration, aNumber, type Kinds } from "../prop-kinds.ts";
import { aYear, checkedMs } from "../workflow/durations.ts";
import type { TargetSettings } from "./job-target.ts";
import type { JobWork } from "./job-workflow.ts";
import { afterFailure, lockedCall, shortened, whileYoung } from "./locked-call.ts";
import { checkedRetryAttempts, LockedTarget } from "./locked-target.ts";

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
  /** JSONata for the result. */
  readonly result: string;
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
export class LockedTaskTarget extends LockedTarget {
  readonly #task: TaskOfJob;
  readonly #retryAttempts: number;
  readonly #timeout: Duration;

  constructor(
    kind: string,
    task: TaskOfJob,
    { retryAttempts, timeout = Duration.hours(1) }: LockedTaskTargetOptions,
  ) {
    super();
    this.#task = task;
    this.#retryAttempts = checkedRetryAttempts(kind, retryAttempts);
    const ms = checkedMs(`timeout of the ${kind}`, timeout, Duration.minutes(1), aYear);
    this.#timeout = Duration.seconds(Math.ceil(ms / 1000));
  }

  protected work(job: Construct, settings: TargetSettings): JobWork {
    const timeout = this.#timeout;
    const { state, statements, result, noRoom, unclear } = this.#task(job, settings, timeout);
    const Retry = [
      whileYoung(noRoom, settings.maxEventAge),
      // Another task would begin beside the task that may still run.
      { ErrorEquals: [...unclear, "States.Timeout"], MaxAttempts: 0 },
      afterFailure(this.#retryAttempts),
    ];
    const work = lockedCall(job, settings, {
      task: { ...state, Retry, TimeoutSeconds: timeout.toSeconds() },
      result: shortened(result, "what the task returned is too long to be kept"),
      unclear,
      endsWithin: timeout.toSeconds() + stopsWithin,
      stopping: ["States.Timeout"],
      stopsWithin,
      tooLarge: {
        Error: "TaskAnswerTooLargeError",
        Cause:
          "what the task was sent, or what it returned, is more than the 256 KiB that Step Functions takes: " +
          "keep it elsewhere, and return where it is",
      },
    });
    return { work, statements };
  }
}
