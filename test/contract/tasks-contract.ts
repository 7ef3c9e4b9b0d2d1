import { type Clock, LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import {
  type Task,
  TaskLostError,
  type TaskLostReason,
  type TaskRecord,
  TaskSet,
  type TaskSetOptions,
} from "../../packages/jobs/src/index.ts";
import { adminOf } from "../support/admin.ts";
import { claimed } from "../support/claimed.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;

/** What holds for tasks wherever they are kept; run for memory and for every engine. */
export function tasksContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let name: string;

  const setOf = (
    owner: string,
    options: TaskSetOptions = {},
    more: Partial<LeaseClientOptions> = {},
  ): TaskSet =>
    new TaskSet(
      new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs, ...more }),
      name,
      options,
    );
  /** A worker that never renews, as one that is dead. */
  const mortal = (owner: string): TaskSet => setOf(owner, { heartbeat: false });
  const recordOf = async (id: string): Promise<TaskRecord | undefined> => {
    for await (const task of setOf("reader").list()) if (task.id === id) return task;
    return undefined;
  };
  const lossOf = async (ending: Promise<unknown>): Promise<unknown> => {
    const error = await ending.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TaskLostError);
    return (error as TaskLostError).reason;
  };

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    name = newKey("tasks");
  });

  describe("adding tasks", () => {
    it("adds each id once, whatever has become of it", async () => {
      const set = setOf("a");
      const tasks = ["1", "2", "3"].map((id) => ({ id }));
      expect(await set.add(tasks.slice(0, 2))).toEqual({ added: 2, known: 0 });
      await (await claimed(set)).succeed();
      await claimed(set);
      expect(await set.add(tasks)).toEqual({ added: 1, known: 2 });
      expect(await set.counts()).toEqual({
        waiting: 1,
        running: 1,
        succeeded: 1,
        failed: 0,
        parked: 0,
        cancelled: 0,
      });
    });

    it("keeps the first payload of an id", async () => {
      const set = setOf("a");
      await set.add([{ id: "1", payload: { of: "the first" } }]);
      await set.add([{ id: "1", payload: { of: "the second" } }]);
      expect((await claimed(set)).payload).toEqual({ of: "the first" });
    });

    it("by two callers at once adds each task once", async () => {
      const tasks = Array.from({ length: 60 }, (_, index) => ({ id: `task ${index}` }));
      const results = await Promise.all([setOf("a").add(tasks), setOf("b").add(tasks)]);
      expect(results.reduce((sum, { added }) => sum + added, 0)).toBe(60);
      expect((await setOf("a").counts()).waiting).toBe(60);
    });
  });

  describe("a claim", () => {
    it("gives a task that says what it is", async () => {
      await setOf("a").add([{ id: "1", payload: [1, "two"] }]);
      const task = await claimed(setOf("b"));
      expect(task).toMatchObject({ id: "1", payload: [1, "two"], attempt: 1, maxAttempts: 3, remark: "" });
      expect(task.held).toBe(true);
      expect(task.expiresAt).toBe(clock.now() + leaseDurationMs);
      expect(await recordOf("1")).toMatchObject({
        state: "running",
        owner: "b",
        attempts: 1,
        startedAt: clock.now(),
      });
    });

    it("gives each task to one of many workers", async () => {
      const ids = Array.from({ length: 12 }, (_, index) => `${index}`);
      await setOf("adder").add(ids.map((id) => ({ id })));
      const workers = ids.map((id) => setOf(`worker ${id}`));
      const tasks = await Promise.all(workers.map((worker) => claimed(worker)));
      expect(tasks.map(({ id }) => id).sort()).toEqual([...ids].sort());
      expect(await setOf("late").claim()).toBeUndefined();
    });

    it("finds nothing in a set that nobody has added to", async () => {
      expect(await setOf("a").claim()).toBeUndefined();
    });
  });

  describe("a task", () => {
    it("that has succeeded is kept with its remark, and never claimed again", async () => {
      const set = setOf("a");
      await set.add([{ id: "1", payload: "p" }]);
      const task = await claimed(set);
      await task.succeed("sent to 12 people");
      expect(task.held).toBe(false);
      const kept = { state: "succeeded", remark: "sent to 12 people", payload: "p", owner: "a", attempts: 1 };
      expect(await recordOf("1")).toMatchObject({ ...kept, endedAt: clock.now() });
      await clock.advance(pastLease);
      expect(await set.claim()).toBeUndefined();
    });

    it("that fails waits as long as it is told, and has failed when no attempt is left", async () => {
      const set = setOf("a", { maxAttempts: 2 });
      await set.add([{ id: "1" }]);
      expect(await (await claimed(set)).fail("no stock", { retryAfterMs: 1_000 })).toBe("waiting");
      expect(await set.claim()).toBeUndefined();
      await clock.advance(1_000);
      const second = await claimed(set);
      expect(second).toMatchObject({ attempt: 2, remark: "no stock" });
      expect(await second.fail("still no stock")).toBe("failed");
      expect(await recordOf("1")).toMatchObject({ state: "failed", remark: "still no stock", attempts: 2 });
      expect(await set.claim()).toBeUndefined();
    });

    it("that is released waits again, and its attempt does not count", async () => {
      const set = setOf("a", { maxAttempts: 1 });
      await set.add([{ id: "1" }]);
      await (await claimed(set)).release();
      const again = await claimed(set);
      expect(again.attempt).toBe(1);
      await again.succeed();
    });

    it("of a dead worker returns when its claim has run out, with a greater fencing token", async () => {
      await setOf("a").add([{ id: "1" }]);
      const dead = await claimed(mortal("dead"));
      const next = setOf("next");
      expect(await next.claim()).toBeUndefined();
      await clock.advance(pastLease);
      const task = await claimed(next);
      expect(task).toMatchObject({ id: "1", attempt: 2 });
      expect(task.fencingToken).toBeGreaterThan(dead.fencingToken);
      await task.succeed();
    });

    it("is parked when the worker of its last attempt is lost", async () => {
      await setOf("a", { maxAttempts: 2 }).add([{ id: "1", payload: 7 }]);
      await claimed(mortal("dead"));
      await clock.advance(pastLease);
      await claimed(mortal("dead too"));
      await clock.advance(pastLease);
      expect(await setOf("next").claim()).toBeUndefined();
      const parked = { state: "parked", remark: "worker lost", owner: "dead too", attempts: 2, payload: 7 };
      expect(await recordOf("1")).toMatchObject(parked);
    });

    it("that can never succeed is parked at once, and neither claimed nor added again", async () => {
      const set = setOf("a");
      await set.add([{ id: "1", payload: 7 }]);
      const first = await claimed(set);
      expect(await first.fail("no address", { final: true })).toBe("parked");
      expect(first.held).toBe(false);
      const parked = { state: "parked", remark: "no address", owner: "a", attempts: 1, maxAttempts: 3 };
      expect(await recordOf("1")).toMatchObject({ ...parked, payload: 7, endedAt: clock.now() });
      expect(await set.claim()).toBeUndefined();
      expect(await set.add([{ id: "1" }])).toEqual({ added: 0, known: 1 });
    });

    it("that can never succeed is parked at its last attempt, too", async () => {
      const set = setOf("a", { maxAttempts: 1 });
      await set.add([{ id: "1" }]);
      expect(await (await claimed(set)).fail("no address", { final: true })).toBe("parked");
      expect(await recordOf("1")).toMatchObject({ state: "parked", attempts: 1 });
    });

    it.each([
      ["failed", false],
      ["was parked", true],
    ])("that %s begins again when it is requeued, once", async (_, final) => {
      const set = setOf("a", { maxAttempts: 1 });
      await set.add([{ id: "1", payload: 7 }]);
      const first = await claimed(set);
      await first.fail("no", { final });
      expect(await set.requeue("1")).toBe(true);
      expect(await set.requeue("1")).toBe(false);
      const again = await claimed(set);
      expect(again).toMatchObject({ attempt: 1, payload: 7, remark: "" });
      expect(again.fencingToken).toBeGreaterThan(first.fencingToken);
      await again.succeed();
      expect(await set.requeue("1")).toBe(false);
      expect(await set.requeue("2")).toBe(false);
    });
  });

  describe("a task that is added with its own terms", () => {
    it("may have its own number of attempts", async () => {
      const set = setOf("a", { maxAttempts: 5 });
      await set.add([{ id: "once", maxAttempts: 1 }]);
      expect(await (await claimed(set)).fail("no")).toBe("failed");
      expect(await recordOf("once")).toMatchObject({ attempts: 1, maxAttempts: 1 });
      expect(await set.requeue("once")).toBe(true);
      expect((await claimed(set)).maxAttempts).toBe(1);
    });

    it("is not claimed before its delay is over", async () => {
      const set = setOf("a");
      const addedAt = clock.now();
      await set.add([{ id: "later", delayMs: 60_000 }, { id: "now" }]);
      expect((await claimed(set)).id).toBe("now");
      expect(await set.claim()).toBeUndefined();
      expect(await set.get("later")).toMatchObject({ state: "waiting", addedAt, dueAt: addedAt + 60_000 });
      await clock.advance(60_000);
      expect((await claimed(set)).id).toBe("later");
    });

    it("can be claimed at once without a delay, though the clock of the process that added it is ahead", async () => {
      const ahead: Clock = {
        now: () => clock.now() + 1_800_000,
        monotonic: () => clock.monotonic(),
        schedule: (callback, delayMs) => clock.schedule(callback, delayMs),
      };
      await setOf("ahead", {}, { clock: ahead }).add([{ id: "1" }]);
      expect((await claimed(setOf("a"))).id).toBe("1");
    });
  });

  it("gives one task in each of its states, and none that it does not know", async () => {
    const set = setOf("a");
    await set.add([
      { id: "1", payload: { n: 7 } },
      { id: "2", delayMs: 1_000 },
    ]);
    expect(await set.get("1")).toEqual({
      id: "1",
      state: "waiting",
      payload: { n: 7 },
      attempts: 0,
      maxAttempts: 3,
      remark: "",
      addedAt: clock.now(),
      dueAt: clock.now(),
      owner: undefined,
      startedAt: undefined,
      expiresAt: undefined,
      endedAt: undefined,
      serialKey: undefined,
    });
    const task = await claimed(set);
    const running = { state: "running", owner: "a", expiresAt: task.expiresAt, dueAt: undefined };
    expect(await set.get("1")).toMatchObject(running);
    await task.succeed("sent");
    expect(await set.get("1")).toEqual(await recordOf("1"));
    expect(await set.get("1")).toMatchObject({ state: "succeeded", remark: "sent", endedAt: clock.now() });
    expect(await set.get("2")).toMatchObject({ state: "waiting" });
    expect(await set.get("3")).toBeUndefined();
  });

  describe("cancelling a task", () => {
    it("that waits ends it: nobody claims it, and adding it again changes nothing", async () => {
      const set = setOf("a");
      await set.add([{ id: "1", payload: 7 }]);
      expect(await set.cancel("1", "the customer has changed her mind")).toBe(true);
      const cancelled = { state: "cancelled", remark: "the customer has changed her mind", attempts: 0 };
      expect(await set.get("1")).toMatchObject({
        ...cancelled,
        payload: 7,
        maxAttempts: 3,
        endedAt: clock.now(),
      });
      expect(await set.claim()).toBeUndefined();
      expect(await set.add([{ id: "1" }])).toEqual({ added: 0, known: 1 });
      expect(await set.counts()).toMatchObject({ waiting: 0, cancelled: 1 });
      // Once more says the same.
      expect(await set.cancel("1", "another reason")).toBe(true);
      expect(await set.get("1")).toMatchObject(cancelled);
    });

    it("that waits for its next attempt keeps what was last said of it, where nothing else is said", async () => {
      const set = setOf("a");
      await set.add([{ id: "1" }]);
      await (await claimed(set)).fail("no stock", { retryAfterMs: 60_000 });
      expect(await set.cancel("1")).toBe(true);
      expect(await set.get("1")).toMatchObject({ state: "cancelled", remark: "no stock", attempts: 1 });
    });

    it("that is running, has ended or is not known changes nothing", async () => {
      const set = setOf("a");
      await set.add([{ id: "1" }]);
      const task = await claimed(set);
      expect(await set.cancel("1")).toBe(false);
      expect(task.held).toBe(true);
      await task.succeed("sent");
      const before = await set.get("1");
      expect(await set.cancel("1")).toBe(false);
      expect(await set.get("1")).toEqual(before);
      expect(await set.cancel("2")).toBe(false);
      expect(await set.get("2")).toBeUndefined();
    });

    it("can be taken back by a requeue, and its fencing tokens go on", async () => {
      const set = setOf("a");
      await set.add([{ id: "1" }]);
      const first = await claimed(set);
      await first.fail("no", { retryAfterMs: 0 });
      await set.cancel("1");
      expect(await set.requeue("1")).toBe(true);
      const second = await claimed(set);
      expect(second).toMatchObject({ attempt: 1, maxAttempts: 3 });
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      await second.succeed();
    });

    it("by two at once, and while a worker claims it, ends in one of both ways", async () => {
      const set = setOf("a");
      await set.add([{ id: "1" }, { id: "2" }]);
      const [one, other] = await Promise.all([set.cancel("1"), setOf("b").cancel("1")]);
      expect([one, other]).toEqual([true, true]);
      const [isCancelled, task] = await Promise.all([set.cancel("2"), setOf("b").claim()]);
      expect(isCancelled).toBe(task === undefined);
      expect((await set.get("2"))?.state).toBe(isCancelled ? "cancelled" : "running");
    });
  });

  describe("letting many tasks begin again", () => {
    const endAll = async (count: number, state: (index: number) => "failed" | "parked" | "cancelled") => {
      const set = setOf("a", { maxAttempts: 1 });
      await set.add(Array.from({ length: count }, (_, index) => ({ id: `${index}`, payload: index })));
      for (let index = 0; index < count; index += 1)
        if (state(index) === "cancelled") await set.cancel(`${index}`);
      for (let task = await set.claim(); task !== undefined; task = await set.claim()) {
        await task.fail(`no ${task.id}`, { final: state(Number(task.id)) === "parked" });
      }
      return set;
    };
    const states = ["failed", "parked", "cancelled"] as const;

    it("takes those that have failed or were parked, with all their attempts", async () => {
      const set = await endAll(9, (index) => states[index % 3] ?? "failed");
      expect(await set.requeueAll()).toBe(6);
      expect(await set.counts()).toMatchObject({ waiting: 6, failed: 0, parked: 0, cancelled: 3 });
      const task = await claimed(set);
      expect(task).toMatchObject({ attempt: 1, maxAttempts: 1, remark: "" });
      expect(task.payload).toBe(Number(task.id));
      expect(await set.requeueAll()).toBe(0);
    });

    it("takes those of one state, those that a filter picks, and no more than a limit", async () => {
      const set = await endAll(12, (index) => states[index % 3] ?? "failed");
      expect(await set.requeueAll({ state: "cancelled", limit: 3 })).toBe(3);
      expect(await set.requeueAll({ filter: ({ remark }) => remark === "no 4" })).toBe(1);
      expect(await set.counts()).toMatchObject({ waiting: 4, failed: 4, parked: 3, cancelled: 1 });
      expect(await set.requeueAll({ state: "failed", delayMs: 60_000, maxAttempts: 7 })).toBe(4);
      expect(await set.get("0")).toMatchObject({
        state: "waiting",
        dueAt: clock.now() + 60_000,
        maxAttempts: 7,
      });
    });

    it("takes more than fit into one transaction, and by two callers at once each only once", async () => {
      const set = await endAll(70, () => "parked");
      const counts = await Promise.all([set.requeueAll(), setOf("b").requeueAll()]);
      for (const count of counts) expect(count).toBeLessThanOrEqual(70);
      expect(await set.counts()).toMatchObject({ waiting: 70, parked: 0 });
    });
  });

  describe("a worker whose claim has run out", () => {
    let stale: Task;
    beforeEach(async () => {
      await setOf("a").add([{ id: "1" }]);
      stale = await claimed(mortal("stale"));
      await clock.advance(pastLease);
      expect(stale.signal.aborted).toBe(true);
    });

    it("may still end a task that nobody has claimed since", async () => {
      await stale.succeed("late");
      expect(await recordOf("1")).toMatchObject({ state: "succeeded", remark: "late" });
      expect(await setOf("next").claim()).toBeUndefined();
    });

    it.each(["succeed", "fail", "release"] as const)(
      "changes nothing by %s once another has the task",
      async (ending) => {
        const next = await claimed(setOf("next"));
        const before = await recordOf("1");
        expect(await lossOf(stale[ending]("late"))).toBe("taken");
        expect(await recordOf("1")).toEqual(before);
        await next.succeed("in time");
      },
    );

    it.each(["succeed", "fail", "release"] as const)(
      "changes nothing by %s once another has ended the task",
      async (ending) => {
        await (await claimed(setOf("next"))).succeed("in time");
        await lossOf(stale[ending]("late"));
        expect(await recordOf("1")).toMatchObject({ state: "succeeded", remark: "in time", owner: "next" });
        expect(await setOf("third").claim()).toBeUndefined();
      },
    );

    it.each<[string, TaskLostReason, (next: Task) => unknown]>([
      ["has the task", "taken", () => undefined],
      ["has ended it", "ended", (next) => next.succeed("in time")],
      ["has parked it", "ended", (next) => next.fail("no address", { final: true })],
      ["has given it back", "returned", (next) => next.fail("once more")],
    ])("parks nothing once another %s", async (_, reason, end) => {
      await end(await claimed(setOf("next")));
      const before = await recordOf("1");
      expect(await lossOf(stale.fail("late", { final: true }))).toBe(reason);
      expect(await recordOf("1")).toEqual(before);
    });

    it("changes nothing once the task is waiting again", async () => {
      await (await claimed(setOf("next"))).fail("later");
      expect(await lossOf(stale.succeed("late"))).toBe("returned");
      expect(await recordOf("1")).toMatchObject({ state: "waiting", remark: "later" });
    });
  });

  it("a heartbeat keeps a task for its worker, and ends with the task", async () => {
    const set = setOf("a");
    await set.add([{ id: "1" }]);
    const task = await claimed(set);
    const end = clock.now() + 4 * leaseDurationMs;
    while (clock.now() < end) {
      await clock.advance(leaseDurationMs / 6);
    }
    expect(task.held).toBe(true);
    expect(await setOf("b").claim()).toBeUndefined();
    await task.succeed();
    expect(await recordOf("1")).toMatchObject({ state: "succeeded", attempts: 1 });
  });

  it("lists the tasks of one state", async () => {
    const set = setOf("a", { maxAttempts: 1 });
    await set.add(["1", "2", "3", "4"].map((id) => ({ id })));
    const first = await claimed(set);
    await first.succeed();
    const second = await claimed(set);
    await second.fail("broken");
    const third = await claimed(set);
    const idsOf = async (state: TaskRecord["state"]): Promise<string[]> => {
      const ids: string[] = [];
      for await (const task of set.list({ state })) ids.push(task.id);
      return ids;
    };
    expect(await idsOf("succeeded")).toEqual([first.id]);
    expect(await idsOf("failed")).toEqual([second.id]);
    expect(await idsOf("running")).toEqual([third.id]);
    expect(await idsOf("waiting")).toHaveLength(1);
    expect(await idsOf("parked")).toEqual([]);
  });

  it("an operator's break sends a claimed task back to the others, and its worker learns that it is lost", async () => {
    const admin = new LeaseClient({ ...place(clock), clock, clockSkewMs, leaseDurationMs });
    await setOf("a").add([{ id: "1" }]);
    const first = await claimed(mortal("a"));
    const [claim] = await adminOf(admin).inspectAll(name);
    expect(claim).toMatchObject({ owner: "a", fencingToken: first.fencingToken });
    expect(
      await adminOf(admin).forceRelease(name, { token: claim?.token ?? "", sortKey: claim?.sortKey ?? "" }),
    ).toBe(true);
    expect(await lossOf(first.fail("too late"))).toBe("returned");
    const second = await claimed(mortal("b"));
    expect(second.attempt).toBe(2);
    expect(await lossOf(first.succeed())).toBe("taken");
    await second.succeed();
    expect(await recordOf("1")).toMatchObject({ state: "succeeded", attempts: 2 });
  });

  it("an operator's break of the last attempt has the task parked by the next worker, and it can begin again", async () => {
    const admin = new LeaseClient({ ...place(clock), clock, clockSkewMs, leaseDurationMs });
    const set = setOf("a", { maxAttempts: 1, heartbeat: false });
    await set.add([{ id: "1", payload: { rows: 3 } }]);
    const first = await claimed(set);
    const [claim] = await adminOf(admin).inspectAll(name);
    expect(
      await adminOf(admin).forceRelease(name, { token: claim?.token ?? "", sortKey: claim?.sortKey ?? "" }),
    ).toBe(true);
    expect(await mortal("b").claim()).toBeUndefined();
    expect(await recordOf("1")).toMatchObject({
      state: "parked",
      remark: "claim broken",
      payload: { rows: 3 },
      attempts: 1,
      maxAttempts: 1,
      owner: undefined,
      startedAt: undefined,
    });
    expect(await lossOf(first.succeed())).toBe("ended");

    expect(await set.requeue("1")).toBe(true);
    const again = await claimed(set);
    expect(again.fencingToken).toBeGreaterThan(first.fencingToken);
    await again.succeed();
  });
}
