import { type Item, LeaseClient, type LeaseEvent } from "@leasehold/client";
import { attributeNames, leaseItemKey } from "@leasehold/client/internal";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { JobRuns, type JobRunsOptions, registeredJobs } from "../../packages/jobs/src/index.ts";
import { canBeRegistered } from "../../packages/jobs/src/runs/job-registry.ts";
import { leasehold } from "../support/command-line.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const hourMs = 3_600_000;
const { partitionKey, sortKey, timeToLive } = attributeNames;
const key = leaseItemKey("leasehold/registry", "job#report");
const schedule = "cron(0 * * * ? *)";
let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let client: LeaseClient;
let hours: number;

const runsOf = (options: JobRunsOptions): JobRuns =>
  new JobRuns(client, "report", { heartbeat: false, ...options });
/** Runs the next slot. */
const run = (runs: JobRuns): Promise<unknown> => {
  hours += 1;
  return runs.run(new Date(Date.UTC(2026, 0, 1, hours)), () => "done");
};
const entry = (): Item | undefined => store.table.peek(key);
const isEntry = ({ requests: [request] }: (typeof store.calls)[number]) =>
  request?.key.pk === "leasehold/registry";
const writes = () => store.calls.filter(isEntry).length;
/** What becomes of the entry when another process runs the job so. */
const entryAfter = async (options: JobRunsOptions, laterMs = hourMs): Promise<Item> => {
  await clock.advance(laterMs);
  await run(runsOf(options));
  return entry() ?? {};
};

beforeEach(() => {
  clock = new ManualClock(Date.UTC(2026, 0, 3));
  store = new ScriptedStore();
  events = [];
  client = new LeaseClient({ store, clock, owner: "a", onEvent: (event) => void events.push(event) });
  hours = 0;
});

describe("the entry of a job", () => {
  test("has its schedule and its time zone, and is kept for as long as its runs", async () => {
    await run(runsOf({ schedule, timeZone: "Europe/Berlin" }));
    expect(entry()).toEqual({
      ...key,
      schedule,
      timeZone: "Europe/Berlin",
      [timeToLive]: expect.any(Number),
    });
    expect(Number(entry()?.[timeToLive]) * 1_000).toBeGreaterThan(clock.now() + 24 * hourMs);
    const [request] = store.calls.find(isEntry)?.requests ?? [];
    expect(JSON.stringify(request)).not.toContain("REMOVE");
  });

  test("is written again by the same process after a day, and not before", async () => {
    const runs = runsOf({ schedule });
    await run(runs);
    await clock.advance(24 * hourMs - 1);
    await run(runs);
    expect(writes()).toBe(1);
    await clock.advance(1);
    await run(runs);
    expect(writes()).toBe(2);
  });
});

test("the entry of a job has the new time zone at once, and none where the job has none any more", async () => {
  for (const timeZone of ["UTC", "Europe/Berlin", undefined]) {
    const options = timeZone === undefined ? { schedule } : { schedule, timeZone };
    expect((await entryAfter(options)).timeZone).toBe(timeZone);
  }
});

describe.each<[string, JobRunsOptions]>([
  ["in UTC", { schedule }],
  ["in a time zone", { schedule, timeZone: "Europe/Berlin" }],
])("the entry of a job %s", (_, options) => {
  test("has the new schedule at once", async () => {
    await run(runsOf(options));
    const other = { ...options, schedule: "rate(1 hour)" };
    expect(await entryAfter(other)).toMatchObject(other);
  });

  test("stays as it is when another process finds it less than a day old", async () => {
    await run(runsOf(options));
    const before = entry();
    expect(await entryAfter(options, 23 * hourMs)).toEqual(before);
  });

  test("is kept for longer when another process finds it more than a day old", async () => {
    await run(runsOf(options));
    const before = Number(entry()?.[timeToLive]);
    expect(Number((await entryAfter(options, 25 * hourMs))[timeToLive])).toBe(before + 25 * 3_600);
  });

  test("is kept for long again when a table without ttl has lost that time", async () => {
    await run(runsOf(options));
    store.table.updateNow({
      ...{ key, update: "REMOVE #ttl", condition: "attribute_exists(#ttl)", returnsItem: false },
      ...{ names: { "#ttl": timeToLive }, values: {} },
    });
    expect(entry()).not.toHaveProperty(timeToLive);
    expect((await entryAfter(options))[timeToLive]).toEqual(expect.any(Number));
  });

  test("is there after each run, of every process, also where runs are kept for less than a day", async () => {
    const begin = (): JobRuns => runsOf({ ...options, keepForMs: hourMs });
    const runEachHour = async (runs: JobRuns, times: number): Promise<void> => {
      for (let count = 0; count < times; count += 1) {
        await runs.run(new Date(clock.now()), () => "done");
        store.table.collectGarbage(clock.now());
        expect(entry()).toMatchObject(options);
        await clock.advance(hourMs);
      }
    };
    await runEachHour(begin(), 23);
    // The second process finds the entry of the first.
    await runEachHour(begin(), 26);
  });
});

describe("a failure to write the entry", () => {
  test("holds a run up for no more than three seconds", async () => {
    store.next(undefined, "hangs");
    const done = run(runsOf({ schedule }));
    let isDone = false;
    void done.then(() => {
      isDone = true;
    });
    await clock.advance(2_999);
    expect(isDone).toBe(false);
    await clock.advance(1);
    expect(isDone).toBe(true);
  });

  test("makes the next run try again", async () => {
    const runs = runsOf({ schedule });
    store.next(undefined, "rejected");
    expect(await run(runs)).toBe("done");
    await run(runs);
    expect(writes()).toBe(2);
    expect(entry()).toMatchObject({ schedule });
  });

  test("rejects when it is a mistake in the program", async () => {
    const update = store.update.bind(store);
    const mistake = new TypeError("a mistake");
    store.update = (request, options) =>
      request.key.pk === "leasehold/registry" ? Promise.reject(mistake) : update(request, options);
    await expect(run(runsOf({ schedule }))).rejects.toBe(mistake);
  });
});

describe("a job's name", () => {
  test("is as long as a sort key can hold, or the job is not registered", async () => {
    const longest = "j".repeat(1_024 - "job#".length);
    expect(canBeRegistered(longest)).toBe(true);
    expect(canBeRegistered(`${longest}j`)).toBe(false);
    const runs = new JobRuns(client, `${longest}j`, { heartbeat: false, schedule });
    await run(runs);
    expect(writes()).toBe(0);
  });
});

test("a schedule that is none is refused, and a time zone without one", () => {
  expect(() => runsOf({ schedule: "cron(0 * * * *)" })).toThrow(/schedule is/);
  expect(() => runsOf({ timeZone: "Europe/Berlin" })).toThrow(/timeZone is/);
  expect(() => runsOf({ schedule: "rate(1 hour)", timeZone: "Mars/Base" })).toThrow(/schedule is/);
});

describe("the registered jobs", () => {
  test("are those with a schedule, after their first run; a job without one costs nothing", async () => {
    await run(new JobRuns(client, "other", { heartbeat: false }));
    expect(store.calls).toHaveLength(2);
    await run(runsOf({ schedule, timeZone: "Europe/Berlin" }));
    expect(await registeredJobs(client)).toEqual([{ job: "report", schedule, timeZone: "Europe/Berlin" }]);
  });

  test("are found by the command line with what they have missed, without a scan", async () => {
    await clock.advance(hourMs / 2);
    await runsOf({ schedule }).run(new Date(Date.UTC(2026, 0, 3)), () => "done");
    store.scan = () => Promise.reject(new Error("a scan"));
    const listed = await leasehold(["jobs", "--json"], { store, clock });
    expect(JSON.parse(listed.stdout)).toMatchObject([{ job: "report", missed: 23 }]);
    const args = ["jobs", "missed", "report", "--since", "3h", "-o", "key"];
    const missed = await leasehold(args, { store, clock });
    expect(missed.stdout).toBe("2026-01-02T22:00:00.000Z\n2026-01-02T23:00:00.000Z\n");
  });

  test("are read page by page, and what cannot be read is left out and reported", async () => {
    const pages = [
      { items: [{ ...key, schedule }], next: key },
      { items: [{ [partitionKey]: "leasehold/registry", [sortKey]: "job#broken", schedule: 5 }] },
    ];
    const requests: object[] = [];
    store.query = async (request) => {
      requests.push(request);
      return pages.shift() ?? { items: [] };
    };
    expect(await registeredJobs(client)).toEqual([{ job: "report", schedule, timeZone: undefined }]);
    expect(requests).toMatchObject([{ consistent: false }, { after: key }]);
    expect(events).toMatchObject([{ type: "unreadable", sortKey: "job#broken", attribute: "schedule" }]);
  });
});
