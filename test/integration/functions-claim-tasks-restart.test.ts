import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { FinalFailureError, type Task, TaskSet } from "@leasehold/jobs";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { register } from "../../functions/claim-tasks/handler.ts";
import {
  RegisteredSets,
  type RestartParts,
  type RestartReport,
  restart,
} from "../../functions/claim-tasks/restart.ts";
import { taskSetKey } from "../../functions/claim-tasks/schema.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

const hourMs = 3_600_000;
let system: SystemTables;
/** The leases of the sets, in the time of the test's clock. */
let leases: EnginePlace;
let sets: RegisteredSets;
let clock: ManualClock;

beforeAll(async () => {
  system = await makeSystemTables();
  leases = await makeEnginePlace(inject("engine"));
});
beforeEach(async () => {
  sets = new RegisteredSets(system.documents, system.tableName);
  for (const one of await sets.all()) await sets.forget(one);
  clock = new ManualClock(Date.now());
});
afterAll(() => {
  system?.close();
  leases?.close();
});

function open(set: string, owner = "restart"): TaskSet {
  const client = new LeaseClient({ ...leases.place(clock), owner, clock, leaseDurationMs: 30_000 });
  return new TaskSet(client, taskSetKey(set), { backoff: { delayMs: 10_000 } });
}

async function add(set: string, ...ids: string[]): Promise<void> {
  await open(set).add(ids.map((id) => ({ id })));
  await register(system.documents, system.tableName, set, clock.now());
}

function restarted(
  work: (task: Task) => unknown = () => undefined,
  other: Partial<RestartParts> = {},
): Promise<RestartReport> {
  const remainingMs = (): number => 60_000;
  return restart({ sets, open, work, remainingMs, now: () => clock.now(), ...other });
}

const names = async (): Promise<string[]> => (await sets.all()).map(({ set }) => set).sort();
const nothing = { succeeded: 0, failed: 0, parked: 0, putBack: 0, lost: 0, isUnfinished: false, drained: 0 };

describe("the restart of workers", () => {
  test("does what can be done in every set, and leaves what is not due for the next time", async () => {
    await add("a", "1", "2");
    await add("b", "bad", "hopeless");
    const work = ({ id }: Task): void => {
      if (id === "bad") throw new Error("no stock");
      if (id === "hopeless") throw new FinalFailureError("no address");
    };
    const first = await restarted(work);
    expect(first).toEqual({ ...nothing, sets: 2, succeeded: 2, parked: 1, putBack: 1 });
    expect(await restarted(work)).toEqual({ ...nothing, sets: 2 });
    await clock.advance(10_000);
    expect(await restarted(() => undefined)).toEqual({ ...nothing, sets: 2, succeeded: 1 });
  });

  test("does the tasks of a worker that died, once its claim has run out", async () => {
    await add("dead", "1");
    await open("dead", "victim").claim();
    expect(await restarted()).toEqual({ ...nothing, sets: 1 });
    clock.freeze(31_001);
    expect(await restarted()).toEqual({ ...nothing, sets: 1, succeeded: 1 });
    expect(await open("dead").get("1")).toMatchObject({ state: "succeeded", owner: "restart", attempts: 2 });
  });

  test("takes a set out of the register when all of its tasks have ended, and not before", async () => {
    await add("done", "1");
    await add("running", "1");
    await add("waiting", "1");
    await open("running", "other").claim();
    const task = await open("waiting", "other").claim();
    await task?.fail("no stock", { retryAfterMs: 2 * hourMs });
    clock.freeze(20_000);
    expect(await restarted()).toEqual({ ...nothing, sets: 3, succeeded: 1 });
    expect(await names()).toEqual(["done", "running", "waiting"]);
    clock.jump(hourMs);
    const running = await open("running", "another").claim();
    expect(await restarted()).toMatchObject({ sets: 3, drained: 1 });
    expect(await names()).toEqual(["running", "waiting"]);
    await running?.succeed();
  });

  test("leaves a set in the register that tasks are added to while it is looked at", async () => {
    await add("late", "1");
    clock.jump(hourMs);
    const forgetLate: Pick<RegisteredSets, "all" | "forget"> = {
      all: () => sets.all(),
      forget: async (one) => {
        clock.jump(1);
        await add("late", "2");
        await sets.forget(one);
      },
    };
    await restarted(undefined, { sets: forgetLate });
    expect(await names()).toEqual(["late"]);
    expect(await restarted()).toMatchObject({ sets: 1, succeeded: 1 });
  });

  test("begins nothing when its time is nearly over, and says so", async () => {
    await add("short", "1");
    const report = await restarted(undefined, { remainingMs: () => 1_000 });
    expect(report).toEqual({ ...nothing, sets: 1, isUnfinished: true });
    expect(await open("short").counts()).toMatchObject({ waiting: 1 });
  });

  test("by two at once does each task once", async () => {
    await add("both", "1", "2", "3", "4", "5", "6");
    const done: string[] = [];
    const work = ({ id }: Task): void => void done.push(id);
    const reports = await Promise.all([restarted(work), restarted(work)]);
    expect(done.sort()).toEqual(["1", "2", "3", "4", "5", "6"]);
    expect(reports.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(6);
  });

  test("has nothing to do without sets", async () => {
    expect(await restarted()).toEqual({ ...nothing, sets: 0 });
  });
});
