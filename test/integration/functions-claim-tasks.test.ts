import { setTimeout as delay } from "node:timers/promises";
import { type Clock, LeaseClient, systemClock } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { compareChecksum } from "../../functions/claim-tasks/checksum.ts";
import { taskLockKey } from "../../functions/claim-tasks/schema.ts";
import { TaskBoard } from "../../functions/claim-tasks/task-board.ts";
import { type Worker, workOn } from "../../functions/claim-tasks/worker.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

let system: SystemTables;
let board: TaskBoard;
let set: string;
let sets = 0;

beforeAll(async () => {
  system = await makeSystemTables();
  board = new TaskBoard(system.documents, system.tableName);
});
beforeEach(() => {
  set = `set-${++sets}`;
});
afterAll(() => system?.close());

function worker(owner: string, options: Partial<Worker> = {}): Worker {
  return {
    leases: system.leases.client({ owner, dynamodb: system.documents, clockSkewMs: 0 }),
    board,
    work: async ({ input }) => ({ succeeded: true, result: input }),
    mostAttempts: 3,
    leaseDurationMs: 10_000,
    remainingMs: () => 60_000,
    ...options,
  };
}

/** A worker that takes up its first task and stands still from there on; its lease has ended when this resolves. */
async function dies(owner: string): Promise<void> {
  const still: Clock = { ...systemClock, schedule: () => () => undefined };
  const leases = system.leases.client({ owner, dynamodb: system.documents, clockSkewMs: 0, clock: still });
  const leaseDurationMs = 50;
  await new Promise<void>((begun) => {
    const work = (): Promise<never> => {
      begun();
      return new Promise(() => undefined);
    };
    void workOn(worker(owner, { leases, leaseDurationMs, work }), set);
  });
  await delay(leaseDurationMs + 10);
}

describe("the claiming of tasks", () => {
  test("of many workers each task is done by one, in an order of each worker's own", async () => {
    const names = Array.from({ length: 10 }, (_, index) => `task-${index}`);
    for (const name of names) await board.put(set, name, name);
    const done: string[] = [];
    const orders = new Map<string, string[]>();
    const workers = ["A", "B", "C", "D", "E", "F"].map((owner) =>
      workOn(
        worker(owner, {
          work: async ({ task }) => {
            done.push(task);
            orders.set(owner, [...(orders.get(owner) ?? []), task]);
            await delay(15);
            return { succeeded: true, result: owner };
          },
        }),
        set,
      ),
    );
    const reports = await Promise.all(workers);
    expect([...done].sort()).toEqual([...names].sort());
    expect(reports.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(10);
    expect(done).not.toEqual(names);
    for (const name of names) {
      expect(await board.read(set, name)).toMatchObject({ state: "succeeded", attempts: 1 });
    }
  });

  test("a task that waits, runs, succeeds or fails says so, with a remark where something was wrong", async () => {
    await board.put(set, "good", {
      text: "a",
      sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
    });
    await board.put(set, "bad", { text: "b", sha256: "ca978112" });
    await board.put(set, "odd", 7);
    expect(await board.put(set, "good", 7)).toBe(false);
    expect(await board.read(set, "good")).toMatchObject({ state: "waiting", attempts: 0 });

    let whileRunning: unknown;
    const work: Worker["work"] = async (task, signal) => {
      if (task.task === "good") whileRunning = await board.read(set, "good");
      expect(signal.aborted).toBe(false);
      return await compareChecksum(task);
    };
    expect(await workOn(worker("A", { work }), set)).toMatchObject({
      succeeded: 1,
      failed: 2,
      isUnfinished: false,
    });
    expect(whileRunning).toMatchObject({ state: "running", worker: "A", attempts: 1 });
    expect(await board.read(set, "good")).toMatchObject({ state: "succeeded" });
    expect(await board.read(set, "bad")).toMatchObject({
      state: "failed",
      remark: expect.stringContaining("SHA-256"),
    });
    expect(await board.read(set, "odd")).toMatchObject({
      state: "failed",
      remark: expect.stringContaining("lacks"),
    });
  });

  test("a dead worker's task becomes claimable again, and the attempt counts", async () => {
    await board.put(set, "t", 1);
    await dies("the dead");
    expect(await board.read(set, "t")).toMatchObject({ state: "running", worker: "the dead", attempts: 1 });
    expect(await workOn(worker("B"), set)).toMatchObject({ succeeded: 1 });
    expect(await board.read(set, "t")).toMatchObject({ state: "succeeded", worker: "B", attempts: 2 });
  });

  test("a task over which worker after worker dies is given up, with a remark", async () => {
    await board.put(set, "t", 1);
    for (const owner of ["first", "second", "third"]) await dies(owner);
    expect(await workOn(worker("B"), set)).toMatchObject({ succeeded: 0, failed: 1 });
    expect(await board.read(set, "t")).toMatchObject({
      state: "failed",
      attempts: 3,
      remark: expect.stringMatching(/given up after 3 attempts.*third died/),
    });
  });

  test("a task that is being done is left alone, and a living worker's claim is kept by its heartbeat", async () => {
    await board.put(set, "t", 1);
    const clock = new ManualClock();
    const store = new MemoryLeaseStore();
    const leases = (owner: string): LeaseClient => new LeaseClient({ store, clock, owner });
    const a = await leases("A").acquire(taskLockKey(set, "t"), { leaseDurationMs: 10_000, heartbeat: true });
    await clock.advance(60_000);
    expect(await workOn(worker("B", { leases: leases("B") }), set)).toMatchObject({
      claimedByOthers: 1,
      succeeded: 0,
    });
    await a.release();
  });

  test("an error puts the task back with a remark, and the last one fails it", async () => {
    await board.put(set, "t", 1);
    const failing = worker("A", { work: () => Promise.reject(new Error("no paper")), mostAttempts: 2 });
    expect(await workOn(failing, set)).toMatchObject({ putBack: 1 });
    expect(await board.read(set, "t")).toMatchObject({ state: "waiting", attempts: 1, remark: "no paper" });
    expect(await workOn(failing, set)).toMatchObject({ failed: 1 });
    expect(await board.read(set, "t")).toMatchObject({ state: "failed", attempts: 2, remark: /no paper/ });
  });

  test("a worker that was overtaken writes no result, however late it comes", async () => {
    await board.put(set, "t", 1);
    let goOn: () => void = () => undefined;
    let begun: () => void = () => undefined;
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const late = worker("late", {
      work: () => {
        begun();
        return new Promise((resolve) => {
          goOn = () => resolve({ succeeded: true, result: "late" });
        });
      },
    });
    const overtaken = workOn(late, set);
    await isBegun;
    const key = taskLockKey(set, "t");
    const held = await late.leases.inspect(key);
    await late.leases.forceRelease(key, { token: held?.token ?? "" });
    expect(await workOn(worker("B"), set)).toMatchObject({ succeeded: 1 });
    goOn();
    expect(await overtaken).toMatchObject({ lost: 1, succeeded: 0 });
    expect(await board.read(set, "t")).toMatchObject({ state: "succeeded", worker: "B", result: 1 });
  });

  test("a worker whose time is nearly over begins nothing more", async () => {
    await board.put(set, "t", 1);
    expect(await workOn(worker("A", { remainingMs: () => 1_000 }), set)).toMatchObject({
      isUnfinished: true,
    });
    expect(await board.read(set, "t")).toMatchObject({ state: "waiting", attempts: 0 });
  });
});
