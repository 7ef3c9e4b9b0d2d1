/** How long it takes until a dead holder's lock is taken over: by a peer that was there, and by one that comes later. */
import { setTimeout as sleep } from "node:timers/promises";
import { startProxy, type Target } from "../../../test/support/proxy.ts";
import { median } from "../turns.ts";
import type { Contender } from "./contender.ts";
import { placeAt, type Tables } from "./place.ts";
import type { TakeOverTimes } from "./results.ts";

/** The dead holder's lease, and everybody's. */
export const takeOverLeaseMs = 5_000;

/** Has a holder of each contender die, so many times; all side by side, for what they do is to wait. */
export async function measureTakeOvers(
  takingOver: readonly Contender[],
  engine: Target,
  tables: Tables,
  deaths: number,
): Promise<TakeOverTimes[]> {
  const able = takingOver.filter(({ cannot }) => cannot.takeOver === undefined);
  return await Promise.all(
    able.map(async (contender) => {
      const [fromDeath, later] = await Promise.all([
        contender.cannot.handOver?.startsWith("refuses")
          ? undefined
          : measure(contender, engine, tables, { deaths, delayMs: 0 }),
        measure(contender, engine, tables, { deaths, delayMs: 2 * takeOverLeaseMs }),
      ]);
      return {
        id: contender.id,
        fromDeathMs: fromDeath?.ms,
        laterMs: later.ms,
        laterRequests: later.requests,
      };
    }),
  );
}

async function measure(
  contender: Contender,
  engine: Target,
  tables: Tables,
  { deaths, delayMs }: { readonly deaths: number; readonly delayMs: number },
): Promise<{ ms: number; requests: number }> {
  const proxy = await startProxy(engine);
  const place = placeAt(proxy, tables);
  const holding = { leaseDurationMs: takeOverLeaseMs };
  const keys = Array.from({ length: deaths }, () => `dead-${crypto.randomUUID()}`);
  // They do not renew and do not release: to all others they are dead from here on.
  for (const key of keys) await contender.open(place, holding).acquire(key);
  await sleep(delayMs);
  proxy.reset();
  const times = await Promise.all(
    keys.map(async (key) => {
      const heir = contender.open(place, holding);
      const startedAt = performance.now();
      const lock = await heir.acquire(key);
      const tookMs = performance.now() - startedAt;
      return { tookMs, lock, heir };
    }),
  );
  const requests = proxy.requests.length / deaths;
  for (const { lock, heir } of times) {
    await lock.release();
    await heir.close();
  }
  place.dynamodb.destroy();
  await proxy.close();
  return { ms: median(times.map(({ tookMs }) => tookMs)), requests };
}
