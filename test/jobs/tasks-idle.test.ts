import { LeaseClient, type QueryRequest } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { type Task, TaskSet, type TaskSetOptions, type WorkOptions } from "../../packages/jobs/src/index.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { Random } from "../worlds/random.ts";

const hourMs = 3_600_000;
let clock: ManualClock;
let store: CountingStore;
let stop: AbortController;

/** Counts what looks have read. */
class CountingStore extends ScriptedStore {
  readonly looks: { readonly at: number; readonly items: number; readonly consistent: boolean }[] = [];

  override async query(...[request, options]: Parameters<ScriptedStore["query"]>) {
    const page = await super.query(request, options);
    this.looks.push({ at: clock.monotonic(), items: page.items.length, consistent: isConsistent(request) });
    return page;
  }
}

function isConsistent({ consistent }: QueryRequest): boolean {
  return consistent;
}

const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet => {
  const random = new Random(owner.length);
  let tokens = 0;
  const randomness = { token: () => `${owner} ${++tokens}`, fraction: () => random.fraction() };
  return new TaskSet(new LeaseClient({ store, clock, owner, randomness }), "set", options);
};
const add = (count: number, delayMs: (index: number) => number, prefix = "") =>
  setOf("adder").add(
    Array.from({ length: count }, (_, index) => ({ id: `${prefix}${index}`, delayMs: delayMs(index) })),
  );
const start = (owner: string, options: WorkOptions = {}, work: (task: Task) => unknown = () => undefined) =>
  setOf(owner).process(work, { signal: stop.signal, until: "never", ...options });
/** From now on. */
const countLooks = (): (() => typeof store.looks) => {
  const before = store.looks.length;
  return () => store.looks.slice(before);
};
const readIn = (looks: typeof store.looks): number => looks.reduce((sum, { items }) => sum + items, 0);

beforeEach(() => {
  clock = new ManualClock();
  store = new CountingStore();
  stop = new AbortController();
});

describe("a worker beside 1,000 delayed tasks", () => {
  test("sees all of them with 4 requests, and then looks a few times in a minute, not 35 times in a second", async () => {
    await add(1_000, () => hourMs);
    const run = start("idle");
    await clock.advance(500);
    expect(store.looks.length).toBeLessThanOrEqual(4);
    const looks = countLooks();
    await clock.advance(10 * 60_000);
    stop.abort();
    await run;
    // Every 32 s, with jitter; before, this were 21,000 consistent requests for 600,000 items.
    expect(looks().length).toBeLessThanOrEqual(4 * 26);
    expect(looks().length).toBeGreaterThan(4 * 10);
    expect(readIn(looks()) / (10 * 60)).toBeLessThan(50);
    expect(looks().some(({ consistent }) => consistent)).toBe(false);
  });
});

test("a task that became due in an outage is claimed soon after it, without a survey", async () => {
  await add(40, (index) => (index === 0 ? hourMs + 4_000 : 2 * hourMs));
  let begunAt = Number.POSITIVE_INFINITY;
  const run = start("a", {}, () => {
    begunAt = clock.monotonic();
  });
  await clock.advance(hourMs + 3_000);
  const looks = countLooks();
  store.next("throttled", "throttled", "throttled");
  await clock.advance(6_000);
  expect(begunAt).toBeLessThanOrEqual(hourMs + 9_000);
  expect(looks().length).toBeLessThanOrEqual(3);
  stop.abort();
  await run;
});

test("a worker's own task that waits for its next attempt is claimed when it is due, without a survey", async () => {
  await add(200, () => hourMs);
  await add(1, () => 0, "mine");
  const at: number[] = [];
  const run = setOf("idle").process(
    () => {
      at.push(clock.monotonic());
      throw new Error("no");
    },
    { retryAfterMs: 1_500, signal: stop.signal, until: "never" },
  );
  await clock.advance(100);
  const looks = countLooks();
  await clock.advance(3_200);
  stop.abort();
  await run;
  expect(at).toHaveLength(3);
  for (const [index, time] of at.entries()) expect(time - 1_500 * index).toBeLessThanOrEqual(105);
  expect(looks().length).toBeLessThanOrEqual(8);
});

describe("a worker that waits for tasks", () => {
  const client = () => new LeaseClient({ store, clock, owner: "one process" });
  const claims: { readonly id: string; readonly at: number }[] = [];
  const work = ({ id }: Task): void => void claims.push({ id, at: clock.monotonic() });

  beforeEach(() => {
    claims.length = 0;
  });

  test("looks at once for what its own client adds or requeues, with one look more, and not for what is due later", async () => {
    const own = client();
    const run = new TaskSet(own, "set").process(work, { signal: stop.signal, until: "never" });
    // The end of another worker changes nothing for this one.
    await new TaskSet(own, "set").process(work, { until: "idle" });
    await clock.advance(10 * 60_000);
    const looks = countLooks();
    const adding = new TaskSet(own, "set");
    await adding.add([{ id: "later", delayMs: hourMs }]);
    await new TaskSet(own, "another").add([{ id: "other" }]);
    await clock.advance(0);
    expect(looks()).toEqual([]);
    await adding.add([{ id: "now" }, { id: "much later", delayMs: hourMs }]);
    await clock.advance(0);
    expect(claims.map(({ id }) => id)).toEqual(["now"]);
    expect(looks().map(({ consistent }) => consistent)).toEqual([true, true]);
    await adding.cancel("later");
    await adding.requeue("later");
    await clock.advance(0);
    expect(claims.map(({ id }) => id)).toEqual(["now", "later"]);
    await adding.cancel("much later");
    await adding.requeueAll({ state: "cancelled" });
    await clock.advance(0);
    expect(claims.map(({ id }) => id)).toEqual(["now", "later", "much later"]);
    stop.abort();
    await run;
  });

  test("does not look for what opens no task, or one that is due later", async () => {
    const own = client();
    const other = new TaskSet(own, "set");
    await other.add([{ id: "known", delayMs: hourMs }]);
    const run = new TaskSet(own, "set").process(work, { signal: stop.signal, until: "never" });
    await clock.advance(10);
    const looks = countLooks();
    await other.add([{ id: "known" }]);
    await other.requeue("known");
    // Reads the ended tasks itself.
    expect(await other.requeueAll()).toBe(0);
    await clock.advance(0);
    expect(looks()).toHaveLength(1);
    await other.cancel("known");
    expect(await other.requeue("known", { delayMs: hourMs })).toBe(true);
    await clock.advance(0);
    expect(looks()).toHaveLength(1);
    await other.cancel("known");
    expect(await other.requeueAll({ state: "cancelled", delayMs: hourMs })).toBe(1);
    await clock.advance(0);
    expect(looks()).toHaveLength(2);
    stop.abort();
    await run;
  });

  test.each([1, 2])("misses no addition that comes during request %i of its look", async (during) => {
    const own = client();
    const adding = new TaskSet(own, "set");
    const query = store.query.bind(store);
    store.query = async (...asked) => {
      const page = await query(...asked);
      if (store.looks.length === during) await adding.add([{ id: "during" }]);
      return page;
    };
    const run = new TaskSet(own, "set").process(work, { signal: stop.signal, until: "never" });
    await clock.advance(0);
    expect(claims.map(({ id, at }) => [id, at])).toEqual([["during", 0]]);
    stop.abort();
    await run;
  });
});
