import { Duration } from "aws-cdk-lib";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { callOfLocked, mayInvoke } from "./function-calls.ts";
import type { TargetSettings } from "./job-target.ts";
import type { JobWork } from "./job-workflow.ts";
import { checkedRetryAttempts, LockedTarget } from "./locked-target.ts";

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

/** A function that knows nothing of the lock, behind a workflow that holds it. */
export class LockedFunctionTarget extends LockedTarget {
  readonly #function: IFunction;
  readonly #retryAttempts: number;
  readonly #timeout: Duration | undefined;

  constructor(fn: IFunction, options: LockedFunctionTargetOptions) {
    super();
    this.#function = fn;
    this.#retryAttempts = checkedRetryAttempts("function", options.retryAttempts);
    this.#timeout = options.timeout;
    checkTimeout(options.timeout);
  }

  protected work(job: Construct, settings: TargetSettings): JobWork {
    const own = { retryAttempts: this.#retryAttempts, timeout: this.#timeout };
    return {
      work: callOfLocked(job, this.#function, { ...settings, ...own }),
      statements: mayInvoke(this.#function),
    };
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
