import { LeaseClient } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { type Task, type TaskInput, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { adminOf } from "../support/admin.ts";
import { claimed as claimedOf } from "../support/claimed.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;

/** What holds for tasks with a serial key wherever they are kept; run for memory and for every engine. */
export function serialTasksContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let name: string;

  const clientOf = (owner: string): LeaseClient =>
    new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs });
  const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
    new TaskSet(clientOf(owner), name, { heartbeat: false, backoff: { delayMs: 0 }, ...options });
  const claimed = (owner: string): Promise<Task> => claimedOf(setOf(owner));
  /** Adds tasks of one key, each a little later than the one before. */
  const addInOrder = async (...tasks: readonly TaskInput[]): Promise<void> => {
    for (const task of tasks) {
      await setOf("adder").add([{ serialKey: "customer-42", ...task }]);
      await clock.advance(1);
    }
  };

  beforeEach(async () => {
    clock = new PatientClock(Date.now());
    name = newKey("serial");
  });

  describe("tasks with one serial key", () => {
    it("run one at a time, the oldest first", async () => {
      await addInOrder({ id: "c" }, { id: "a" }, { id: "b" });
      for (const id of ["c", "a", "b"]) {
        const task = await claimed(id);
        expect(task.id).toBe(id);
        expect(await setOf("other").claim()).toBeUndefined();
        await task.succeed();
      }
      expect(await setOf("other").counts()).toMatchObject({ waiting: 0, succeeded: 3 });
    });

    it("run beside tasks with another one, and beside tasks without one", async () => {
      await addInOrder({ id: "1" }, { id: "2" });
      await setOf("adder").add([{ id: "3", serialKey: "customer-43" }, { id: "4" }]);
      const tasks = [await claimed("a"), await claimed("b"), await claimed("c")];
      expect(tasks.map(({ id }) => id).sort()).toEqual(["1", "3", "4"]);
      expect(await setOf("d").claim()).toBeUndefined();
    });

    it("run beside tasks of another set", async () => {
      await addInOrder({ id: "1" }, { id: "2" });
      await claimed("a");
      name = newKey("serial");
      await addInOrder({ id: "1" });
      expect((await claimed("a")).id).toBe("1");
    });

    it("go to one of many workers that claim at once", async () => {
      await addInOrder(...Array.from({ length: 6 }, (_, index) => ({ id: `${index}` })));
      const claims = Array.from({ length: 6 }, (_, index) => setOf(`worker ${index}`).claim());
      const tasks = (await Promise.allSettled(claims)).flatMap((claim) =>
        claim.status === "fulfilled" && claim.value !== undefined ? [claim.value] : [],
      );
      expect(tasks.length).toBeLessThanOrEqual(1);
      expect((await setOf("reader").counts()).running).toBe(tasks.length);
    });

    it("show it, and what a claim has read", async () => {
      await addInOrder({ id: "1", payload: { rows: 3 } });
      const task = await claimed("a");
      expect(task).toMatchObject({ id: "1", payload: { rows: 3 }, attempt: 1, held: true });
      const kept = { serialKey: "customer-42", attempts: 1, owner: "a" };
      const { expiresAt } = task;
      expect(await setOf("b").get("1")).toMatchObject({ ...kept, state: "running", expiresAt });
      await task.renew();
      await task.succeed();
      expect(await setOf("b").get("1")).toMatchObject({ ...kept, state: "succeeded" });
    });

    it("can be added in the user's own transaction", async () => {
      const entries = setOf("a").addEntries([{ id: "1", serialKey: "customer-42" }]);
      expect(JSON.stringify(entries)).toContain("customer-42");
    });
  });

  describe("the next task with a serial key can be claimed when the one before", () => {
    it.each<[string, (task: Task) => Promise<unknown>]>([
      ["has succeeded", (task) => task.succeed()],
      ["was parked", (task) => task.fail("no address", { final: true })],
      ["waits for its next attempt", (task) => task.fail("later", { retryAfterMs: 60_000 })],
    ])("%s", async (_, end) => {
      await addInOrder({ id: "1" }, { id: "2" });
      await end(await claimed("a"));
      expect((await claimed("b")).id).toBe("2");
      expect(await setOf("c").claim()).toBeUndefined();
    });

    it("was released, and that task is first again", async () => {
      await addInOrder({ id: "1" }, { id: "2" });
      await (await claimed("a")).release();
      expect((await claimed("b")).id).toBe("1");
      expect(await setOf("c").claim()).toBeUndefined();
    });

    it("has ended, after its worker was lost: until then no other has a turn", async () => {
      await addInOrder({ id: "1" }, { id: "2" });
      const lost = await claimed("lost");
      await clock.advance(pastLease);
      const again = await claimed("next");
      expect(again).toMatchObject({ id: "1", attempt: 2 });
      expect(again.fencingToken).toBeGreaterThan(lost.fencingToken);
      expect(await setOf("other").get("1")).toMatchObject({ owner: "next", attempts: 2 });
      expect(await setOf("other").claim()).toBeUndefined();
      await again.succeed();
      expect((await claimed("other")).id).toBe("2");
    });

    it("was parked, because the worker of its last attempt was lost", async () => {
      await addInOrder({ id: "1", maxAttempts: 1 }, { id: "2" });
      await claimed("lost");
      await clock.advance(pastLease);
      expect((await claimed("next")).id).toBe("2");
      expect((await setOf("reader").get("1"))?.state).toBe("parked");
    });

    it("had its claim broken, and was cancelled", async () => {
      await addInOrder({ id: "1" }, { id: "2" });
      await claimed("a");
      const operator = clientOf("operator");
      const [claim] = await adminOf(operator).inspectAll(name);
      const which = { token: claim?.token ?? "", sortKey: claim?.sortKey ?? "" };
      expect(await adminOf(operator).forceRelease(name, which)).toBe(true);
      expect(await setOf("b").cancel("1")).toBe(true);
      expect((await claimed("c")).id).toBe("2");
    });
  });

  it("the fencing tokens of a key grow from claim to claim, whichever task is claimed", async () => {
    await addInOrder({ id: "1" }, { id: "2" });
    const tokens: number[] = [];
    const claim = async (id: string): Promise<Task> => {
      const task = await claimed("a");
      expect(task.id).toBe(id);
      tokens.push(task.fencingToken);
      return task;
    };
    await (await claim("1")).fail("later", { retryAfterMs: 60_000 });
    await (await claim("2")).fail("later", { retryAfterMs: 120_000 });
    await clock.advance(60_000);
    const again = await claim("1");
    await again.renew();
    await again.succeed();
    await clock.advance(60_000);
    await (await claim("2")).succeed();
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
    expect(tokens).toHaveLength(4);
  });

  it("a requeued task has its serial key still", async () => {
    await addInOrder({ id: "1" });
    await (await claimed("a")).fail("no address", { final: true });
    await addInOrder({ id: "2" });
    expect(await setOf("a").requeue("1")).toBe(true);
    expect((await setOf("a").get("1"))?.serialKey).toBe("customer-42");
    expect((await claimed("b")).id).toBe("2");
    expect(await setOf("c").claim()).toBeUndefined();
  });

  it("a worker of the next task is not disturbed by late ends of the one before", async () => {
    await addInOrder({ id: "1", maxAttempts: 2 }, { id: "2" });
    const stale = await claimed("stale");
    await clock.advance(pastLease);
    await (await claimed("next")).succeed();
    const second = await claimed("other");
    await expect(stale.succeed("late")).rejects.toMatchObject({ code: "LEASE_TASK_LOST" });
    await second.renew();
    expect(await setOf("third").claim()).toBeUndefined();
    await second.succeed();
  });

  it("a process does many tasks of few keys, never two of one key at once", async () => {
    const keys = ["a", "b", "c"];
    const inputs = Array.from({ length: 24 }, (_, index) => ({
      id: `${index}`,
      serialKey: keys[index % 3] ?? "",
    }));
    await setOf("adder").add(inputs);
    const running = new Set<string>();
    const work = async ({ id }: Task): Promise<void> => {
      const key = keys[Number(id) % 3] ?? "";
      expect(running).not.toContain(key);
      running.add(key);
      await new Promise((resolve) => setImmediate(resolve));
      running.delete(key);
    };
    const begun = clock.monotonic();
    const summary = await setOf("worker", { heartbeat: true }).process(work, {
      concurrency: 4,
      until: "drained",
    });
    expect(summary).toMatchObject({ succeeded: 24, lost: 0 });
    // No poll was waited for: each end frees the key for the next.
    expect(clock.monotonic()).toBe(begun);
  });
}
