/** What a lock's operations send while others are in the way. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { together } from "@leasehold/client/together";
import { countedWhile, held, type Promised, promised } from "../promised.ts";

const waitMs = 10_000;
const longWaitMs = 600_000;
/** The same owner, once more. */
const again = { owner: "worker", reentrant: true } as const;

export const contendedLock: readonly Promised[] = [
  promised("wait 10 s for a lock that stays held", "6 GetItem, 1 UpdateItem", [1, 3], async (site) => {
    const world = site.stopped();
    const lease = await world.client().acquire(site.newKey(), held);
    await countedWhile(site, world, waitMs, () => world.client().acquire(lease.key, { waitMs }));
    await lease.release();
  }),
  promised(
    "wait 10 minutes for a lock that stays held",
    "124 GetItem, 1 UpdateItem",
    [1, 62],
    async (site) => {
      const world = site.stopped();
      const lease = await world.client().acquire(site.newKey(), held);
      await countedWhile(site, world, longWaitMs, () =>
        world.client().acquire(lease.key, { waitMs: longWaitMs }),
      );
      await lease.release();
    },
  ),
  promised(
    "wait for a lock that is released after 1 s, with the release",
    "3 GetItem, 3 UpdateItem",
    [3, 1.5],
    async (site) => {
      const world = site.stopped();
      const lease = await world.client().acquire(site.newKey(), held);
      world.schedule(() => void lease.release(), 1_000);
      await countedWhile(site, world, waitMs, () => world.client().acquire(lease.key, { waitMs }));
    },
  ),
  promised("share an own lease in the same client (`reentrant`)", "none", [0, 0], async (site) => {
    const client = site.client();
    const lease = await client.acquire(site.newKey(), again);
    const shared = await site.counted(() => client.acquire(lease.key, again));
    await shared.release();
    await lease.release();
  }),
  promised("take over an own lease from elsewhere (`reentrant`)", "2 UpdateItem", [2, 0], async (site) => {
    const key = site.newKey();
    await site.client().acquire(key, again);
    const lease = await site.counted(() => site.client().acquire(key, again));
    await lease.release();
  }),
  promised("give up: the reply of an acquisition is lost", "2 UpdateItem", [2, 0], async (site) => {
    const process = site.stopped();
    process.loseReply();
    await countedWhile(site, process, 0, () => process.client().acquire(site.newKey()));
  }),
  promised("give up: the reply of a takeover is lost", "3 UpdateItem", [3, 0], async (site) => {
    const key = site.newKey();
    await site.client().acquire(key, again);
    const process = site.stopped();
    process.loseReply();
    await countedWhile(site, process, 0, () => process.client().acquire(key, again));
  }),
  promised("30 heartbeats, with `renewals: together()`", "2 BatchExecuteStatement", [30, 0], async (site) => {
    const holder = site.stopped();
    const client = holder.client({ renewals: together() });
    const handles = await Promise.all(
      Array.from({ length: 30 }, async () => (await site.client().acquire(site.newKey())).toJSON()),
    );
    // Its answer tells the time: until then, an adopted lease is renewed at once.
    await client.inspect(handles[0]?.key ?? "");
    const leases = handles.map((handle) => client.adopt(handle, { heartbeat: 10_000 }));
    await countedWhile(site, holder, 10_000, async () => undefined);
    await Promise.all(leases.map((lease) => lease.release()));
  }),
  promised("`requestRevocation`", "1 UpdateItem", [1, 0], async (site) => {
    const { key, token } = await site.client().acquire(site.newKey());
    await site.counted(() => new LeaseAdmin(site.client()).requestRevocation(key, { token }));
    await new LeaseAdmin(site.client()).forceRelease(key, { token });
  }),
  promised("`forceRelease`", "1 UpdateItem", [1, 0], async (site) => {
    const { key, token } = await site.client().acquire(site.newKey());
    await site.counted(() => new LeaseAdmin(site.client()).forceRelease(key, { token }));
  }),
  promised("try a slot that is done", "1 UpdateItem", [1, 0], async (site) => {
    const slot = "2026-11-21T02:00:00.000Z";
    const key = site.newKey();
    await (await site.client().acquire(key, { slot })).complete();
    await site.counted(() => site.client().tryAcquire(key, { slot }));
  }),
  promised("`takeBackSlot`", "1 UpdateItem", [1, 0], async (site) => {
    const slot = "2026-11-21T02:00:00.000Z";
    const key = site.newKey();
    await (await site.client().acquire(key, { slot })).complete();
    await site.counted(() => new LeaseAdmin(site.client()).takeBackSlot(key, { doneSlot: slot }));
  }),
  promised("`inspectAll`, one item", "1 Query", [0, 1], async (site) => {
    const lease = await site.client().acquire(site.newKey());
    await site.counted(() => new LeaseAdmin(site.client()).inspectAll(lease.key));
    await lease.release();
  }),
];
