import { type Lease, LeaseClient } from "@leasehold/client";
import { type PermitOptions, Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { ScriptedStore } from "./scripted-store.ts";

export const leaseDurationMs = 30_000;
export const clockSkewMs = 500;
export const waitMs = 3_600_000;
/** By then a dead one in the turnstile, or at the head of its queue, is passed over. */
export const deadForMs = 13_000;

/** Gives owners' names, in the order in which they are to come. */
export function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `w${index + 1}`);
}

/** Callers of one fair semaphore, each in a process of its own unless a test says otherwise. */
export class FairCallers {
  readonly clock: ManualClock = new ManualClock();
  readonly store: ScriptedStore = new ScriptedStore();
  /** Owners in the order in which they got a permit. */
  readonly served: string[] = [];
  readonly leases: Map<string, Lease> = new Map();
  #tokens = 0;

  client(owner: string, store: ScriptedStore = this.store, clock: ManualClock = this.clock): LeaseClient {
    const token = (): string => `token ${String(++this.#tokens).padStart(10, "0")}`;
    const randomness = { token, fraction: () => 0.5 };
    return new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, randomness });
  }

  semaphore(owner: string, permits = 2, store: ScriptedStore = this.store, maxWaiters = 100): Semaphore {
    return new Semaphore(this.client(owner, store), "k", { permits, fair: true, maxWaiters });
  }

  /** One waits for a permit, and keeps it. */
  come(owner: string, semaphore = this.semaphore(owner), options: PermitOptions = {}): Promise<Lease> {
    const got = semaphore.acquire({ waitMs, owner, heartbeat: true, ...options }).then((lease) => {
      this.served.push(owner);
      this.leases.set(owner, lease);
      return lease;
    });
    got.catch(() => undefined);
    return got;
  }

  /** They come one after the other. */
  async comeAll(owners: readonly string[], make?: (owner: string) => Semaphore): Promise<void> {
    for (const owner of owners) {
      void this.come(owner, make?.(owner));
      await this.clock.advance(10);
    }
  }

  /** Holds all permits of a semaphore of 2. */
  async fill(): Promise<Lease[]> {
    const holder = this.semaphore("holder");
    const held = [await holder.acquire({ heartbeat: true }), await holder.acquire({ heartbeat: true })];
    this.store.calls.length = 0;
    return held;
  }

  async waitingNow(): Promise<string[] | undefined> {
    return (await this.semaphore("observer").inspect()).waiting?.map(({ owner }) => owner);
  }

  methods(): string[] {
    return this.store.calls.map((call) => call.method);
  }

  /** What a process works with whose requests are to be cut off. */
  doomedStore(): ScriptedStore {
    return Object.assign(new ScriptedStore(), { table: this.store.table });
  }
}

/** From now on nothing of the process arrives, and it hears of nothing. */
export function kill(doomed: ScriptedStore): void {
  doomed.weather = "request lost";
  doomed.get = () => new Promise(() => undefined);
  doomed.query = () => new Promise(() => undefined);
}
