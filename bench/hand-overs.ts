import { setTimeout as sleep } from "node:timers/promises";
import type { AcquireOptions, Lease, LeaseClient } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import type { Target } from "../test/support/proxy.ts";
import { sdkClient, type TestTable } from "../test/support/table.ts";
import { countRequests } from "./counted.ts";
import { median, quantile } from "./statistics.ts";

/** What it takes for a lock to come from one holder to the next, while so many wait for it. */
export interface HandOverCost {
  readonly by: string;
  readonly waiters: number;
  readonly handOvers: number;
  /** For each hand-over: everything that holders and waiters send from one grant to the next. */
  readonly requests: number;
  readonly reads: number;
  /** From the call of release to the next holder's grant. */
  readonly p50: number;
  readonly p90: number;
  /** From the first waiter on; also of callers that still waited at the end. */
  readonly longestWaitMs: number;
}

/** A way to wait for what one caller at a time may have. */
interface Discipline {
  readonly by: string;
  readonly acquire: (client: LeaseClient, key: string, options: AcquireOptions) => Promise<Lease>;
}

const disciplines: readonly Discipline[] = [
  { by: "lock, unfair", acquire: (client, key, options) => client.acquire(key, options) },
  {
    by: "semaphore of 1, unfair",
    acquire: (client, key, options) => new Semaphore(client, key, { permits: 1 }).acquire(options),
  },
  {
    by: "fair lock",
    acquire: (client, key, { retry: _retry, slot: _slot, ...options }) =>
      new FairLock(client, key).acquire(options),
  },
];

const widths = [2, 10, 50];
/** How long each holder keeps it. */
export const handOverHoldMs = 200;
const warmUpMs = 2_000;
/** For how long hand-overs are counted. */
export const handOverMs = 10_000;
const waitMs = 60_000;

/** Hands locks on among few and many waiters, all side by side: what they send is little for the engine. */
export async function benchHandOvers(engine: Target, leases: TestTable): Promise<HandOverCost[]> {
  return await Promise.all(
    disciplines.flatMap((discipline) =>
      widths.map((waiters) => new Relay(engine, leases, discipline, waiters).run()),
    ),
  );
}

/** One lock that changes hands. When a caller gets it, another one starts to wait. */
class Relay {
  readonly #leases: TestTable;
  readonly #dynamodb: ReturnType<typeof sdkClient>;
  readonly #discipline: Discipline;
  readonly #waiters: number;
  readonly #key: string;
  readonly #end = new AbortController();
  readonly #runners = new Set<Promise<void>>();
  readonly #waitingSince = new Set<number>();
  #releasedAt: number | undefined;
  #gaps: number[] = [];
  #longestWaitMs = 0;
  #failure: unknown;

  constructor(engine: Target, leases: TestTable, discipline: Discipline, waiters: number) {
    this.#leases = leases;
    this.#dynamodb = sdkClient(engine);
    this.#discipline = discipline;
    this.#waiters = waiters;
    this.#key = leases.newKey();
  }

  async run(): Promise<HandOverCost> {
    const counter = countRequests(this.#dynamodb);
    for (let index = 0; index < this.#waiters + 1; index += 1) this.#join();
    await sleep(warmUpMs);
    counter.reset();
    this.#gaps = [];
    await sleep(handOverMs);
    const gaps = this.#gaps;
    const { total } = counter;
    const writes = counter.sent.get("UpdateItem") ?? 0;
    const now = performance.now();
    const longestWaitMs = Math.max(
      this.#longestWaitMs,
      ...[...this.#waitingSince].map((since) => now - since),
    );

    this.#end.abort();
    await Promise.all(this.#runners);
    this.#dynamodb.destroy();
    if (this.#failure !== undefined) throw this.#failure;
    return {
      by: this.#discipline.by,
      waiters: this.#waiters,
      handOvers: gaps.length,
      requests: total / gaps.length,
      reads: (total - writes) / gaps.length,
      p50: median(gaps),
      p90: quantile(gaps, 0.9),
      longestWaitMs,
    };
  }

  #join(): void {
    const runner = this.#once()
      .catch((error: unknown) => {
        if (!this.#end.signal.aborted) this.#failure ??= error;
      })
      .finally(() => this.#runners.delete(runner));
    this.#runners.add(runner);
  }

  /** Each waiter has a client of its own, as if it were the only one in its process. */
  async #once(): Promise<void> {
    const client = this.#leases.client({ dynamodb: this.#dynamodb });
    const { signal } = this.#end;
    const since = performance.now();
    this.#waitingSince.add(since);
    const lease = await this.#discipline.acquire(client, this.#key, { waitMs, signal });
    const grantedAt = performance.now();
    this.#waitingSince.delete(since);
    this.#longestWaitMs = Math.max(this.#longestWaitMs, grantedAt - since);
    if (this.#releasedAt !== undefined) this.#gaps.push(grantedAt - this.#releasedAt);
    if (!signal.aborted) this.#join();
    await sleep(handOverHoldMs);
    this.#releasedAt = performance.now();
    await lease.release();
  }
}
