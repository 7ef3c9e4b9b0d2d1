/** What a hand-over takes, and how long the lock is idle, as waiters grow: one contender after the other, for looks take time, too. */
import { startProxy, type Target } from "../../../test/support/proxy.ts";
import { Relay } from "../relay.ts";
import { median, quantile } from "../statistics.ts";
import type { Contender, LockClient } from "./contender.ts";
import { placeAt, type Tables } from "./place.ts";
import type { HandOverTimes } from "./results.ts";

/** How long each holder keeps the lock, and what its lease is. */
export const holdMs = 200;
export const handOverLeaseMs = 3_000;

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
    const plans = waiters.map((count) => ({ waiters: count, measureMs }));
    times.push(...(await Promise.all(plans.map((plan) => handOver(contender, engine, tables, plan)))));
  }
  return times;
}

async function handOver(
  contender: Contender,
  engine: Target,
  tables: Tables,
  { waiters, measureMs }: { readonly waiters: number; readonly measureMs: number },
): Promise<HandOverTimes> {
  const proxy = await startProxy(engine);
  const place = placeAt(proxy, tables);
  const key = `relay-${crypto.randomUUID()}`;
  const clients = new Set<LockClient>();
  let sent = 0;
  let closing: readonly (Promise<void> | void)[] = [];
  const relay = new Relay({
    waiters,
    holdMs,
    warmUpMs: 5_000,
    measureMs,
    acquire: async () => {
      const client = contender.open(place, { leaseDurationMs: handOverLeaseMs });
      clients.add(client);
      return await client.acquire(key);
    },
    onBegin: () => proxy.reset(),
    onEnd: () => {
      sent = proxy.requests.length;
      closing = [...clients].map((client) => client.close());
    },
  });
  const { gaps } = await relay.run();
  // They give back what they were just granted: by this proxy.
  await Promise.all(closing);
  place.dynamodb.destroy();
  await proxy.close();
  return {
    id: contender.id,
    waiters,
    handOvers: gaps.length,
    requests: sent / gaps.length,
    idleMs: median(gaps),
    idleP99Ms: quantile(gaps, 0.99),
  };
}
