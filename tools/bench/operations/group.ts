/** What the operations of a group send. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { acquireAll } from "@leasehold/client/group";
import { deadClient, during, held, hourMs, type OperationSite, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;
const groupSize = 10;
const newKeys = ({ newKey }: OperationSite): string[] => Array.from({ length: groupSize }, newKey);

export const groups: readonly Promised[] = [
  promised(
    "acquireAll, 10 free locks",
    "1 TransactWriteItems",
    [2 * groupSize, 0],
    (site) => () => acquireAll(site.client(), newKeys(site)),
  ),
  promised("renew a group of 10", "1 BatchExecuteStatement", [groupSize, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    return () => group.renew();
  }),
  promised(
    "acquireAll, one of 10 locks is held",
    "1 TransactWriteItems",
    [2 * groupSize, 0],
    async (site) => {
      const keys = newKeys(site);
      await site.client().acquire(keys[4] ?? "");
      return () => acquireAll(site.client(), keys).catch(() => undefined);
    },
  ),
  promised("release a group of 10", "10 UpdateItem", [groupSize, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    return () => group.release();
  }),
  promised(
    "acquireAll, the holders of all 10 locks are dead",
    "2 TransactWriteItems",
    [40, 0],
    async (site) => {
      const keys = newKeys(site);
      const dead = deadClient(site);
      for (const key of keys) await dead.acquire(key);
      return () => acquireAll(site.client(), keys);
    },
  ),
  promised(
    "acquireAll, a fencing token is ahead of this clock",
    "2 TransactWriteItems",
    [40, 0],
    async (site) => {
      const keys = newKeys(site);
      await (
        await site
          .stopped(-hourMs)
          .client()
          .acquire(keys[4] ?? "")
      ).release();
      return () => acquireAll(site.client(), keys);
    },
  ),
  promised(
    "acquireAll, waits 10 s for one lock that stays held",
    "6 GetItem, 1 TransactWriteItems",
    [20, 3],
    async (site) => {
      const keys = newKeys(site);
      const world = site.stopped();
      await world.client().acquire(keys[4] ?? "", held);
      return during(world, waitMs, () => acquireAll(world.client(), keys, { waitMs }));
    },
  ),
  promised("release a group of 10, one of them known to be lost", "9 UpdateItem", [9, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    const [first] = group.leases.values();
    await new LeaseAdmin(site.client()).forceRelease(first?.key ?? "", { token: first?.token ?? "" });
    await first?.renew().catch(() => undefined);
    return () => group.release();
  }),
  promised(
    "give up: the reply of acquireAll is lost",
    "1 TransactWriteItems, 10 UpdateItem",
    [30, 0],
    async (site) => {
      const process = site.stopped();
      process.loseReply();
      return during(process, 0, () => acquireAll(process.client(), newKeys(site)));
    },
  ),
];
