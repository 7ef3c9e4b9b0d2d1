import type { AcquireOptions, Lease, LeaseClient } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import type { Target } from "../../test/support/proxy.ts";
import { sdkClient, type TestTable } from "../../test/support/table.ts";
import { countRequests } from "./counted.ts";
import { Relay } from "./relay.ts";
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
      widths.map((waiters) => handOver(engine, leases, discipline, waiters)),
    ),
  );
}

async function handOver(
  engine: Target,
  leases: TestTable,
  { by, acquire }: Discipline,
  waiters: number,
): Promise<HandOverCost> {
  const dynamodb = sdkClient(engine);
  const counter = countRequests(dynamodb);
  const key = leases.newKey();
  const sent = { total: 0, writes: 0 };
  const relay = new Relay({
    waiters,
    holdMs: handOverHoldMs,
    warmUpMs,
    measureMs: handOverMs,
    // Each waiter has a client of its own, as if it were the only one in its process.
    acquire: (signal) => acquire(leases.client({ dynamodb }), key, { waitMs, signal }),
    onBegin: () => counter.reset(),
    onEnd: () => {
      sent.total = counter.total;
      sent.writes = counter.sent.get("UpdateItem") ?? 0;
    },
  });
  const { gaps, longestWaitMs } = await relay.run();
  dynamodb.destroy();
  return {
    by,
    waiters,
    handOvers: gaps.length,
    requests: sent.total / gaps.length,
    reads: (sent.total - sent.writes) / gaps.length,
    p50: median(gaps),
    p90: quantile(gaps, 0.9),
    longestWaitMs,
  };
}
