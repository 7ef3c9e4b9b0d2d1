import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { Random } from "../worlds/random.ts";

let clock: ManualClock;
let store: ScriptedStore;

const setOf = (owner: string, options: TaskSetOptions = {}, fraction?: () => number): TaskSet => {
  const random = new Random(owner.charCodeAt(0));
  let tokens = 0;
  const randomness = {
    token: () => `${owner} ${++tokens}`,
    fraction: fraction ?? (() => random.fraction()),
  };
  return new TaskSet(new LeaseClient({ store, clock, owner, randomness }), "set", options);
};
const add = (count: number) =>
  setOf("adder").add(Array.from({ length: count }, (_, index) => ({ id: `${index}` })));

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("an outage of what the work needs", () => {
  test("ends within the shortest wait, whatever chance says, and the tasks do not come back together", async () => {
    await add(50);
    const again: number[] = [];
    const run = setOf("a").process(({ attempt }) => {
      if (attempt === 1) throw new Error("ECONNREFUSED");
      again.push(clock.monotonic());
    });
    await clock.advance(60_000);
    expect(await run).toMatchObject({ succeeded: 50, returned: 50 });
    expect(Math.min(...again)).toBeGreaterThanOrEqual(5_000);
    expect(Math.max(...again)).toBeLessThanOrEqual(10_500);
    // Spread over the five seconds: no second has half of them.
    const inSecond = (second: number): number =>
      again.filter((at) => at >= second * 1_000 && at < (second + 1) * 1_000).length;
    expect(Math.max(...[5, 6, 7, 8, 9, 10].map(inSecond))).toBeLessThan(25);
  });
});

describe("the wait for the next attempt", () => {
  test.each([
    [0, [5_000, 10_000, 20_000]],
    [0.5, [7_500, 15_000, 30_000]],
    [0.999999, [10_000, 20_000, 40_000]],
  ])("doubles with each attempt, at chance %d", async (fraction, waits) => {
    const set = setOf("a", { maxAttempts: 4 }, () => fraction);
    await set.add([{ id: "1" }]);
    for (const waitMs of waits) {
      const task = await set.claim();
      const failedAt = clock.now();
      expect(await task?.fail("no")).toBe("waiting");
      expect(await set.get("1")).toMatchObject({ dueAt: failedAt + waitMs });
      await clock.advance(waitMs);
    }
    expect(await (await set.claim())?.fail("no")).toBe("failed");
  });

  test("keeps the item alive as long as it lasts, and the set's keepForMs behind it", async () => {
    const keepForMs = 3_600_000;
    const set = setOf("a", { keepForMs });
    await set.add([{ id: "1", delayMs: 5 * keepForMs }]);
    await clock.advance(5 * keepForMs);
    expect(store.table.collectGarbage(clock.now())).toBe(0);
    await (await set.claim())?.fail("no", { retryAfterMs: 3 * keepForMs });
    await clock.advance(4 * keepForMs - 1_000);
    expect(store.table.collectGarbage(clock.now())).toBe(0);
    expect((await set.claim())?.attempt).toBe(2);
  });
});
