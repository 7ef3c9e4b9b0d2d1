import type { Lease } from "./lease.ts";
import { type SiblingWait, waitForSibling } from "./protocol/reentrant-leases.ts";
import type { Clock } from "./time/clock.ts";

/** Finds the lease that a reentrant owner has in one object, so that it is entered again without a request. */
export class OwnLeases {
  readonly #key: string;
  readonly #clock: Clock;
  readonly #leases = new Map<string, Promise<Lease>>();

  constructor(key: string, clock: Clock) {
    this.#key = key;
    this.#clock = clock;
  }

  /**
   * Enters an owner's live lease `again`, or wins one. Callers of one owner at the same time share one lease, and wait
   * for each other no longer than their patience allows, or a call to the service may take.
   */
  async enter(
    patience: SiblingWait & { readonly owner: string },
    win: () => Promise<Lease>,
    again: (lease: Lease) => Promise<Lease>,
  ): Promise<Lease> {
    const { owner } = patience;
    const startedAt = this.#clock.monotonic();
    for (;;) {
      const current = this.#leases.get(owner);
      if (current === undefined) break;
      await waitForSibling(this.#clock, { key: this.#key, startedAt, patience }, current);
      // Ignored: the call that was to win it has the error.
      const lease = await current.catch(() => undefined);
      // The signal is of the lease that all its handles share; a handle that was released is not its end.
      if (lease !== undefined && !lease.signal.aborted) return await again(lease);
      this.#forget(owner, current);
    }
    const won = win();
    this.#leases.set(owner, won);
    try {
      const lease = await won;
      lease.signal.addEventListener("abort", () => this.#forget(owner, won), { once: true });
      return lease;
    } catch (error) {
      this.#forget(owner, won);
      throw error;
    }
  }

  #forget(owner: string, lease: Promise<Lease>): void {
    if (this.#leases.get(owner) === lease) this.#leases.delete(owner);
  }
}
