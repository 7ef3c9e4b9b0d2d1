import type { Item } from "../store.ts";
import { type Clock, deferred, settles } from "../time/clock.ts";
import { LeaseMemory } from "./lease-memory.ts";

/** What a waiter sends: a read, or a write that may win the lease. */
type Step = "look" | "try";

/** A waiter does not wait for longer than this for another's look or try, which may hang, or be throttled. */
const longestStepMs = 1_000;

/** More waiters do not make the looks come more often. */
const mostCrowd = 4;

/** A look or a try that is under way. */
interface UnderWay {
  readonly done: Promise<void>;
  /** On the monotonic clock. */
  readonly since: number;
}

/**
 * What the waiters of one client share while they wait for the same item without an order: the answers to their looks, and
 * one look and one try at a time.
 *
 * Nobody depends on it: each waiter keeps a timer of its own, by which it looks and tries if no other waiter has.
 */
export class SharedLooks {
  readonly #listeners = new Set<(item: Item | undefined) => void>();
  readonly #underWay = new Map<Step, UnderWay>();

  /** How many waiters there are, as far as that makes looks come more often. */
  get crowd(): number {
    return Math.max(1, Math.min(this.#listeners.size, mostCrowd));
  }

  get isInUse(): boolean {
    return this.#listeners.size > 0;
  }

  /** Tells a waiter of all that others see; the result ends that. */
  join(listener: (item: Item | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells all waiters, at the moment at which an answer has come, what it shows. */
  tell(item: Item | undefined): void {
    for (const listener of [...this.#listeners]) listener(item);
  }

  /**
   * Begins a look or a try once no other one is under way, or the other one takes too long; the result ends it. Gives
   * undefined where `isMoot` says meanwhile that it is not needed. Rejects with the signal's reason.
   */
  async begin(
    step: Step,
    clock: Clock,
    isMoot: () => boolean,
    { withinMs, signal }: { readonly withinMs: number; readonly signal?: AbortSignal | undefined },
  ): Promise<(() => void) | undefined> {
    const until = clock.monotonic() + withinMs;
    for (;;) {
      if (isMoot()) return undefined;
      const now = clock.monotonic();
      const other = this.#underWay.get(step);
      const leftMs = Math.min(until, (other?.since ?? now) + longestStepMs) - now;
      if (other === undefined || leftMs <= 0) break;
      await settles(clock, other.done, leftMs, signal);
    }
    const done = deferred<void>();
    const own: UnderWay = { done: done.promise, since: clock.monotonic() };
    this.#underWay.set(step, own);
    return () => {
      if (this.#underWay.get(step) === own) this.#underWay.delete(step);
      done.resolve();
    };
  }
}

/** What the waiters of each client share. */
export const sharedLooks: LeaseMemory<SharedLooks> = new LeaseMemory(
  () => new SharedLooks(),
  ({ isInUse }) => isInUse,
);
