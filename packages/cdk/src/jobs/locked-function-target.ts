import { Duration } from "aws-cdk-lib";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { aYear, checkedMs } from "../workflow/durations.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import { callOfLocked, functionWorkflow } from "./function-workflow.ts";
import { type BoundTarget, JobTarget, type TargetSettings } from "./job-target.ts";
import type { JobOverlap } from "./singleton-job-props.ts";

/** Options of {@link SingletonJobTarget.lockedLambda}. */
export interface LockedFunctionTargetOptions {
  /**
   * How often a run repeats the function after an error of its own, a time-out included; 0 to 20. The lease is kept
   * meanwhile. After about 5 seconds, then twice as long each time, up to 10 minutes.
   * @default 2
   */
  readonly retryAttempts?: number;
  /**
   * The function's own timeout, 1 second to 15 minutes. Where Lambda's answer is lost, the run waits for so long before
   * it calls again or lets the lock go, so that no two calls overlap: never state less than the function has.
   *
   * @default - the function's; 15 minutes for an alias, a version or an imported function, which do not tell
   */
  readonly timeout?: Duration;
}

const whenHeld: Readonly<Record<JobOverlap, WhenHeld>> = { skip: "skip", queue: "wait", replace: "replace" };

/** A function that knows nothing of the lock, behind a workflow that holds it. */
export class LockedFunctionTarget extends JobTarget {
  /** The keeper renews the lease for as long as a run takes. */
  readonly timeout = undefined;
  readonly refusedProps = {
    heartbeat:
      "for a function that is locked from outside: leave it out, for a keeper renews the lease every third of lockAtMostFor",
  };
  override readonly takesPermits = true;
  readonly waitingOverlaps = ["queue", "replace"] as const;
  readonly keptOverlaps = ["skip", "queue", "replace"] as const;
  readonly #function: IFunction;
  readonly #options: LockedFunctionTargetOptions & { readonly retryAttempts: number };

  constructor(fn: IFunction, options: LockedFunctionTargetOptions) {
    super();
    this.#function = fn;
    this.#options = { ...options, retryAttempts: options.retryAttempts ?? 2 };
    const { retryAttempts, timeout } = this.#options;
    if (!(Number.isInteger(retryAttempts) && retryAttempts >= 0 && retryAttempts <= 20)) {
      throw new Error(`retryAttempts of the function is ${retryAttempts}: set a whole number from 0 to 20`);
    }
    checkTimeout(timeout);
  }

  bind(job: Construct, settings: TargetSettings): BoundTarget {
    const { retryAttempts, timeout } = this.#options;
    const { lockAtMostFor } = settings;
    if (lockAtMostFor) checkedMs("lockAtMostFor", lockAtMostFor, Duration.seconds(3), aYear);
    const bound = functionWorkflow(job, "Workflow", settings, {
      fn: this.#function,
      key: settings.key,
      whenHeld: whenHeld[settings.overlap],
      leaseDuration: lockAtMostFor,
      work: callOfLocked(job, this.#function, { ...settings, retryAttempts, timeout }),
    });
    if (settings.overlap !== "replace") return bound;
    // A run that is replaced is stopped on purpose.
    const { aborted: _, ...failed } = bound.runs.failed;
    return { ...bound, runs: { ...bound.runs, failed } };
  }
}

function checkTimeout(timeout: Duration | undefined): void {
  if (timeout === undefined) return;
  if (timeout.isUnresolved()) {
    throw new Error("timeout of the function is known at deployment only: state the longest that it can be");
  }
  const seconds = timeout.toSeconds({ integral: false });
  if (seconds < 1 || seconds > 900 || !Number.isInteger(seconds)) {
    throw new Error(
      `timeout of the function is ${timeout.toHumanString()}: set whole seconds from 1 second to ${Duration.minutes(15).toHumanString()}`,
    );
  }
}
