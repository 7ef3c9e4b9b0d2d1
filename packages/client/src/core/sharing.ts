import { type Clock, settles } from "../base/clock.ts";
import { InvalidOptionsError, LeaseUnavailableError, SlotMismatchError } from "../base/errors.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { callBudgetMs } from "../base/timed-call.ts";

/** What a caller that shares a lease asks for. */
export interface SharedTimes {
  /** How long its renewals have to last from now on. @default - as long as they do */
  readonly askedDurationMs?: number | undefined;
  /** @default 0 */
  readonly lockAtLeastForMs?: number;
}

/** A lease that the calls of one owner may share. */
export interface Shareable {
  readonly record: LeaseRecord;
  readonly slot: string | undefined;
  /** How much longer it protects its holder, in milliseconds; 0 once it does not. */
  remainingMs(): number;
  /** Adds a handle. The lease ends with the last one. */
  retain(): void;
  suit(times: SharedTimes): Promise<void>;
  release(completed: boolean): Promise<unknown>;
  onEnd(listener: () => void): void;
}

/** The lease that an owner wants, and the slot that it stands for. */
interface Wish extends SharedTimes {
  readonly key: string;
  readonly sortKey: string;
  readonly owner: string;
  readonly slot: string | undefined;
  /** JSON text. @default - any */
  readonly data?: string | undefined;
  /** What the owner's leases of one item must have in common to be shared. */
  readonly shareKey?: string | undefined;
}

/** How long a caller waits for another call of its own owner. */
interface SiblingWait {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Shares an owner's lease in this client with further calls of the same owner, without a request. */
export class Sharing {
  readonly #clock: Clock;
  /** An owner's lease, or the call that is acquiring it. */
  readonly #entries = new Map<string, Shareable | Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the owner's live leases, each with one more handle, and acquires the missing ones together. Concurrent
   * callers share them.
   *
   * While it waits for another call of the same owner, it reserves nothing, so two calls cannot wait for each other. It
   * waits as long as its own patience allows, or a call to the service may take, whichever is longer. Rejects with
   * LeaseUnavailableError at the end of that time, with SlotMismatchError if the owner's lease stands for another slot,
   * with InvalidOptionsError if it has another payload, with the signal's reason, and with the errors of `win` and of a
   * renewal for a longer duration. After a rejection nothing stays retained.
   */
  async share<W extends Wish, Lease extends Shareable>(
    wishes: readonly W[],
    patience: SiblingWait,
    win: (missing: readonly W[]) => Promise<readonly Lease[]>,
  ): Promise<Lease[]> {
    const startedAt = this.#clock.monotonic();
    for (;;) {
      const winning = wishes.filter((wish) => this.#entries.get(idOf(wish)) instanceof Promise);
      const [first] = winning;
      if (first === undefined) break;
      // Ignored: the acquiring calls get the errors.
      const all = Promise.allSettled(winning.map((wish) => this.#entries.get(idOf(wish))));
      const leftMs = Math.max(patience.waitMs, callBudgetMs) - (this.#clock.monotonic() - startedAt);
      const hasEnded = leftMs > 0 && (await settles(this.#clock, all, leftMs, patience.signal));
      if (!hasEnded) throw new LeaseUnavailableError(first.key, undefined, 0);
    }
    // No await until the entries are set.
    const held = new Map<W, Lease>();
    for (const wish of wishes) {
      // All leases of one client are of one class.
      const lease = this.#liveLease(wish) as Lease | undefined;
      if (lease !== undefined) held.set(wish, lease);
    }
    const shared = [...held];
    for (const [, lease] of shared) lease.retain();
    const missing = wishes.filter((wish) => !held.has(wish));
    try {
      if (missing.length > 0) {
        const winning = win(missing);
        for (const wish of missing) this.#entries.set(idOf(wish), winning);
        const won = await winning.catch((error: unknown) => {
          for (const wish of missing) this.#entries.delete(idOf(wish));
          throw error;
        });
        for (const [index, lease] of won.entries()) {
          const wish = missing[index] as W;
          const id = idOf(wish);
          held.set(wish, lease);
          this.#entries.set(id, lease);
          // No other lease takes its place before it has ended.
          lease.onEnd(() => this.#entries.delete(id));
        }
      }
      await Promise.all(shared.map(([wish, lease]) => lease.suit(wish)));
    } catch (error) {
      // The leases that the owner had already go on for their other holders.
      // Ignored: why the others were not won, or why one cannot be shared, comes first; the `error` event tells of a
      // mistake.
      await Promise.allSettled([...held.values()].map((lease) => lease.release(false)));
      throw error;
    }
    return wishes.map((wish) => held.get(wish) as Lease);
  }

  #liveLease(wish: Wish): Shareable | undefined {
    const lease = this.#entries.get(idOf(wish));
    if (lease === undefined || lease instanceof Promise) return undefined;
    if (lease.remainingMs() <= 0) return undefined;
    const { key, slot } = wish;
    const heldSlot = lease.slot;
    if (slot !== undefined && slot !== heldSlot) throw new SlotMismatchError(key, slot, heldSlot);
    const { data } = wish;
    if (data !== undefined && data !== JSON.stringify(lease.record.data)) {
      const finding = "differs from that of the lease that its owner holds already";
      const advice = "leave it out to share that lease";
      throw new InvalidOptionsError("data", data, "the same payload, or none", { finding, advice });
    }
    return lease;
  }
}

function idOf({ key, sortKey, shareKey, owner }: Wish): string {
  return JSON.stringify([key, sortKey, shareKey, owner]);
}
