import type { AcquisitionRequest } from "./acquisition.ts";
import type { Tenancy } from "./tenancy.ts";

/** Lets an owner that holds a lock in this client in again, without asking the service. */
export class Reentrance {
  readonly #tenancies = new Map<string, Promise<Tenancy>>();

  /** Gives the owner's live tenancy, retained once more, or wins a new one. Callers at the same time share one. */
  async enter(
    { key, place, owner }: Pick<AcquisitionRequest, "key" | "place" | "owner">,
    win: () => Promise<Tenancy>,
  ): Promise<Tenancy> {
    const id = JSON.stringify([key, place, owner]);
    for (;;) {
      const current = this.#tenancies.get(id);
      if (current === undefined) break;
      const tenancy = await current.catch(() => undefined);
      if (tenancy !== undefined && tenancy.validity.remainingMs() > 0) {
        tenancy.retain();
        return tenancy;
      }
      this.#forget(id, current);
    }
    const won = win();
    this.#tenancies.set(id, won);
    try {
      const tenancy = await won;
      tenancy.onEnd(() => this.#forget(id, won));
      return tenancy;
    } catch (error) {
      this.#forget(id, won);
      throw error;
    }
  }

  #forget(id: string, tenancy: Promise<Tenancy>): void {
    if (this.#tenancies.get(id) === tenancy) this.#tenancies.delete(id);
  }
}
