import { type Clock, LeaseUnavailableError } from "@leasehold/client";
import type { Hold } from "./hold.ts";
import type { Invocation } from "./invocation.ts";

/** An attempt at an event, from before its acquisition to the end of its lease. */
export interface Attempt {
  hold: Hold | undefined;
  readonly ended: Promise<void>;
}

/**
 * The attempts at events that this process makes, by key and owner.
 *
 * An attempt that resumes an earlier one's lease takes it over at once, for that one is dead. In the same process it may
 * live: its invocation has ended, by an early timeout, and its handler still runs.
 */
export class Attempts {
  readonly #clock: Clock;
  readonly #current = new Map<string, Attempt>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes an attempt; the function that it resolves to notes its end.
   *
   * With `alone` it waits first for the end of an earlier attempt at the same event, which is that of its lease. Rejects
   * with LeaseUnavailableError at the deadline, on the monotonic clock, and with the signal's reason.
   */
  async begin(
    invocation: Invocation,
    attempt: Attempt,
    wait: { readonly alone: boolean; readonly deadline: number; readonly signal: AbortSignal },
  ): Promise<() => void> {
    const id = idOf(invocation);
    for (;;) {
      const earlier = wait.alone ? this.#current.get(id) : undefined;
      // Asking for the loss looks at the clock: timers do not run in a frozen process.
      if (earlier === undefined || earlier.hold?.lock.lease.loss !== undefined) break;
      await this.#endOf(earlier, invocation, wait);
    }
    this.#current.set(id, attempt);
    return () => {
      if (this.#current.get(id) === attempt) this.#current.delete(id);
    };
  }

  async #endOf(
    { hold, ended }: Attempt,
    { key, owner }: Invocation,
    { deadline, signal }: { readonly deadline: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const clock = this.#clock;
    const leftMs = deadline - clock.monotonic();
    if (leftMs <= 0) {
      const { expiresAt = clock.now() } = hold?.lock.lease ?? {};
      const retryAfterMs = Math.max(0, expiresAt - clock.now());
      throw new LeaseUnavailableError(key, { owner, expiresAt, inCooldown: false }, retryAfterMs);
    }
    signal.throwIfAborted();
    await new Promise<void>((resolve) => {
      const cancel = clock.schedule(resolve, leftMs);
      const onEnd = (): void => {
        cancel();
        resolve();
      };
      void ended.then(onEnd);
      signal.addEventListener("abort", onEnd, { once: true });
    });
  }
}

function idOf({ key, owner }: Invocation): string {
  return JSON.stringify([key, owner]);
}
