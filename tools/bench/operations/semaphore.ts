/** What the operations of a semaphore send. */
import { LeaseAdmin } from "@leasehold/client/admin";
import { Semaphore } from "@leasehold/client/semaphore";
import { together } from "@leasehold/client/together";
import { again, deadClient, during, held, type Promised, promised } from "./promised.ts";

const waitMs = 10_000;
const one = { permits: 1 };

export const semaphore: readonly Promised[] = [
  promised(
    "acquire a permit",
    "1 UpdateItem",
    (site, key) => () => new Semaphore(site.client(), key, { permits: 3 }).acquire(),
  ),
  promised("try, all permits held", "1 UpdateItem", async (site, key) => {
    await new Semaphore(site.client(), key, { permits: 1 }).acquire();
    return () => new Semaphore(site.client(), key, { permits: 1 }).tryAcquire();
  }),
  promised("acquire 3 permits at once", "1 UpdateItem", async (site, key) => {
    const permits = new Semaphore(site.client(), key, { permits: 3 });
    return () => permits.acquire({ permits: 3 });
  }),
  promised("renew a permit", "1 UpdateItem", async (site, key) => {
    const permit = await new Semaphore(site.client(), key, { permits: 3 }).acquire();
    return () => permit.renew();
  }),
  promised("release a permit", "1 UpdateItem", async (site, key) => {
    const permit = await new Semaphore(site.client(), key, { permits: 3 }).acquire();
    return () => permit.release();
  }),
  promised("take over from a dead holder", "2 UpdateItem", async (site, key) => {
    await new Semaphore(deadClient(site), key, one).acquire();
    return () => new Semaphore(site.client(), key, one).acquire();
  }),
  promised("take over from 150 dead holders", "4 UpdateItem", [], async (site, key) => {
    const dead = new Semaphore(deadClient(site), key, { permits: 150 });
    for (let holder = 0; holder < 150; holder += 1) await dead.acquire({ owner: "worker" });
    const permits = new Semaphore(site.client(), key, { permits: 150 });
    return () => permits.acquire({ permits: 150 });
  }),
  promised("wait 10 s, all permits stay held", "6 GetItem, 1 UpdateItem", [1, 3], async (site, key) => {
    const world = site.stopped();
    await new Semaphore(world.client(), key, one).acquire(held);
    return during(world, waitMs, () => new Semaphore(world.client(), key, one).acquire({ waitMs }));
  }),
  promised("share an own lease in one client (`reentrant`)", "none", async (site, key) => {
    const permits = new Semaphore(site.client(), key, one);
    await permits.acquire(again);
    return () => permits.acquire(again);
  }),
  promised("take over an own lease from elsewhere (`reentrant`)", "2 UpdateItem", async (site, key) => {
    await new Semaphore(site.client(), key, one).acquire(again);
    return () => new Semaphore(site.client(), key, one).acquire(again);
  }),
  promised("3 heartbeats of one key, with `renewals: together()`", "3 UpdateItem", async (site, key) => {
    const holder = site.stopped();
    const client = holder.client({ renewals: together() });
    const permits = new Semaphore(client, key, { permits: 3 });
    const leases = [];
    for (let held = 0; held < 3; held += 1) leases.push(await permits.acquire({ heartbeat: 10_000 }));
    return during(holder, 10_000);
  }),
  promised(
    "3 heartbeats of 3 keys, with `renewals: together()`",
    "1 BatchExecuteStatement",
    [3, 0],
    async (site) => {
      const holder = site.stopped();
      const client = holder.client({ renewals: together() });
      const leases = [];
      for (let held = 0; held < 3; held += 1)
        leases.push(await new Semaphore(client, site.newKey(), one).acquire({ heartbeat: 10_000 }));
      return during(holder, 10_000);
    },
  ),
  promised("give up: the reply is lost", "2 UpdateItem", async (site, key) => {
    const process = site.stopped();
    process.loseReply();
    return during(process, 0, () => new Semaphore(process.client(), key, one).acquire());
  }),
  promised("`drain` for 10 s, a permit stays held", "7 GetItem", [0, 4], async (site, key) => {
    const world = site.stopped();
    await new Semaphore(world.client(), key, one).acquire(held);
    return during(world, waitMs, () => new Semaphore(world.client(), key, one).drain({ waitMs }));
  }),
  promised("inspect", "1 GetItem", async (site, key) => {
    const permits = new Semaphore(site.client(), key, one);
    await permits.acquire();
    return () => permits.inspect();
  }),
  promised("`LeaseAdmin.forceRelease` of a permit", "1 GetItem, 1 UpdateItem", async (site) => {
    const permits = new Semaphore(site.client(), site.newKey(), one);
    const { key, token } = await permits.acquire();
    const [record] = (await permits.inspect()).held;
    const sortKey = record?.sortKey ?? "";
    return () => new LeaseAdmin(site.client()).forceRelease(key, { token, sortKey });
  }),
];
