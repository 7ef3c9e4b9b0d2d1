/** What the operations of semaphores and read-write locks send while others are in the way. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { together } from "@leasehold/client/together";
import { countedWhile, deadClient, held, type Promised, promised } from "../promised.ts";

const waitMs = 10_000;
const one = { permits: 1 };
/** The same owner, once more. */
const again = { owner: "worker", reentrant: true } as const;

export const contendedSemaphore: readonly Promised[] = [
  promised("semaphore: take over from a dead holder", "2 UpdateItem", [2, 0], async (site) => {
    const key = site.newKey();
    await new Semaphore(deadClient(site), key, one).acquire();
    const permit = await site.counted(() => new Semaphore(site.client(), key, one).acquire());
    await permit.release();
  }),
  promised("semaphore: take over from 150 dead holders", "4 UpdateItem", [], async (site) => {
    const key = site.newKey();
    const dead = new Semaphore(deadClient(site), key, { permits: 150 });
    for (let holder = 0; holder < 150; holder += 1) await dead.acquire({ owner: "worker" });
    const permits = new Semaphore(site.client(), key, { permits: 150 });
    const permit = await site.counted(() => permits.acquire({ permits: 150 }));
    await permit.release();
  }),
  promised("semaphore: wait 10 s, all permits stay held", "6 GetItem, 1 UpdateItem", [1, 3], async (site) => {
    const key = site.newKey();
    const world = site.stopped();
    const permit = await new Semaphore(world.client(), key, one).acquire(held);
    await countedWhile(site, world, waitMs, () =>
      new Semaphore(world.client(), key, one).acquire({ waitMs }),
    );
    await permit.release();
  }),
  promised("semaphore: share an own lease in the same client (`reentrant`)", "none", [0, 0], async (site) => {
    const permits = new Semaphore(site.client(), site.newKey(), one);
    const permit = await permits.acquire(again);
    const shared = await site.counted(() => permits.acquire(again));
    await shared.release();
    await permit.release();
  }),
  promised(
    "semaphore: take over an own lease from elsewhere (`reentrant`)",
    "2 UpdateItem",
    [2, 0],
    async (site) => {
      const key = site.newKey();
      await new Semaphore(site.client(), key, one).acquire(again);
      const permit = await site.counted(() => new Semaphore(site.client(), key, one).acquire(again));
      await permit.release();
    },
  ),
  promised(
    "semaphore: 3 heartbeats of one key, with `renewals: together()`",
    "3 UpdateItem",
    [3, 0],
    async (site) => {
      const holder = site.stopped();
      const client = holder.client({ renewals: together() });
      const permits = new Semaphore(client, site.newKey(), { permits: 3 });
      const leases = [];
      for (let held = 0; held < 3; held += 1) leases.push(await permits.acquire({ heartbeat: 10_000 }));
      await countedWhile(site, holder, 10_000, async () => undefined);
      for (const lease of leases) await lease.release();
    },
  ),
  promised(
    "semaphore: 3 heartbeats of 3 keys, with `renewals: together()`",
    "1 BatchExecuteStatement",
    [3, 0],
    async (site) => {
      const holder = site.stopped();
      const client = holder.client({ renewals: together() });
      const leases = [];
      for (let held = 0; held < 3; held += 1)
        leases.push(await new Semaphore(client, site.newKey(), one).acquire({ heartbeat: 10_000 }));
      await countedWhile(site, holder, 10_000, async () => undefined);
      for (const lease of leases) await lease.release();
    },
  ),
  promised(
    "semaphore: give up, the reply of an acquisition is lost",
    "2 UpdateItem",
    [2, 0],
    async (site) => {
      const process = site.stopped();
      process.loseReply();
      await countedWhile(site, process, 0, () =>
        new Semaphore(process.client(), site.newKey(), one).acquire(),
      );
    },
  ),
  promised("semaphore: `drain` for 10 s, a permit stays held", "7 GetItem", [0, 4], async (site) => {
    const key = site.newKey();
    const world = site.stopped();
    const permit = await new Semaphore(world.client(), key, one).acquire(held);
    await countedWhile(site, world, waitMs, () => new Semaphore(world.client(), key, one).drain({ waitMs }));
    await permit.release();
  }),
  promised("semaphore: inspect", "1 GetItem", [0, 1], async (site) => {
    const permits = new Semaphore(site.client(), site.newKey(), one);
    const permit = await permits.acquire();
    await site.counted(() => permits.inspect());
    await permit.release();
  }),
  promised(
    "semaphore: `LeaseAdmin.forceRelease` of a permit",
    "1 GetItem, 1 UpdateItem",
    [1, 1],
    async (site) => {
      const permits = new Semaphore(site.client(), site.newKey(), one);
      const { key, token } = await permits.acquire();
      const [record] = (await permits.inspect()).held;
      const sortKey = record?.sortKey ?? "";
      await site.counted(() => new LeaseAdmin(site.client()).forceRelease(key, { token, sortKey }));
    },
  ),
];

export const contendedReadWrite: readonly Promised[] = [
  promised("read-write lock: read in the place of a dead writer", "2 UpdateItem", [2, 0], async (site) => {
    const key = site.newKey();
    await new ReadWriteLock(deadClient(site), key).write();
    const lease = await site.counted(() => new ReadWriteLock(site.client(), key).read());
    await lease.release();
  }),
  promised("read-write lock: write in the place of 5 dead readers", "2 UpdateItem", [2, 0], async (site) => {
    const key = site.newKey();
    const dead = new ReadWriteLock(deadClient(site), key);
    for (let reader = 0; reader < 5; reader += 1) await dead.read();
    const lease = await site.counted(() => new ReadWriteLock(site.client(), key).write());
    await lease.release();
  }),
  promised("read-write lock: try, the lock is held", "1 UpdateItem", [1, 0], async (site) => {
    const key = site.newKey();
    const lease = await new ReadWriteLock(site.client(), key).write();
    await site.counted(() => new ReadWriteLock(site.client(), key).tryRead());
    await lease.release();
  }),
  promised("read-write lock: wait 10 s to read", "6 GetItem, 1 UpdateItem", [1, 3], async (site) => {
    const key = site.newKey();
    const world = site.stopped();
    const lease = await new ReadWriteLock(world.client(), key).write(held);
    await countedWhile(site, world, waitMs, () => new ReadWriteLock(world.client(), key).read({ waitMs }));
    await lease.release();
  }),
  promised(
    "read-write lock: wait 10 s to write, with its intent",
    "6 GetItem, 6 UpdateItem",
    [6, 3],
    async (site) => {
      const key = site.newKey();
      const world = site.stopped();
      const lease = await new ReadWriteLock(world.client(), key).read(held);
      await countedWhile(site, world, waitMs, () => new ReadWriteLock(world.client(), key).write({ waitMs }));
      await lease.release();
    },
  ),
  promised("read-write lock: inspect", "1 GetItem", [0, 1], async (site) => {
    const lock = new ReadWriteLock(site.client(), site.newKey());
    const lease = await lock.read();
    await site.counted(() => lock.inspect());
    await lease.release();
  }),
];
