/**
 * How a lock comes to its next holder: by a release, as waiters grow, and after a death, to a peer that was there and to one that
 * comes later.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "../turns.ts";
import { behindProxy, type Contender, type LockClient, type ProxiedPlace, type Site } from "./contender.ts";
import type { HandOverTimes, TakeOverTimes } from "./results.ts";

/** How long each holder keeps the lock, and what its lease is. */
export const holdMs = 200;
export const handOverLeaseMs = 3_000;
/** Before hand-overs are counted. */
const warmUpMs = 5_000;

/** How long to measure, and among how many waiters. */
interface HandOverPlan {
  readonly waiters: readonly number[];
  readonly measureMs: number;
}

/** Hands a lock on, for each contender and each number of waiters: one contender after the other, for looks take time, too. */
export async function measureHandOvers(
  handingOver: readonly Contender[],
  site: Site,
  { waiters, measureMs }: HandOverPlan,
): Promise<HandOverTimes[]> {
  const times: HandOverTimes[] = [];
  for (const contender of handingOver) {
    if (contender.cannot.handOver !== undefined) continue;
    const all = waiters.map((count) =>
      behindProxy(site, (place) => handOver(contender, place, { waiters: count, measureMs })),
    );
    times.push(...(await Promise.all(all)));
  }
  return times;
}

/** One lock that changes hands. When a caller gets it, another one starts to wait. */
async function handOver(
  contender: Contender,
  place: ProxiedPlace,
  { waiters, measureMs }: { readonly waiters: number; readonly measureMs: number },
): Promise<HandOverTimes> {
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
  place.proxy.reset();
  gaps = [];
  await sleep(measureMs);
  isOver = true;
  const sent = place.proxy.requests.length;
  const measured = gaps;
  gaps = [];
  // They give back what they were just granted: by this proxy.
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all(callers);
  if (failure !== undefined) throw failure;
  return {
    id: contender.id,
    waiters,
    requests: sent / measured.length,
    idleMs: median(measured),
  };
}

/** The dead holder's lease, and everybody's. */
export const takeOverLeaseMs = 5_000;

/** Has a holder of each contender die, so many times; all side by side, for what they do is to wait. */
export async function measureTakeOvers(
  takingOver: readonly Contender[],
  site: Site,
  deaths: number,
): Promise<TakeOverTimes[]> {
  const die = (contender: Contender, delayMs: number) =>
    behindProxy(site, (place) => takeOver(contender, place, { deaths, delayMs }));
  const able = takingOver.filter(({ cannot }) => cannot.takeOver === undefined);
  return await Promise.all(
    able.map(async (contender) => {
      const [fromDeath, later] = await Promise.all([die(contender, 0), die(contender, 2 * takeOverLeaseMs)]);
      return {
        id: contender.id,
        fromDeathMs: fromDeath.ms,
        laterMs: later.ms,
        laterRequests: later.requests,
      };
    }),
  );
}

async function takeOver(
  contender: Contender,
  place: ProxiedPlace,
  { deaths, delayMs }: { readonly deaths: number; readonly delayMs: number },
): Promise<{ ms: number; requests: number }> {
  const holding = { leaseDurationMs: takeOverLeaseMs };
  const keys = Array.from({ length: deaths }, () => `dead-${crypto.randomUUID()}`);
  // They do not renew and do not release: to all others they are dead from here on.
  for (const key of keys) await contender.open(place, holding).acquire(key);
  await sleep(delayMs);
  place.proxy.reset();
  const times = await Promise.all(
    keys.map(async (key) => {
      const heir = contender.open(place, holding);
      const startedAt = performance.now();
      const lock = await heir.acquire(key);
      const tookMs = performance.now() - startedAt;
      return { tookMs, lock, heir };
    }),
  );
  const requests = place.proxy.requests.length / deaths;
  for (const { lock, heir } of times) {
    await lock.release();
    await heir.close();
  }
  return { ms: median(times.map(({ tookMs }) => tookMs)), requests };
}
