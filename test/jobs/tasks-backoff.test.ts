import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { backoffMs } from "../../packages/client/src/base/retry.ts";
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
  test.each([1, 3, 10, 15])(
    "of %d s fails and parks none of 50 tasks, with 3 attempts each",
    async (seconds) => {
      await add(50);
      const runs = Promise.all(
        ["a", "b", "c", "d"].map((owner) =>
          setOf(owner).process(async () => {
            await new Promise<void>((resolve) => clock.schedule(resolve, 5));
            if (clock.monotonic() < seconds * 1_000) throw new Error("ECONNREFUSED");
          }),
        ),
      );
      await clock.advance(2 * 60_000);
      const summaries = await runs;
      expect(summaries.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(50);
      expect(summaries.map(({ failed, parked, lost }) => failed + parked + lost)).toEqual([0, 0, 0, 0]);
    },
  );

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

  test("is bounded, however many attempts there were", () => {
    const fraction = { token: () => "", fraction: () => 1 };
    const usual = { delayMs: 10_000, maxDelayMs: 900_000 };
    expect([7, 8, 20, 1_000].map((attempt) => backoffMs(usual, attempt, fraction))).toEqual([
      640_000, 900_000, 900_000, 900_000,
    ]);
  });

  test("is what the set says", async () => {
    const set = setOf("a", { backoff: { delayMs: 100, maxDelayMs: 150 } }, () => 0.5);
    await set.add([{ id: "1" }]);
    await (await set.claim())?.fail("no");
    expect(await set.get("1")).toMatchObject({ dueAt: clock.now() + 75 });
    await clock.advance(75);
    await (await set.claim())?.fail("no");
    expect(await set.get("1")).toMatchObject({ dueAt: clock.now() + 113 });
  });

  test.each([
    ["the worker says", { retryAfterMs: 0 }],
    ["the worker says", { retryAfterMs: 77 }],
  ])("is what %s, where it says so: %o", async (_, options) => {
    const set = setOf("a");
    await set.add([{ id: "1" }]);
    await (await set.claim())?.fail("no", options);
    expect(await set.get("1")).toMatchObject({ dueAt: clock.now() + options.retryAfterMs });
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

test.each([
  ["backoff", { backoff: 5 }],
  ["backoff.delay", { backoff: { delay: 5 } }],
  ["backoff.delayMs", { backoff: { delayMs: -1 } }],
  ["backoff.maxDelayMs", { backoff: { delayMs: 10, maxDelayMs: 9 } }],
])("%s is refused by name: %o", (option, options) => {
  expect(() => setOf("a", options as never)).toThrow(expect.objectContaining({ option }));
});
