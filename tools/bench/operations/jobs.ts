/** What job runs send. */
import { together } from "@leasehold/client/together";
import { JobRuns, type JobRunsOptions, type RunContext, type RunOptions } from "@leasehold/jobs";
import { during, hourMs, type OperationSite, type Promised, promised } from "./promised.ts";

const slot = "2026-11-21T02:00:00.000Z";
const done = (): undefined => undefined;
const failing = (): never => {
  throw new Error("no paper");
};

const never = (): Promise<never> => new Promise(() => undefined);
const once = { maxAttempts: 1 } as const;

/** Hourly slots of a day. */
const day = {
  schedule: { next: (after: Date) => new Date((Math.floor(after.getTime() / hourMs) + 1) * hourMs) },
  since: "2026-11-21T00:00:00.000Z",
  until: "2026-11-22T00:00:00.000Z",
} as const;

/** A job that has run at these hours. */
async function ranAt(site: OperationSite, hours: readonly string[]): Promise<JobRuns> {
  const runs = new JobRuns(site.client(), site.newKey());
  for (const hour of hours) await runs.run(`2026-11-21T${hour}:00:00.000Z`, done);
  return runs;
}

async function readAll(runs: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of runs);
}

/** Begins an attempt that never ends, in a process that stands still. */
async function begun(
  site: OperationSite,
  job: string,
  agoMs: number,
  options: JobRunsOptions = {},
  call: RunOptions = {},
): Promise<void> {
  const process = site.stopped(agoMs);
  void new JobRuns(process.client(), job, options).run(slot, never, call);
  await process.settle();
}

export const jobRuns: readonly Promised[] = [
  promised(
    "run a slot",
    "2 UpdateItem",
    (site, key) => () => new JobRuns(site.client(), key).run(slot, done),
  ),
  {
    ...promised(
      "the first run of an object with a `schedule`",
      "3 UpdateItem",
      (site, key) => () => new JobRuns(site.client(), key, { schedule: "rate(1 hour)" }).run(slot, done),
    ),
    writesElsewhere: true,
  },
  promised("the same slot again", "1 UpdateItem", async (site, key) => {
    await new JobRuns(site.client(), key).run(slot, done);
    return () => new JobRuns(site.client(), key).tryRun(slot, done);
  }),
  promised("skip a slot", "1 UpdateItem", (site, key) => () => new JobRuns(site.client(), key).skip(slot)),
  promised("read a run", "1 GetItem", async (site, key) => {
    await new JobRuns(site.client(), key).run(slot, done);
    return () => new JobRuns(site.client(), key).get(slot);
  }),
  promised("take a success back", "1 UpdateItem", async (site, key) => {
    const runs = new JobRuns(site.client(), key);
    await runs.run(slot, done);
    const run = await runs.get(slot);
    if (run === undefined) throw new Error("the run that has just ended is not there");
    return () => runs.takeBack(run);
  }),
  promised("run a slot whose last attempt failed", "2 UpdateItem", async (site, job) => {
    await new JobRuns(site.client(), job).run(slot, failing).catch(done);
    return () => new JobRuns(site.client(), job).run(slot, done);
  }),
  promised("run a slot whose last attempt was lost", "3 UpdateItem", async (site, job) => {
    await begun(site, job, hourMs);
    return () => new JobRuns(site.client(), job).run(slot, done);
  }),
  promised("a running slot", "1 UpdateItem", async (site, job) => {
    await begun(site, job, 0);
    return () => new JobRuns(site.client(), job).tryRun(slot, done);
  }),
  promised("a skipped slot", "1 UpdateItem", async (site, job) => {
    await new JobRuns(site.client(), job).skip(slot);
    return () => new JobRuns(site.client(), job).tryRun(slot, done);
  }),
  promised("a slot whose attempts all failed", "1 UpdateItem", async (site, job) => {
    await new JobRuns(site.client(), job, once).run(slot, failing).catch(done);
    return () => new JobRuns(site.client(), job, once).tryRun(slot, done).catch(done);
  }),
  promised("a slot whose only attempt was lost", "1 UpdateItem", async (site, job) => {
    await begun(site, job, hourMs, once);
    return () => new JobRuns(site.client(), job, once).tryRun(slot, done).catch(done);
  }),
  promised("run a slot whose attempt has the same owner (`reentrant`)", "3 UpdateItem", async (site, job) => {
    const again = { owner: "request-1", reentrant: true } as const;
    await begun(site, job, 0, {}, again);
    return () => new JobRuns(site.client(), job).run(slot, done, again);
  }),
  promised("skip a slot whose last attempt was lost", "2 UpdateItem", async (site, job) => {
    await begun(site, job, hourMs);
    return () => new JobRuns(site.client(), job).skip(slot);
  }),
  promised("report progress with `lease.renew()`", "1 UpdateItem", async (site, key) => {
    const { promise, resolve } = Promise.withResolvers<RunContext>();
    const runs = new JobRuns(site.stopped().client(), key);
    void runs.run(slot, (context) => {
      resolve(context);
      return never();
    });
    const { lease, progress } = await promise;
    progress({ pages: 3 });
    return () => lease.renew();
  }),
  promised(
    "3 heartbeats, with `renewals: together()`",
    "1 BatchExecuteStatement",
    [3, 0],
    async (site, key) => {
      const process = site.stopped();
      const client = process.client({ renewals: together() });
      const runs = new JobRuns(client, key, { heartbeat: 10_000 });
      for (const hour of ["02", "03", "04"]) void runs.run(`2026-11-21T${hour}:00:00.000Z`, never);
      await process.settle();
      return during(process, 10_000);
    },
  ),
  promised("`runs`, 3 of them", "1 Query", [0, 0.5], async (site) => {
    const runs = await ranAt(site, ["02", "03", "04"]);
    return () => readAll(runs.runs());
  }),
  promised("`missed`, in a day", "1 Query", [0, 1], async (site) => {
    const runs = await ranAt(site, ["02", "03", "04"]);
    return () => readAll(runs.missed(day));
  }),
  promised("`backfill`, 4 missed slots", "1 Query, 8 UpdateItem", [8, 1], async (site) => {
    const runs = await ranAt(site, ["02"]);
    return () => runs.backfill({ ...day, until: "2026-11-21T05:00:00.000Z" }, done);
  }),
];
