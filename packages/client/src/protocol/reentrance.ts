import { LeaseUnavailableError, SlotMismatchError } from "../errors/errors.ts";
import type { Clock } from "../time/clock.ts";
import { Nap } from "../time/nap.ts";
import type { AcquisitionRequest } from "./acquisition.ts";
import { callBudgetMs } from "./context.ts";
import type { Tenancy } from "./tenancy.ts";
import type { Patience } from "./waiting.ts";

/** A lock, who wants it, and for which run. */
type Wish = Pick<AcquisitionRequest, "key" | "place" | "owner" | "slot">;

/** How long a caller waits for another call of its own owner. */
export type OwnPatience = Pick<Patience, "waitMs" | "signal">;

/** An owner's hold on a lock, or the call that is about to win it. */
type Entry = { readonly tenancy: Tenancy } | { readonly winning: Promise<unknown> };

/** Lets an owner that holds a lock in this client in again, without asking the service. */
export class Reentrance {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Gives the owner's live tenancy, retained once more, or wins a new one. Callers at the same time share one. */
  async enter(wish: Wish, patience: OwnPatience, win: () => Promise<Tenancy>): Promise<Tenancy> {
    const [tenancy] = await this.enterAll([wish], patience, async () => [await win()]);
    if (tenancy === undefined) throw new Error("nothing was won");
    return tenancy;
  }

  /**
   * Gives the owner's live tenancies of several locks, retained once more each; those that it lacks are won together.
   *
   * While it waits for another call of the same owner it keeps nothing from anybody, so that two of them cannot wait
   * for each other; and it waits no longer than its own patience allows, or a call to the service may take. Rejects with
   * LeaseUnavailableError when that is over, with SlotMismatchError where the owner's tenancy stands for another slot, with
   * the signal's reason, and with what `win` rejects with; then nothing stays retained.
   */
  async enterAll<W extends Wish>(
    wishes: readonly W[],
    patience: OwnPatience,
    win: (missing: readonly W[]) => Promise<readonly Tenancy[]>,
  ): Promise<Tenancy[]> {
    const startedAt = this.#clock.monotonic();
    for (;;) {
      const winning = this.#winning(wishes);
      const [first] = winning;
      if (first === undefined) break;
      // Ignored: the calls that are to win them have the errors.
      const all = Promise.allSettled(winning.map(({ won }) => won));
      await ownTurn(this.#clock, { key: first.key, startedAt, patience }, all);
    }
    // From here to the entries of those that are to be won nobody else has a turn.
    const held = new Map<W, Tenancy>();
    for (const wish of wishes) {
      const tenancy = this.#liveTenancy(wish);
      if (tenancy !== undefined) held.set(wish, tenancy);
    }
    for (const tenancy of held.values()) tenancy.retain();
    const missing = wishes.filter((wish) => !held.has(wish));
    if (missing.length > 0) {
      const winning = win(missing);
      for (const wish of missing) this.#entries.set(idOf(wish), { winning });
      const won = await winning.catch(async (error: unknown) => {
        for (const wish of missing) this.#entries.delete(idOf(wish));
        // Those that it had already go on for their other holders.
        // Ignored: why the others were not won comes first, and the `error` event tells of a mistake.
        await Promise.allSettled([...held.values()].map((tenancy) => tenancy.release(false)));
        throw error;
      });
      for (const [index, wish] of missing.entries()) {
        const tenancy = won[index];
        if (tenancy === undefined) continue;
        held.set(wish, tenancy);
        this.#keep(idOf(wish), tenancy);
      }
    }
    return wishes.flatMap((wish) => held.get(wish) ?? []);
  }

  /** Those of the locks that another call of the same owner is about to win. */
  #winning(wishes: readonly Wish[]): { readonly key: string; readonly won: Promise<unknown> }[] {
    return wishes.flatMap((wish) => {
      const entry = this.#entries.get(idOf(wish));
      return entry !== undefined && "winning" in entry ? [{ key: wish.key, won: entry.winning }] : [];
    });
  }

  #liveTenancy(wish: Wish): Tenancy | undefined {
    const entry = this.#entries.get(idOf(wish));
    if (entry === undefined || !("tenancy" in entry)) return undefined;
    const { tenancy } = entry;
    if (tenancy.validity.remainingMs() <= 0) return undefined;
    const { key, slot } = wish;
    const heldSlot = tenancy.terms.slot;
    if (slot !== undefined && slot !== heldSlot) throw new SlotMismatchError(key, slot, heldSlot);
    return tenancy;
  }

  #keep(id: string, tenancy: Tenancy): void {
    const entry = { tenancy };
    this.#entries.set(id, entry);
    tenancy.onEnd(() => {
      if (this.#entries.get(id) === entry) this.#entries.delete(id);
    });
  }
}

function idOf({ key, place, owner }: Wish): string {
  return JSON.stringify([key, place, owner]);
}

/**
 * Waits until another call of the same owner has ended, in whatever way.
 *
 * Rejects with the signal's reason, and with LeaseUnavailableError when the patience, and what a call to the service may
 * take, are over.
 */
export async function ownTurn(
  clock: Clock,
  wait: { readonly key: string; readonly startedAt: number; readonly patience: OwnPatience },
  other: Promise<unknown>,
): Promise<void> {
  const { key, startedAt, patience } = wait;
  const leftMs = Math.max(patience.waitMs, callBudgetMs) - (clock.monotonic() - startedAt);
  const nap = new Nap(clock);
  const wake = (): void => nap.wake();
  // Ignored: the other call has the error.
  void other.then(wake, wake);
  const isOver = leftMs <= 0 || !(await nap.sleep(leftMs, patience.signal));
  if (isOver) throw new LeaseUnavailableError(key, undefined, 0);
}
