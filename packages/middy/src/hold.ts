import type { Lease } from "@leasehold/client";
import {
  callAfter,
  hasProtected,
  LeaseAbortedError,
  LeaseError,
  LeaseLostError,
  onAbort,
} from "@leasehold/client/internal";
import { complete } from "./completion.ts";
import type { Invocation } from "./invocation.ts";
import type { JobOutcome } from "./invocation-metrics.ts";
import type { MiddlewareSettings } from "./settings.ts";
import { InvocationEndingError, type Lock, type LockSignal } from "./signal.ts";

/**
 * The outcome of an invocation that held the lock.
 *
 * - `succeeded`: its handler has succeeded.
 * - `failed`: its handler has ended with an error.
 * - `unused`: its handler has not run.
 * - `unknown`: its handler may still run.
 */
export type HoldOutcome = "succeeded" | "failed" | "unused" | "unknown";

/** The parts of a hold. */
export interface HoldTerms {
  readonly settings: Pick<
    MiddlewareSettings<never>,
    "clock" | "whenHeld" | "timeoutMarginMs" | "timeoutEarlyInMillis"
  >;
  readonly invocation: Invocation;
  readonly lease: Lease;
  readonly renewEveryMs: number | undefined;
  readonly signal: LockSignal;
  /** Called when the lease was released, or has ended by itself. */
  readonly close: () => void;
  /** Called at the end of the invocation: writes its metrics. */
  readonly measure: (outcome: JobOutcome | undefined) => void;
  /** Removes the SIGTERM listener. */
  readonly stopListening: () => void;
  /** Returns the invocation's answer in place of a result. */
  readonly skipResult: () => unknown;
}

/** One invocation's hold on the lock, to its end. */
export class Hold {
  readonly lock: Lock;
  readonly #terms: HoldTerms;
  readonly #stopRenewing: (() => void) | undefined;
  #loss: LeaseLostError | undefined;
  #leaving: Promise<void> | undefined;

  constructor(terms: HoldTerms) {
    const { lease, signal, renewEveryMs } = terms;
    this.#terms = terms;
    this.lock = {
      lease,
      get signal(): AbortSignal {
        // Reading `held` looks at the clock, and aborts our signal too if the lease has expired.
        void lease.held;
        return signal.signal;
      },
    };
    if (renewEveryMs !== undefined) this.#stopRenewing = renewedInTime(terms, renewEveryMs);
  }

  /**
   * Releases the lock, once: 1 request, none for `unknown`. An unconfirmed release is no error: the lock frees itself
   * when the lease ends. The completion of a slot has to be confirmed, and is repeated while there is time.
   *
   * If the handler succeeded, rejects with LeaseLostError if the lease did not last to the handler's end, unless it was
   * revoked. Also rejects with CompletionFailedError if the slot could not be recorded. A further call waits for the
   * first one.
   */
  leave(outcome: HoldOutcome): Promise<void> {
    // Ignored: the first caller has the error.
    if (this.#leaving !== undefined) return this.#leaving.catch(() => undefined);
    this.#leaving = this.#leave(outcome);
    return this.#leaving;
  }

  /** Whether its lease was revoked for a newer invocation. Then its failure does not count. */
  get isReplaced(): boolean {
    return this.#terms.settings.whenHeld === "replace" && this.#loss?.reason === "revoked";
  }

  /** The invocation's answer in place of a result. */
  skipResult(): unknown {
    return this.#terms.skipResult();
  }

  /** The time that Lambda still leaves the invocation. */
  remainingMs(): number {
    return this.#terms.invocation.remainingMs() ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Whether an invocation that ended with this much time left may have ended without its handler: middy's early timeout
   * does not wait for the handler.
   */
  mayStillRun(remainingMs: number, error: unknown): boolean {
    const { timeoutMarginMs, timeoutEarlyInMillis } = this.#terms.settings;
    // A handler that threw our own reason has seen our signal, and has stopped.
    const thrown = error instanceof LeaseAbortedError ? error.cause : error;
    if (thrown !== undefined && thrown === this.#terms.signal.signal.reason) return false;
    // Timers fire a little late, and the remaining time is cut to whole milliseconds.
    if (remainingMs <= timeoutEarlyInMillis + 2) return true;
    if (!(error instanceof Error) || error.name !== "TimeoutError") return false;
    const { package: thrower } = (error.cause ?? {}) as { readonly package?: unknown };
    return thrower === "@middy/core" || remainingMs <= Math.max(timeoutMarginMs, timeoutEarlyInMillis);
  }

  async #leave(outcome: HoldOutcome): Promise<void> {
    const { lease, invocation, settings, signal, measure, close, stopListening } = this.#terms;
    this.#stopRenewing?.();
    // Reading it looks at the clock: timers of a frozen process do not run.
    this.#loss = lease.loss;
    if (outcome === "unknown") {
      // Before the abort, which writes the metrics, too: one line has all of them.
      measure("jobFailed");
      signal.abort(new InvocationEndingError("timeout"));
      onAbort(lease.signal, close);
      stopListening();
      return;
    }
    signal.dispose();
    const mayBeDone = outcome === "succeeded" && this.#loss === undefined;
    let isDone = false;
    try {
      isDone = mayBeDone && (await complete(lease, invocation, settings.clock));
      if (!mayBeDone) {
        await lease.release().catch((error: unknown) => {
          // The lock frees itself when its lease ends. The handler's own error comes first; events report both.
          if (outcome === "succeeded" && !(error instanceof LeaseError)) throw error;
        });
      }
      // The lease was broken or taken while it had time left, and the handler has not noticed.
      if (mayBeDone && !isDone) this.#loss = new LeaseLostError(lease.key, "taken");
    } finally {
      close();
      const failed = this.isReplaced ? "jobSkipped" : outcome === "unused" ? undefined : "jobFailed";
      measure(isDone ? "jobSucceeded" : failed);
    }
    if (outcome !== "succeeded") return;
    throwUnlessProtected(this.#loss);
  }
}

/**
 * Renews a lease until its invocation's time is over, or until the returned function is called. After that time a
 * handler that never ends, or a stream that nobody reads, would keep the lock for as long as the environment lives.
 */
function renewedInTime({ lease, invocation, settings }: HoldTerms, renewEveryMs: number): () => void {
  const leftMs = invocation.remainingMs();
  const stop = lease.keepAlive(renewEveryMs);
  if (leftMs === undefined) return stop;
  const forget = callAfter(settings.clock, Math.max(0, leftMs), stop, { background: true });
  return () => {
    forget();
    stop();
  };
}

/** A revoked lease has protected its holder to the end; any other loss is thrown. */
export function throwUnlessProtected(loss: LeaseLostError | undefined): void {
  if (!hasProtected(loss)) throw loss;
}
