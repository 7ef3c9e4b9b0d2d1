import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { FinalFailureError, type Task, TaskSet } from "@leasehold/jobs";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { RegisteredSets } from "../../functions/claim-tasks/register.ts";
import { type RestartParts, type RestartReport, restart } from "../../functions/claim-tasks/restart.ts";
import { taskSetKey } from "../../functions/claim-tasks/schema.ts";
import { compareChecksum, workOn } from "../../functions/claim-tasks/worker.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;
const nothing = { succeeded: 0, failed: 0, parked: 0, putBack: 0, lost: 0, isUnfinished: false, drained: 0 };
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
  await sets.add(set, clock.now());
}

describe("a worker", () => {
  test("judges a task by its checksum, and leaves in its remark what was wrong", async () => {
    const tasks = open("checksums");
    const sha256 = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    await tasks.add([
      { id: "good", payload: { text: "a", sha256 } },
      { id: "bad", payload: { text: "b", sha256: "ca978112" } },
      { id: "odd", payload: 7 },
      { id: "empty" },
    ]);
    const report = await workOn(tasks, ({ payload }) => compareChecksum(payload), 60_000);
    const counts = { succeeded: 1, failed: 0, parked: 2, putBack: 1, lost: 0 };
    expect(report).toEqual({ ...counts, isUnfinished: false });
    const tasksNow = await Promise.all(["good", "bad", "odd", "empty"].map((id) => tasks.get(id)));
    expect(tasksNow).toMatchObject([
      { state: "succeeded", remark: expect.stringContaining("ca978112ca1b") },
      { state: "waiting", remark: expect.stringContaining("document's SHA-256") },
      { state: "parked", remark: expect.stringContaining("lacks") },
      { state: "parked", remark: expect.stringContaining("lacks") },
    ]);
  });

  test("whose time is nearly over begins nothing more, and one whose time runs out ends what it has", async () => {
    const tasks = open("times");
    await tasks.add([{ id: "t" }, { id: "u" }]);
    const none = await workOn(tasks, () => undefined, 1_000);
    expect(none).toMatchObject({ succeeded: 0, isUnfinished: true });
    const delay = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 3_050));
    expect(await workOn(tasks, delay, 5_000)).toMatchObject({ succeeded: 1, isUnfinished: true });
    expect(await tasks.counts()).toMatchObject({ succeeded: 1, waiting: 1 });
  });
});

describe("the restart of workers", () => {
  const names = async (): Promise<string[]> => (await sets.all()).map(({ set }) => set).sort();
  function restarted(
    work: (task: Task) => unknown = () => undefined,
    other: Partial<RestartParts> = {},
  ): Promise<RestartReport> {
    const remainingMs = (): number => 60_000;
    return restart({ sets, open, work, remainingMs, now: () => clock.now(), ...other });
  }

  test("does what can be done in every set, and leaves what is not due for the next time", async () => {
    expect(await restarted()).toEqual({ ...nothing, sets: 0 });
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

  test.each([
    [9, ["drained"]],
    [11, []],
  ])("has a drained set in the register after %i minutes, for a look may lag: %j", async (minutes, left) => {
    await add("drained", "1");
    await restarted();
    clock.jump(minutes * minuteMs);
    await restarted();
    expect(await names()).toEqual(left);
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
});
