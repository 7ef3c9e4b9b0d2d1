/** What the callers of a fair lock send, and those who stand in line. */
import { FairLock } from "@leasehold/client/fair";
import { deadClient, during, held, hourMs, type OperationSite, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;
const minuteMs = 60_000;

/** Lets so many waiters join the line of a lock, in processes that died an hour ago. */
async function deadWaiters(site: OperationSite, key: string, count: number): Promise<void> {
  const process = site.stopped(hourMs);
  for (let waiter = 0; waiter < count; waiter += 1) {
    const desk = new FairLock(process.client(), key, { maxWaiters: 100 });
    void desk.acquire({ waitMs: 30_000 }).catch(() => undefined);
    await process.settle();
  }
}

/** So many callers of one process join the line of a lock that stays held, wait, and leave. */
const waitInVain = (callers: number, waitMs: number) => async (site: OperationSite, key: string) => {
  const world = site.stopped();
  await new FairLock(world.client(), key).acquire(held);
  const wait = (): Promise<unknown> => new FairLock(world.client(), key).acquire({ waitMs });
  return during(world, waitMs, () => Promise.allSettled(Array.from({ length: callers }, wait)));
};

export const fair: readonly Promised[] = [
  promised(
    "acquire, nobody waits",
    "1 UpdateItem",
    (site, key) => () => new FairLock(site.client(), key).acquire(),
  ),
  promised("check in, and be let in", "1 GetItem, 1 UpdateItem", async (site, key) => {
    const desk = new FairLock(site.client(), key);
    return () => desk.checkIn({ owner: "visitor" });
  }),
  promised("check out", "1 GetItem, 1 UpdateItem", async (site, key) => {
    const desk = new FairLock(site.client(), key);
    await desk.checkIn({ owner: "visitor" });
    return () => desk.checkOut({ owner: "visitor" });
  }),
  promised("try, others wait", "1 UpdateItem", async (site, key) => {
    const world = site.stopped();
    await new FairLock(world.client(), key).acquire(held);
    new FairLock(world.client(), key).acquire({ waitMs }).catch(() => undefined);
    await world.settle();
    return () => new FairLock(site.client(), key).acquire().catch(() => undefined);
  }),
  promised(
    "join, wait a minute at the head, and leave",
    "62 GetItem, 4 UpdateItem",
    [4, 31],
    waitInVain(1, minuteMs),
  ),
  promised(
    "join, wait an hour at the head, and leave",
    "399 GetItem, 85 UpdateItem",
    [85, 199.5],
    waitInVain(1, hourMs),
  ),
  promised(
    "2 callers join, wait 10 minutes, and leave",
    "217 GetItem, 34 UpdateItem",
    [34, 108.5],
    waitInVain(2, 10 * minuteMs),
  ),
  promised(
    "join, and get the lock after 1 s, with the release",
    "5 GetItem, 4 UpdateItem",
    [4, 2.5],
    async (site, key) => {
      const world = site.stopped();
      const lease = await new FairLock(world.client(), key).acquire(held);
      world.schedule(() => void lease.release(), 1_000);
      return during(world, waitMs, () => new FairLock(world.client(), key).acquire({ waitMs }));
    },
  ),
  promised("a hand-over in one process, with the release", "2 UpdateItem", async (site, key) => {
    const process = site.stopped();
    const desk = new FairLock(process.client(), key);
    const lease = await desk.acquire(held);
    const next = desk.acquire({ waitMs });
    await process.settle();
    return async () => {
      await lease.release();
      await process.settle();
      await next;
    };
  }),
  promised("acquire past 5 dead waiters", "2 UpdateItem", async (site, key) => {
    const holder = await new FairLock(site.client(), key).acquire(held);
    await deadWaiters(site, key, 5);
    await holder.release();
    return () => new FairLock(site.client(), key).acquire();
  }),
  promised("acquire past 50 dead waiters", "3 UpdateItem", [], async (site, key) => {
    const holder = await new FairLock(site.client(), key).acquire(held);
    await deadWaiters(site, key, 50);
    await holder.release();
    return () => new FairLock(site.client(), key).acquire();
  }),
  promised("take over from a dead holder", "2 UpdateItem", async (site, key) => {
    await new FairLock(deadClient(site), key).acquire();
    return () => new FairLock(site.client(), key).acquire();
  }),
  promised("check in, and join the line", "1 GetItem, 1 UpdateItem", async (site, key) => {
    const desk = new FairLock(site.client(), key);
    await desk.checkIn({ owner: "first" });
    return () => desk.checkIn({ owner: "second" });
  }),
  promised("check in again", "1 GetItem, 1 UpdateItem", async (site, key) => {
    const desk = new FairLock(site.client(), key);
    await desk.checkIn({ owner: "first" });
    return () => desk.checkIn({ owner: "first" });
  }),
  promised("check in, in a dead holder's place", "1 GetItem, 1 UpdateItem", async (site, key) => {
    await new FairLock(deadClient(site), key).acquire();
    const desk = new FairLock(site.client(), key);
    return () => desk.checkIn({ owner: "visitor" });
  }),
  promised(
    "check out, nothing to give up",
    "1 GetItem",
    (site, key) => () => new FairLock(site.client(), key).checkOut({ owner: "visitor" }),
  ),
  promised("inspect", "1 GetItem", async (site, key) => {
    const desk = new FairLock(site.client(), key);
    await desk.checkIn({ owner: "visitor" });
    return () => desk.inspect();
  }),
];
