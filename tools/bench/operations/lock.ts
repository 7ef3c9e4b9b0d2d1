/** What the operations of a lock send. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { together } from "@leasehold/client/together";
import { again, deadClient, during, held, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;
const longWaitMs = 600_000;

export const lock: readonly Promised[] = [
  promised("acquire a new lock", "1 UpdateItem", (site, key) => () => site.client().acquire(key)),
  promised("acquire a released lock", "1 UpdateItem", async (site, key) => {
    await (await site.client().acquire(key)).release();
    return () => site.client().acquire(key);
  }),
  promised("acquire and release", "2 UpdateItem", async (site, key) => {
    const locks = site.client();
    return async () => (await locks.acquire(key)).release();
  }),
  promised("try a held lock", "1 UpdateItem", async (site, key) => {
    await site.client().acquire(key);
    return () => site.client().tryAcquire(key);
  }),
  promised("take over from a dead holder", "2 UpdateItem", async (site, key) => {
    await deadClient(site).acquire(key);
    return () => site.client().acquire(key);
  }),
  promised("renew", "1 UpdateItem", async (site, key) => {
    const lease = await site.client().acquire(key);
    return () => lease.renew();
  }),
  promised("release", "1 UpdateItem", async (site, key) => {
    const lease = await site.client().acquire(key);
    return () => lease.release();
  }),
  promised("inspect", "1 GetItem", async (site, key) => {
    await site.client().acquire(key);
    return () => site.client().inspect(key);
  }),
  promised("wait 10 s for a held lock", "6 GetItem, 1 UpdateItem", [1, 3], async (site, key) => {
    const world = site.stopped();
    await world.client().acquire(key, held);
    return during(world, waitMs, () => world.client().acquire(key, { waitMs }));
  }),
  promised("wait 10 minutes for a held lock", "124 GetItem, 1 UpdateItem", [1, 62], async (site, key) => {
    const world = site.stopped();
    await world.client().acquire(key, held);
    return during(world, longWaitMs, () => world.client().acquire(key, { waitMs: longWaitMs }));
  }),
  promised(
    "wait for a lock released after 1 s, with the release",
    "3 GetItem, 3 UpdateItem",
    [3, 1.5],
    async (site, key) => {
      const world = site.stopped();
      const lease = await world.client().acquire(key, held);
      world.schedule(() => void lease.release(), 1_000);
      return during(world, waitMs, () => world.client().acquire(key, { waitMs }));
    },
  ),
  promised("share an own lease in one client (`reentrant`)", "none", async (site, key) => {
    const client = site.client();
    await client.acquire(key, again);
    return () => client.acquire(key, again);
  }),
  promised("take over an own lease from elsewhere (`reentrant`)", "2 UpdateItem", async (site, key) => {
    await site.client().acquire(key, again);
    return () => site.client().acquire(key, again);
  }),
  promised("give up: the reply of an acquisition is lost", "2 UpdateItem", async (site, key) => {
    const process = site.stopped();
    process.loseReply();
    return during(process, 0, () => process.client().acquire(key));
  }),
  promised("give up: the reply of a takeover is lost", "3 UpdateItem", async (site, key) => {
    await site.client().acquire(key, again);
    const process = site.stopped();
    process.loseReply();
    return during(process, 0, () => process.client().acquire(key, again));
  }),
  promised("30 heartbeats, with `renewals: together()`", "2 BatchExecuteStatement", [30, 0], async (site) => {
    const holder = site.stopped();
    const client = holder.client({ renewals: together() });
    const handles = await Promise.all(
      Array.from({ length: 30 }, async () => (await site.client().acquire(site.newKey())).toJSON()),
    );
    // Its answer tells the time: until then, an adopted lease is renewed at once.
    await client.inspect(handles[0]?.key ?? "");
    handles.map((handle) => client.adopt(handle, { heartbeat: 10_000 }));
    return during(holder, 10_000);
  }),
  promised("`requestRevocation`", "1 UpdateItem", async (site) => {
    const { key, token } = await site.client().acquire(site.newKey());
    return () => new LeaseAdmin(site.client()).requestRevocation(key, { token });
  }),
  promised("`forceRelease`", "1 UpdateItem", async (site) => {
    const { key, token } = await site.client().acquire(site.newKey());
    return () => new LeaseAdmin(site.client()).forceRelease(key, { token });
  }),
  promised("try a done slot", "1 UpdateItem", async (site) => {
    const slot = "2026-11-21T02:00:00.000Z";
    const key = site.newKey();
    await (await site.client().acquire(key, { slot })).complete();
    return () => site.client().tryAcquire(key, { slot });
  }),
  promised("`takeBackSlot`", "1 UpdateItem", async (site) => {
    const slot = "2026-11-21T02:00:00.000Z";
    const key = site.newKey();
    await (await site.client().acquire(key, { slot })).complete();
    return () => new LeaseAdmin(site.client()).takeBackSlot(key, { doneSlot: slot });
  }),
  promised("`inspectAll`, one item", "1 Query", [0, 1], async (site, key) => {
    await site.client().acquire(key);
    return () => new LeaseAdmin(site.client()).inspectAll(key);
  }),
];
