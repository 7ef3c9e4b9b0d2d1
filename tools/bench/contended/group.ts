/** What a group's operations send while others are in the way. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { acquireAll } from "@leasehold/client/group";
import {
  countedWhile,
  deadClient,
  held,
  hourMs,
  type OperationSite,
  type Promised,
  promised,
} from "../promised.ts";

const waitMs = 10_000;
const newKeys = ({ newKey }: OperationSite): string[] => Array.from({ length: 10 }, newKey);

export const contendedGroup: readonly Promised[] = [
  promised(
    "acquireAll, the holders of all 10 locks are dead",
    "2 TransactWriteItems",
    [40, 0],
    async (site) => {
      const keys = newKeys(site);
      const dead = deadClient(site);
      for (const key of keys) await dead.acquire(key);
      const group = await site.counted(() => acquireAll(site.client(), keys));
      await group.release();
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
      const group = await site.counted(() => acquireAll(site.client(), keys));
      await group.release();
    },
  ),
  promised(
    "acquireAll, waits 10 s for one lock that stays held",
    "6 GetItem, 1 TransactWriteItems",
    [20, 3],
    async (site) => {
      const keys = newKeys(site);
      const world = site.stopped();
      const lease = await world.client().acquire(keys[4] ?? "", held);
      await countedWhile(site, world, waitMs, () => acquireAll(world.client(), keys, { waitMs }));
      await lease.release();
    },
  ),
  promised("release a group of 10, one of them known to be lost", "9 UpdateItem", [9, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    const [first] = group.leases.values();
    await new LeaseAdmin(site.client()).forceRelease(first?.key ?? "", { token: first?.token ?? "" });
    await first?.renew().catch(() => undefined);
    await site.counted(() => group.release());
  }),
  promised(
    "give up: the reply of acquireAll is lost",
    "1 TransactWriteItems, 10 UpdateItem",
    [30, 0],
    async (site) => {
      const process = site.stopped();
      process.loseReply();
      await countedWhile(site, process, 0, () => acquireAll(process.client(), newKeys(site)));
    },
  ),
];
