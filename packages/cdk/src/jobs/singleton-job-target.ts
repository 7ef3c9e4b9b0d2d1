import type { IFunction } from "aws-cdk-lib/aws-lambda";
import {
  aDuration,
  aFunction,
  aNumber,
  aRedriveGuard,
  aStateMachine,
  checkKind,
  checkProps,
  type Kinds,
} from "../prop-kinds.ts";
import { FunctionTarget, type FunctionTargetOptions } from "./function-target.ts";
import { JobTarget } from "./job-target.ts";
import { LockedFunctionTarget, type LockedFunctionTargetOptions } from "./locked-function-target.ts";
import { type LeasedStateMachine, WorkflowTarget } from "./workflow-target.ts";

const functionKinds: Kinds<FunctionTargetOptions> = { retryAttempts: aNumber };
const lockedKinds: Kinds<LockedFunctionTargetOptions> = { retryAttempts: aNumber, timeout: aDuration };
const workflowKinds: Kinds<LeasedStateMachine> = {
  stateMachine: aStateMachine,
  redriveGuard: aRedriveGuard,
};

/** What a job runs. */
export abstract class SingletonJobTarget extends JobTarget {
  /**
   * A function whose own handler takes the lock, by `leaseLock()` or `leased()` of `@leasehold/middy`. A handler that
   * does not take it runs WITHOUT the lock: the construct cannot see that, and runs overlap without a warning. For
   * such a function, or one in another language than JavaScript, use `lockedLambda`.
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
   * Any function, which need not know of the lock: in any language, an alias, a version, or a function that is
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
   * - When these fail too, the run fails with the function's own error, and the lock is released.
   * - `lockAtMostFor` is how long the lock is held after the keeper itself has died (3 minutes by default).
   *   `heartbeat` is refused: the keeper has its own.
   * - `queue` and `replace` need a table with a stream, and a `wakeup`. When a run is replaced, or stopped by hand,
   *   its call goes on to its own end. The next run has the lock, and waits until that call must have ended.
   * - With `permits`, at most so many runs call the function at once. Their calls leave no marks: when a run is stopped, the
   *   next run begins beside its call. A run costs 2 writes and 2 transitions less.
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
    return new LockedFunctionTarget(checkKind("fn", fn, aFunction), checkProps(options, lockedKinds));
  }

  /** A leased workflow. It brings its own key, durations and what to do when the lock is held. */
  static workflow(workflow: LeasedStateMachine): JobTarget {
    return new WorkflowTarget(checkProps(workflow, workflowKinds, "stateMachine"));
  }
}
