import { type Item, LeaseClient, type LeaseStore, type UpdateResult } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { Random } from "../../../test/worlds/random.ts";

/** How long a request is on its way, and how long its answer. */
const oneWayMs = 5;
const leaseDurationMs = 30_000;

/** What the processes of a world have sent. */
export interface Sent {
  reads: number;
  writes: number;
}

/** A process with a client of its own. When it is dead, none of its requests arrive, and it gets no answers. */
export interface VirtualProcess {
  readonly client: LeaseClient;
  readonly die: () => void;
}

/**
 * Processes and their table in virtual time: nothing sleeps for real, every request takes the same time, and the random
 * numbers follow from the seed, so that a measurement gives the same figures each time.
 */
export class VirtualWorld {
  readonly clock: ManualClock = new ManualClock();
  readonly sent: Sent = { reads: 0, writes: 0 };
  readonly random: Random;
  readonly #table = new MemoryLeaseStore();
  #tokens = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  process(owner: string): VirtualProcess {
    const { clock, random } = this;
    const line = { isCut: false };
    const token = (): string => `00000000-0000-0000-0000-${String(++this.#tokens).padStart(12, "0")}`;
    const randomness = { token, fraction: () => random.fraction() };
    const client = new LeaseClient({ store: this.#store(line), clock, owner, leaseDurationMs, randomness });
    const die = (): void => {
      line.isCut = true;
    };
    return { client, die };
  }

  /** A sleep of a process in this world. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.schedule(resolve, ms));
  }

  /** Lets time pass. */
  async sleepFor(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  /** Lets time pass until a promise has settled. */
  async settle<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    const end = (): void => {
      isSettled = true;
    };
    promise.then(end, end);
    while (!isSettled) await this.clock.advance(5);
    return await promise;
  }

  #store(line: { readonly isCut: boolean }): LeaseStore {
    const { sent } = this;
    const table = this.#table;
    const travel = async (): Promise<void> => {
      await this.sleep(oneWayMs);
      if (line.isCut) await new Promise(() => undefined);
    };
    const call = async <Answer>(kind: keyof Sent, answer: () => Answer): Promise<Answer> => {
      if (!line.isCut) sent[kind] += 1;
      await travel();
      const answered = answer();
      await travel();
      return answered;
    };
    return {
      tableName: table.tableName,
      isLocal: true,
      update: (request) => call<UpdateResult>("writes", () => table.updateNow(request)),
      updateMany: (requests) => call("writes", () => requests.map((request) => table.updateNow(request))),
      get: ({ key }) => call<Item | undefined>("reads", () => table.peek(key)),
      transact: (entries) => call("writes", () => table.transactNow(entries)),
      query: async (request, options) => await await call("reads", () => table.query(request, options)),
      scan: () => Promise.reject(new Error("not used")),
    };
  }
}
