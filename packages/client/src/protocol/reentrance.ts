import type { AcquisitionRequest } from "./acquisition.ts";
import type { Tenancy } from "./tenancy.ts";

/** A lock, and who wants it. */
type Wish = Pick<AcquisitionRequest, "key" | "place" | "owner">;

/** An owner's hold on a lock, or the call that is about to win it. */
type Entry = { readonly tenancy: Tenancy } | { readonly winning: Promise<unknown> };

/** Lets an owner that holds a lock in this client in again, without asking the service. */
export class Reentrance {
  readonly #entries = new Map<string, Entry>();

  /** Gives the owner's live tenancy, retained once more, or wins a new one. Callers at the same time share one. */
  async enter(wish: Wish, win: () => Promise<Tenancy>): Promise<Tenancy> {
    const [tenancy] = await this.enterAll([wish], async () => [await win()]);
    if (tenancy === undefined) throw new Error("nothing was won");
    return tenancy;
  }

  /**
   * Gives the owner's live tenancies of several locks, retained once more each; those that it lacks are won together.
   *
   * While it waits for another call of the same owner it keeps nothing from anybody, so that two of them cannot wait
   * for each other. Rejects with what `win` rejects with; then nothing stays retained.
   */
  async enterAll<W extends Wish>(
    wishes: readonly W[],
    win: (missing: readonly W[]) => Promise<readonly Tenancy[]>,
  ): Promise<Tenancy[]> {
    for (;;) {
      const winning = wishes.flatMap((wish) => {
        const entry = this.#entries.get(idOf(wish));
        return entry !== undefined && "winning" in entry ? [entry.winning] : [];
      });
      if (winning.length === 0) break;
      await Promise.allSettled(winning);
    }
    // From here to the entries of those that are to be won nobody else has a turn.
    const held = new Map<W, Tenancy>();
    for (const wish of wishes) {
      const tenancy = this.#liveTenancy(wish);
      tenancy?.retain();
      if (tenancy !== undefined) held.set(wish, tenancy);
    }
    const missing = wishes.filter((wish) => !held.has(wish));
    if (missing.length > 0) {
      const winning = win(missing);
      for (const wish of missing) this.#entries.set(idOf(wish), { winning });
      try {
        for (const [index, tenancy] of (await winning).entries()) {
          const wish = missing[index];
          if (wish === undefined) continue;
          held.set(wish, tenancy);
          this.#keep(idOf(wish), tenancy);
        }
      } catch (error) {
        for (const wish of missing) this.#entries.delete(idOf(wish));
        // Those that it had already go on for their other holders.
        await Promise.allSettled([...held.values()].map((tenancy) => tenancy.release(false)));
        throw error;
      }
    }
    return wishes.flatMap((wish) => held.get(wish) ?? []);
  }

  #liveTenancy(wish: Wish): Tenancy | undefined {
    const entry = this.#entries.get(idOf(wish));
    if (entry === undefined || !("tenancy" in entry)) return undefined;
    return entry.tenancy.validity.remainingMs() > 0 ? entry.tenancy : undefined;
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
