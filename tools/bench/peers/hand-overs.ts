/** What a hand-over takes, and how long the lock is idle, as waiters grow: one contender after the other, for looks take time, too. */
import { setTimeout as sleep } from "node:timers/promises";
import { startProxy, type Target } from "../../../test/support/proxy.ts";
import { median, quantile } from "../turns.ts";
import type { Contender, LockClient } from "./contender.ts";
import { placeAt, type Tables } from "./place.ts";
import type { HandOverTimes } from "./results.ts";

/** How long each holder keeps the lock, and what its lease is. */
export const holdMs = 200;
export const handOverLeaseMs = 3_000;
/** Before hand-overs are counted. */
const warmUpMs = 5_000;

/** How long to measure, and among how many waiters. */
export interface HandOverPlan {
  readonly waiters: readonly number[];
  readonly measureMs: number;
}

/** Hands a lock on, for each contender and each number of waiters. */
export async function measureHandOvers(
  handingOver: readonly Contender[],
  engine: Target,
  tables: Tables,
  { waiters, measureMs }: HandOverPlan,
): Promise<HandOverTimes[]> {
  const times: HandOverTimes[] = [];
  for (const contender of handingOver) {
    if (contender.cannot.handOver !== undefined) continue;
    const all = waiters.map((count) => handOver(contender, engine, tables, { waiters: count, measureMs }));
    times.push(...(await Promise.all(all)));
  }
  return times;
}

/** One lock that changes hands. When a caller gets it, another one starts to wait. */
async function handOver(
  contender: Contender,
  engine: Target,
  tables: Tables,
  { waiters, measureMs }: { readonly waiters: number; readonly measureMs: number },
): Promise<HandOverTimes> {
  const proxy = await startProxy(engine);
  const place = placeAt(proxy, tables);
  const key = `relay-${crypto.randomUUID()}`;
  const clients: LockClient[] = [];
  const callers: Promise<void>[] = [];
  let gaps: number[] = [];
  let releasedAt: number | undefined;
  let isOver = false;
  let failure: unknown;
  const use = async (): Promise<void> => {
    const client = contender.open(place, { leaseDurationMs: handOverLeaseMs });
    clients.push(client);
    const lock = await client.acquire(key);
    if (releasedAt !== undefined) gaps.push(performance.now() - releasedAt);
    if (!isOver) {
      join();
      await sleep(holdMs);
    }
    releasedAt = performance.now();
    await lock.release();
  };
  const join = (): void => {
    const caller = use().catch((error: unknown) => {
      // Ignored: at the end, callers that still wait are told to give up.
      if (!isOver) failure ??= error;
    });
    callers.push(caller);
  };
  for (let index = 0; index < waiters + 1; index += 1) join();
  await sleep(warmUpMs);
  proxy.reset();
  gaps = [];
  await sleep(measureMs);
  isOver = true;
  const sent = proxy.requests.length;
  const measured = gaps;
  gaps = [];
  // They give back what they were just granted: by this proxy.
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all(callers);
  if (failure !== undefined) throw failure;
  place.dynamodb.destroy();
  await proxy.close();
  return {
    id: contender.id,
    waiters,
    handOvers: measured.length,
    requests: sent / measured.length,
    idleMs: median(measured),
    idleP99Ms: quantile(measured, 0.99),
  };
}
