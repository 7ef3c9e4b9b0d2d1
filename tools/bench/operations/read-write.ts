/** What the operations of a read-write lock send. */
import { ReadWriteLock } from "@leasehold/client/read-write";
import { deadClient, during, held, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;

export const readWrite: readonly Promised[] = [
  promised(
    "read-write lock: read",
    "1 UpdateItem",
    [1, 0],
    (site, key) => () => new ReadWriteLock(site.client(), key).read(),
  ),
  promised(
    "read-write lock: write",
    "1 UpdateItem",
    [1, 0],
    (site, key) => () => new ReadWriteLock(site.client(), key).write(),
  ),
  promised("read-write lock: renew", "1 UpdateItem", [1, 0], async (site, key) => {
    const lease = await new ReadWriteLock(site.client(), key).read();
    return () => lease.renew();
  }),
  promised("read-write lock: release", "1 UpdateItem", [1, 0], async (site, key) => {
    const lease = await new ReadWriteLock(site.client(), key).write();
    return () => lease.release();
  }),
  promised(
    "read-write lock: read in the place of a dead writer",
    "2 UpdateItem",
    [2, 0],
    async (site, key) => {
      await new ReadWriteLock(deadClient(site), key).write();
      return () => new ReadWriteLock(site.client(), key).read();
    },
  ),
  promised(
    "read-write lock: write in the place of 5 dead readers",
    "2 UpdateItem",
    [2, 0],
    async (site, key) => {
      const dead = new ReadWriteLock(deadClient(site), key);
      for (let reader = 0; reader < 5; reader += 1) await dead.read();
      return () => new ReadWriteLock(site.client(), key).write();
    },
  ),
  promised("read-write lock: try, the lock is held", "1 UpdateItem", [1, 0], async (site, key) => {
    await new ReadWriteLock(site.client(), key).write();
    return () => new ReadWriteLock(site.client(), key).tryRead();
  }),
  promised("read-write lock: wait 10 s to read", "6 GetItem, 1 UpdateItem", [1, 3], async (site, key) => {
    const world = site.stopped();
    await new ReadWriteLock(world.client(), key).write(held);
    return during(world, waitMs, () => new ReadWriteLock(world.client(), key).read({ waitMs }));
  }),
  promised(
    "read-write lock: wait 10 s to write, with its intent",
    "6 GetItem, 6 UpdateItem",
    [6, 3],
    async (site, key) => {
      const world = site.stopped();
      await new ReadWriteLock(world.client(), key).read(held);
      return during(world, waitMs, () => new ReadWriteLock(world.client(), key).write({ waitMs }));
    },
  ),
  promised("read-write lock: inspect", "1 GetItem", [0, 1], async (site, key) => {
    const lock = new ReadWriteLock(site.client(), key);
    await lock.read();
    return () => lock.inspect();
  }),
];
