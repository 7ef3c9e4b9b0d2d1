/** What candidates and observers of an election send: in processes that stand still, where no heartbeat comes between. */
import { Leader } from "@leasehold/client/leader";
import { deadClient, during, held, type Promised, promised } from "./promised.ts";

const minuteMs = 60_000;

export const leader: readonly Promised[] = [
  promised("be elected", "1 UpdateItem", async (site, key) => {
    const candidate = new Leader(site.stopped().client(), key);
    return () => candidate.campaign();
  }),
  promised("resign", "1 UpdateItem", async (site, key) => {
    const candidate = new Leader(site.stopped().client(), key);
    await candidate.campaign();
    return () => candidate.resign();
  }),
  promised("who leads", "1 GetItem", [0, 0.5], async (site, key) => {
    const candidate = new Leader(site.stopped().client(), key);
    await candidate.campaign();
    return () => new Leader(site.stopped().client(), key).current();
  }),
  promised("succeed a dead leader", "2 UpdateItem", async (site, key) => {
    await new Leader(deadClient(site), key).campaign();
    const candidate = new Leader(site.stopped().client(), key);
    return () => candidate.campaign();
  }),
  promised("resume an own leadership (`reentrant`)", "2 UpdateItem", async (site, key) => {
    const options = { owner: "node-1", reentrant: true } as const;
    await new Leader(site.stopped().client(), key, options).campaign();
    const candidate = new Leader(site.stopped().client(), key, options);
    return () => candidate.campaign();
  }),
  promised(
    "campaign for a minute, another leads",
    "15 GetItem, 1 UpdateItem",
    [1, 7.5],
    async (site, key) => {
      const world = site.stopped();
      await world.client().acquire(key, held);
      const stop = new AbortController();
      world.schedule(() => stop.abort(), minuteMs);
      const candidate = new Leader(world.client(), key);
      return during(world, minuteMs, () => candidate.campaign({ signal: stop.signal }));
    },
  ),
  promised("lead for a minute, with a lease of 30 s", "6 UpdateItem", async (site, key) => {
    const process = site.stopped();
    const candidate = new Leader(process.client(), key, { leaseDurationMs: 30_000 });
    await candidate.campaign();
    return during(process, minuteMs);
  }),
  promised("`observe()` for a minute, without a change", "10 GetItem", [0, 5], async (site, key) => {
    const world = site.stopped();
    await world.client().acquire(key, held);
    const stop = new AbortController();
    world.schedule(() => stop.abort(), minuteMs);
    return during(world, minuteMs, async () => {
      for await (const _ of new Leader(world.client(), key).observe({ signal: stop.signal }));
    });
  }),
];
