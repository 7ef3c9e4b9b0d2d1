/** What the operations of a read-write lock send. */
import { ReadWriteLock } from "@leasehold/client/read-write";
import { deadClient, during, held, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;

export const readWrite: readonly Promised[] = [
  promised("read", "1 UpdateItem", (site, key) => () => new ReadWriteLock(site.client(), key).read()),
  promised("write", "1 UpdateItem", (site, key) => () => new ReadWriteLock(site.client(), key).write()),
  promised("renew", "1 UpdateItem", async (site, key) => {
    const lease = await new ReadWriteLock(site.client(), key).read();
    return () => lease.renew();
  }),
  promised("release", "1 UpdateItem", async (site, key) => {
    const lease = await new ReadWriteLock(site.client(), key).write();
    return () => lease.release();
  }),
  promised("read in a dead writer's place", "2 UpdateItem", async (site, key) => {
    await new ReadWriteLock(deadClient(site), key).write();
    return () => new ReadWriteLock(site.client(), key).read();
  }),
  promised("write in 5 dead readers' place", "2 UpdateItem", async (site, key) => {
    const dead = new ReadWriteLock(deadClient(site), key);
    for (let reader = 0; reader < 5; reader += 1) await dead.read();
    return () => new ReadWriteLock(site.client(), key).write();
  }),
  promised("try a held lock", "1 UpdateItem", async (site, key) => {
    await new ReadWriteLock(site.client(), key).write();
    return () => new ReadWriteLock(site.client(), key).tryRead();
  }),
  promised("wait 10 s to read", "6 GetItem, 1 UpdateItem", [1, 3], async (site, key) => {
    const world = site.stopped();
    await new ReadWriteLock(world.client(), key).write(held);
    return during(world, waitMs, () => new ReadWriteLock(world.client(), key).read({ waitMs }));
  }),
  promised("wait 10 s to write, with its intent", "6 GetItem, 6 UpdateItem", [6, 3], async (site, key) => {
    const world = site.stopped();
    await new ReadWriteLock(world.client(), key).read(held);
    return during(world, waitMs, () => new ReadWriteLock(world.client(), key).write({ waitMs }));
  }),
  promised("inspect", "1 GetItem", async (site, key) => {
    const lock = new ReadWriteLock(site.client(), key);
    await lock.read();
    return () => lock.inspect();
  }),
];
