import type { Clock, Lease } from "@leasehold/client";
import { brandClass, check, LeaseError, onAbort } from "@leasehold/client/internal";
import type { Context } from "aws-lambda";

/** The lock as a handler sees it. */
export interface Lock {
  readonly lease: Lease;
  /**
   * Aborts when the handler should stop: with a LeaseLostError when the lease is lost or revoked, and with an
   * {@link InvocationEndingError} shortly before the function's timeout and when the environment shuts down.
   *
   * Reading it looks at the clock, because the timers of a process that was frozen may be late.
   */
  readonly signal: AbortSignal;
}

/**
 * Gives the lock to the context. It is not enumerable, so that printing the context does not print the token. Throws
 * InvalidOptionsError if the context accepts no member.
 */
export function setLock(context: Context, value: Lock | undefined): void {
  const property = { value, writable: true, configurable: true, enumerable: false };
  check(
    Reflect.defineProperty(Object(context), "lock", property),
    "context",
    "one that is frozen",
    "Lambda's context, which takes the member lock",
  );
}

/** The invocation has no time left: the handler should stop now, while it can do so in order. */
export class InvocationEndingError extends LeaseError {
  static {
    brandClass(InvocationEndingError, "InvocationEndingError");
  }
  declare readonly reason: "timeout" | "shutdown";

  constructor(reason: "timeout" | "shutdown") {
    super(
      "LEASE_INVOCATION_ENDING",
      reason === "timeout"
        ? "the function is about to time out: stop in order, and leave the rest to the next invocation"
        : "the environment is shutting down: stop in order",
      { reason },
    );
  }
}

/** One signal made of everything that should stop a handler. */
export class LockSignal {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #deadline = Number.POSITIVE_INFINITY;
  #detach: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    if (this.#clock.monotonic() >= this.#deadline) this.abort(new InvocationEndingError("timeout"));
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Aborts when another signal does, with its reason. */
  follow(other: AbortSignal | undefined): void {
    this.#detach.push(onAbort(other, (reason) => this.abort(reason)));
  }

  /** Aborts after a time; its timer does not keep the process alive. */
  timeoutIn(delayMs: number): void {
    this.#deadline = this.#clock.monotonic() + delayMs;
    this.#detach.push(this.#clock.schedule(() => this.signal, delayMs, { background: true }));
  }

  /** Follows nothing any more. */
  dispose(): void {
    this.#deadline = Number.POSITIVE_INFINITY;
    for (const detach of this.#detach) detach();
    this.#detach = [];
  }
}
