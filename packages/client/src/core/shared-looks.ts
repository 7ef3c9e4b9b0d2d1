import { type Clock, deferred, settles } from "../base/clock.ts";
import type { Item } from "../base/store.ts";
import { LeaseMemory } from "./lease-memory.ts";

/** What a waiter sends: a read, or a write that may win the lease. */
type Step = "look" | "try";

/** The longest time that a waiter waits for another's look or try, which may hang or be throttled. */
const longestStepMs = 1_000;

/** A larger crowd does not make looks more frequent. */
const mostCrowd = 4;

/** A look or a try that is under way. */
interface UnderWay {
  readonly done: Promise<void>;
  /** On the monotonic clock. */
  readonly since: number;
}

/**
 * What the waiters of one client share while they wait for the same item without an order: the answers to their looks,
 * and one look and one try at a time.
 *
 * No waiter depends on it: each has its own timer, and looks and tries itself if no other waiter has.
 */
export class SharedLooks {
  readonly #listeners = new Set<(item: Item | undefined) => void>();
  readonly #underWay = new Map<Step, UnderWay>();

  /** How many waiters there are, up to the number that makes looks more frequent. */
  get crowd(): number {
    return Math.max(1, Math.min(this.#listeners.size, mostCrowd));
  }

  get isInUse(): boolean {
    return this.#listeners.size > 0;
  }

  /** Tells a waiter what the others see, until it calls the returned function. */
  join(listener: (item: Item | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells all waiters what an answer shows, at the moment of its arrival. */
  tell(item: Item | undefined): void {
    for (const listener of [...this.#listeners]) listener(item);
  }

  /**
   * Begins a look or a try when no other is under way, or when the other takes too long. The returned function ends it.
   * Returns undefined if `isMoot` says meanwhile that it is not needed. Rejects with the signal's reason.
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
