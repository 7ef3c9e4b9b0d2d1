import { beforeEach, describe, expect, test } from "vitest";
import {
  type TaskRate,
  TaskSet,
  type TaskSetOptions,
  type WorkOptions,
} from "../../packages/jobs/src/index.ts";
import { add, beginAnew, clientOf, clock, store } from "./tasks.ts";

const rate: TaskRate = { claims: 3, perMs: 10_000 };
let claims: number[];

const setOf = (owner = "a", options: TaskSetOptions = { rate }): TaskSet => {
  // Then a look starts at the first task.
  const randomness = { token: () => crypto.randomUUID(), fraction: () => 0 };
  return new TaskSet(clientOf(owner, { randomness }), "set", options);
};
const countIn = (from: number, to: number): number => claims.filter((at) => at >= from && at < to).length;
/** Does the tasks of the set, and notes when each was claimed, in milliseconds since the first period began. */
const working = (owner: string, begunAt: number, options: WorkOptions = {}): Promise<unknown> =>
  setOf(owner).process(() => void claims.push(clock.now() - begunAt), { concurrency: 4, ...options });

beginAnew();
beforeEach(async () => {
  // The first period of 10 s that begins after the clock's start.
  await clock.advance(10_000 - (clock.now() % 10_000));
  claims = [];
});

describe("a set with a rate", () => {
  test("has that many claims in each period, of all workers together, and no task waits longer than needed", async () => {
    await add(14);
    const begunAt = clock.now();
    const all = Promise.all([working("a", begunAt), working("b", begunAt), working("c", begunAt)]);
    for (let step = 0; step < 120; step += 1) await clock.advance(500);
    await all;
    expect(claims).toHaveLength(14);
    const periods = [0, 1, 2, 3, 4].map((period) => countIn(period * 10_000, (period + 1) * 10_000));
    expect(periods).toEqual([3, 3, 3, 3, 2]);
  });

  test("gives claim() no task when the period is used up, for one request, and none until its end", async () => {
    await add(5);
    const set = setOf();
    for (let count = 0; count < 3; count += 1) expect(await set.claim()).toBeDefined();
    store.calls.length = 0;
    expect(await set.claim()).toBeUndefined();
    expect(await set.claim()).toBeUndefined();
    expect(store.count("update")).toBe(1);
    await clock.advance(10_000);
    expect(await set.claim()).toBeDefined();
    // What the first look has found is still there.
    expect(store.count("query")).toBe(0);
  });

  test("keeps a worker until idle, which ends when it finds no task", async () => {
    await add(5);
    const begunAt = clock.now();
    const all = working("a", begunAt, { until: "idle" });
    await clock.advance(9_000);
    expect(claims).toHaveLength(3);
    await clock.advance(2_000);
    await all;
    expect(claims).toHaveLength(5);
  });

  test("counts a claim whose count had a lost answer twice at most, and never allows one too many", async () => {
    await add(5);
    const set = setOf();
    store.next("answer lost");
    const first = set.claim();
    await clock.advance(1_000);
    expect(await first).toBeDefined();
    expect(await set.claim()).toBeDefined();
    expect(await set.claim()).toBeUndefined();
  });

  test("counts a claim that was over before its answer came, beside the next one", async () => {
    await add(2);
    const update = store.update.bind(store);
    store.update = async (request, call) => {
      const result = await update(request, call);
      if (!request.key.sk.startsWith("task#")) return result;
      store.update = update;
      await clock.advance(40_000);
      // Without a rate, and so without a count: takes over the same task, and leaves the other one.
      const other = setOf("other", {});
      const taken = [await other.claim(), await other.claim()];
      await taken.find((task) => task?.id !== request.key.sk.split("#").at(-1))?.release();
      return result;
    };
    store.calls.length = 0;
    expect(await setOf("me", { rate, leaseDurationMs: 30_000 }).claim()).toBeDefined();
    const counts = store.calls
      .flatMap(({ requests }) => requests)
      .filter(({ key }) => key.sk.startsWith("rate#"));
    expect(counts).toHaveLength(2);
  });
});
