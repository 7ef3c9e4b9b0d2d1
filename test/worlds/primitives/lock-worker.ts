import {
  type Lease,
  type LeaseClient,
  type LeaseHandle,
  SlotDoneError,
  type TransactionEntry,
} from "@leasehold/client";
import type { LeaseAdmin } from "@leasehold/client/admin";
import type { Host } from "../host.ts";
import type { Network } from "../network.ts";
import type { World } from "../world.ts";
import { checkedSortKey, type LockMonitor, resourceSortKey } from "./lock-monitor.ts";

/** Workers that stand for a run stand for the one of these times; some come late. */
const slotMs = 4_000;

/** Leases that are renewed in the background, which a hand-over would not end. */
const beating = new WeakSet<Lease>();

/** What a worker works with. */
export interface Bench {
  readonly world: World;
  readonly host: Host;
  readonly network: Network;
  readonly client: LeaseClient;
  readonly admin: LeaseAdmin;
  readonly monitor: LockMonitor;
  readonly keys: readonly [string, ...string[]];
  /** Leases that one process has handed over to another. */
  readonly mailbox: LeaseHandle[];
  /** How often workers act on leases that they have let go. */
  readonly trust: number;
}

/** Acquires, works and lets go, over and over, in every way that the client offers; never ends by itself. */
export async function work(bench: Bench): Promise<never> {
  const { world, host } = bench;
  /** The leases that were let go for good, the last one first. */
  const old: Lease[] = [];
  for (let round = 1; ; round += 1) {
    await host.pause(world.random.between(0, 1_500));
    for (const lease of old) if (world.random.chance(bench.trust)) await trustTheDead(bench, lease);
    const lease = takeOn(bench) ?? (await tryToAcquire(bench, `${host.name}#${round}`));
    if (lease !== undefined && (await use(bench, lease)))
      old.splice(0, old.length, lease, ...old.slice(0, 2));
  }
}

async function tryToAcquire(
  { world, host, client, monitor, keys }: Bench,
  owner: string,
): Promise<Lease | undefined> {
  const { random } = world;
  const key = random.pick(keys);
  const leaseDurationMs = random.pick([1_000, 2_000, 5_000]);
  const options = {
    owner,
    leaseDurationMs,
    heartbeat: random.chance(0.5),
    ...(random.chance(0.2) ? { lockAtLeastForMs: random.integer(1, leaseDurationMs) } : {}),
    ...(random.chance(0.3) ? { slot: String(Math.floor(world.now / slotMs)).padStart(6, "0") } : {}),
  };
  const giveUp = new AbortController();
  if (random.chance(0.1)) host.schedule(() => giveUp.abort(new Error("given up")), random.between(0, 1_000));
  try {
    const waits = random.chance(0.6);
    const waitMs = random.integer(1, 10_000);
    world.tell(
      host.name,
      () => `${waits ? `waits up to ${waitMs} ms for` : "tries"} ${key} for ${leaseDurationMs} ms`,
    );
    const lease = waits
      ? await client.acquire(key, { ...options, waitMs, signal: giveUp.signal })
      : await client.tryAcquire(key, { ...options, signal: giveUp.signal });
    if (lease === undefined) return undefined;
    if (options.heartbeat) beating.add(lease);
    monitor.holds(host, lease);
    world.tell(host.name, () => `holds ${key} as ${lease.token}, fence ${lease.fencingToken}`);
    return lease;
  } catch (error) {
    world.tell(host.name, () => `did not get ${key}: ${(error as Error).name}`);
    monitor.count(error instanceof SlotDoneError ? "slot was done" : "gave up");
    return undefined;
  }
}

/** Goes on with a lease that another process has handed over, if there is one. */
function takeOn({ world, host, client, monitor, mailbox }: Bench): Lease | undefined {
  const handle = mailbox.shift();
  if (handle === undefined) return undefined;
  const heartbeat = world.random.chance(0.5);
  const lease = client.adopt(handle, { heartbeat });
  if (heartbeat) beating.add(lease);
  monitor.holds(host, lease);
  world.tell(host.name, () => `adopts ${lease.key} as ${lease.token}`);
  return lease;
}

/** Acts on a lease that was let go, which must not have any effect. */
async function trustTheDead(bench: Bench, lease: Lease): Promise<void> {
  const { host, client, monitor } = bench;
  await writeChecked(bench, lease);
  monitor.bringsBack(lease);
  const revived = client.adopt(lease.toJSON());
  await revived.renew().then(
    () => monitor.revived(host, lease),
    () => monitor.count("not revived"),
  );
}

/** Works under a lease and ends it; tells whether it was let go for sure. */
async function use(bench: Bench, lease: Lease): Promise<boolean> {
  const { world, host, admin, monitor, mailbox } = bench;
  const { random } = world;
  const isCareless = random.chance(0.4);
  const steps = random.integer(1, 6);
  for (let step = 0; step < steps && (isCareless || lease.held); step += 1) {
    await host.pause(random.between(0, 1_500));
    if (isCareless || lease.held) await writeFenced(bench, lease);
    if (random.chance(0.5)) await writeChecked(bench, lease);
    if (random.chance(0.15)) await lease.renew().catch(() => undefined);
    if (random.chance(0.05))
      await admin.requestRevocation(lease.key, { token: lease.token }).catch(() => undefined);
  }
  if (!beating.has(lease) && random.chance(0.1)) {
    monitor.handsOver(lease);
    mailbox.push(lease.toJSON());
    world.tell(host.name, () => `hands ${lease.key} over (${lease.token})`);
    return false;
  }
  // A lease with a heartbeat that nobody ends would be held for good, and rightly so.
  if (random.chance(0.1)) await host.pause(random.between(0, 8_000));
  monitor.ends(lease);
  world.tell(host.name, () => `releases ${lease.key} (${lease.token})`);
  const isDone = random.chance(0.7);
  const released = await (isDone ? lease.complete() : lease.release()).catch(() => undefined);
  world.tell(host.name, () => `released ${lease.key}: ${released ?? "no answer"}`);
  if (released === false) monitor.count("late release refused");
  return released === true;
}

/** Writes an item in one transaction with the check that the lease is still held. */
export async function writeChecked(
  { world, host, network }: Pick<Bench, "world" | "host" | "network">,
  lease: Lease,
): Promise<void> {
  const { ConditionCheck: check } = lease.conditionCheck({ format: "native" });
  const entries: TransactionEntry[] = [
    {
      key: { pk: lease.key, sk: String(check.Key.sk) },
      action: "check",
      condition: check.ConditionExpression,
      names: check.ExpressionAttributeNames,
      values: check.ExpressionAttributeValues,
    },
    {
      key: { pk: lease.key, sk: checkedSortKey },
      action: { update: "SET #writer = :writer" },
      condition: "attribute_not_exists(#writer) OR attribute_exists(#writer)",
      names: { "#writer": "writer" },
      values: { ":writer": lease.fencingToken },
    },
  ];
  try {
    await network.transact(entries, { signal: new AbortController().signal, isCurrent: () => true });
  } catch (error) {
    world.tell(host.name, () => `does not know whether its checked write to ${lease.key} landed: ${error}`);
  }
}

/** Writes an item that remembers the highest fencing token, without waiting for the answer for ever. */
export async function writeFenced(
  { world, host, network, monitor }: Pick<Bench, "world" | "host" | "network" | "monitor">,
  lease: Lease,
): Promise<void> {
  const fence = lease.fence({ format: "native" });
  const request = {
    key: { pk: lease.key, sk: resourceSortKey },
    update: `${fence.UpdateExpression}, #writer = :writer`,
    condition: fence.ConditionExpression,
    names: { ...fence.ExpressionAttributeNames, "#writer": "writer" },
    values: { ...fence.ExpressionAttributeValues, ":writer": host.name },
    returnsItem: false,
  };
  try {
    const result = await network.update(request, {
      signal: new AbortController().signal,
      isCurrent: () => true,
    });
    if (!result.applied) {
      monitor.count("fenced off");
      world.tell(host.name, () => `was fenced off from ${lease.key} with ${lease.fencingToken}`);
    }
  } catch {
    world.tell(host.name, () => `does not know whether its write to ${lease.key} landed`);
  }
}
