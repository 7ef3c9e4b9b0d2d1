/** What candidates and observers of an election send while another candidate leads. */
import { Leader } from "@leasehold/client/leader";
import { countedWhile, deadClient, held, type Promised, promised } from "../promised.ts";

const minuteMs = 60_000;

export const contendedLeader: readonly Promised[] = [
  promised("leader: succeed a leader that is dead", "2 UpdateItem", [2, 0], async (site) => {
    const key = site.newKey();
    await new Leader(deadClient(site), key).campaign();
    const candidate = new Leader(site.client(), key);
    await site.counted(() => candidate.campaign());
    await candidate.resign();
  }),
  promised(
    "leader: resume the leadership of the same owner (`reentrant`)",
    "2 UpdateItem",
    [2, 0],
    async (site) => {
      const key = site.newKey();
      const options = { owner: "node-1", reentrant: true } as const;
      await new Leader(site.stopped().client(), key, options).campaign();
      const candidate = new Leader(site.client(), key, options);
      await site.counted(() => candidate.campaign());
      await candidate.resign();
    },
  ),
  promised(
    "leader: campaign for a minute, another leads",
    "15 GetItem, 1 UpdateItem",
    [1, 7.5],
    async (site) => {
      const world = site.stopped();
      const lease = await world.client().acquire(site.newKey(), held);
      const stop = new AbortController();
      world.schedule(() => stop.abort(), minuteMs);
      const candidate = new Leader(world.client(), lease.key);
      await countedWhile(site, world, minuteMs, () => candidate.campaign({ signal: stop.signal }));
      await lease.release();
    },
  ),
  promised("leader: lead for a minute, with a lease of 30 s", "6 UpdateItem", [6, 0], async (site) => {
    const process = site.stopped();
    const candidate = new Leader(process.client(), site.newKey(), { leaseDurationMs: 30_000 });
    await candidate.campaign();
    await countedWhile(site, process, minuteMs, async () => undefined);
    await candidate.resign();
  }),
  promised("leader: `observe()` for a minute, without a change", "10 GetItem", [0, 5], async (site) => {
    const world = site.stopped();
    const lease = await world.client().acquire(site.newKey(), held);
    const stop = new AbortController();
    world.schedule(() => stop.abort(), minuteMs);
    await countedWhile(site, world, minuteMs, async () => {
      for await (const _ of new Leader(world.client(), lease.key).observe({ signal: stop.signal }));
    });
    await lease.release();
  }),
];
