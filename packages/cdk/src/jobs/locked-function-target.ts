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
