/** What the operations of a group send. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { acquireAll } from "@leasehold/client/group";
import { deadClient, during, held, hourMs, type OperationSite, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;
const groupSize = 10;
const newKeys = ({ newKey }: OperationSite): string[] => Array.from({ length: groupSize }, newKey);

export const groups: readonly Promised[] = [
  promised(
    "acquire 10 free locks",
    "1 TransactWriteItems",
    [2 * groupSize, 0],
    (site) => () => acquireAll(site.client(), newKeys(site)),
  ),
  promised("renew 10", "1 BatchExecuteStatement", [groupSize, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    return () => group.renew();
  }),
  promised("acquire 10, one is held", "1 TransactWriteItems", [2 * groupSize, 0], async (site) => {
    const keys = newKeys(site);
    await site.client().acquire(keys[4] ?? "");
    return () => acquireAll(site.client(), keys).catch(() => undefined);
  }),
  promised("release 10", "10 UpdateItem", [groupSize, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    return () => group.release();
  }),
  promised("acquire 10 from dead holders", "2 TransactWriteItems", [40, 0], async (site) => {
    const keys = newKeys(site);
    const dead = deadClient(site);
    for (const key of keys) await dead.acquire(key);
    return () => acquireAll(site.client(), keys);
  }),
  promised(
    "acquire 10, a fencing token is ahead of this clock",
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
    "wait 10 s for one of 10, which stays held",
    "6 GetItem, 1 TransactWriteItems",
    [20, 3],
    async (site) => {
      const keys = newKeys(site);
      const world = site.stopped();
      await world.client().acquire(keys[4] ?? "", held);
      return during(world, waitMs, () => acquireAll(world.client(), keys, { waitMs }));
    },
  ),
  promised("release 10, one known to be lost", "9 UpdateItem", async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    const [first] = group.leases.values();
    await new LeaseAdmin(site.client()).forceRelease(first?.key ?? "", { token: first?.token ?? "" });
    await first?.renew().catch(() => undefined);
    return () => group.release();
  }),
  promised("give up: the reply is lost", "1 TransactWriteItems, 10 UpdateItem", [30, 0], async (site) => {
    const process = site.stopped();
    process.loseReply();
    return during(process, 0, () => acquireAll(process.client(), newKeys(site)));
  }),
];
