import type { Core } from "./core.ts";

/** For how many leases a client remembers something. */
const mostLeases = 1000;

/**
 * What each client remembers of leases, one value for each. Beyond a bound it forgets the least recently used lease
 * that is not in use.
 */
export class LeaseMemory<T> {
  readonly #clients = new WeakMap<Core, Map<string, T>>();
  readonly #make: (core: Core, key: string, sortKey: string) => T;
  readonly #isInUse: (value: T) => boolean;

  constructor(
    make: (core: Core, key: string, sortKey: string) => T,
    isInUse: (value: T) => boolean = () => false,
  ) {
    this.#make = make;
    this.#isInUse = isInUse;
  }

  /** Returns what a client remembers of a lease, or begins to remember it. */
  of(core: Core, key: string, sortKey: string): T {
    const leases = this.#clients.get(core) ?? new Map<string, T>();
    this.#clients.set(core, leases);
    const id = JSON.stringify([key, sortKey]);
    const value = leases.get(id) ?? this.#make(core, key, sortKey);
    leases.delete(id);
    leases.set(id, value);
    if (leases.size > mostLeases) this.#forgetOne(leases, value);
    return value;
  }

  #forgetOne(leases: Map<string, T>, newest: T): void {
    for (const [id, value] of leases) {
      if (value === newest || this.#isInUse(value)) continue;
      leases.delete(id);
      return;
    }
  }
}
