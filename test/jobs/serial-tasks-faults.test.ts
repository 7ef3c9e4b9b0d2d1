import { type Item, LeaseClient } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/internal";
import { beforeEach, describe, expect, test } from "vitest";
import { type TaskInput, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { openTaskKey, serialKeyItemKey, taskAttributeNames } from "../../packages/jobs/src/tasks/schema.ts";
import { Task } from "../../packages/jobs/src/tasks/task.ts";
import {
  setOf as anySetOf,
  attempt,
  beginAnew,
  clock,
  open,
  pastLeaseMs,
  requestsOf,
  store,
} from "./tasks.ts";

beginAnew();
const serialKey = "customer-42";
const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
  anySetOf(owner, { heartbeat: false, ...options });
const stored = (id: string): Item => open(id) ?? {};
const last = (): unknown =>
  store.table.peek(serialKeyItemKey("set", serialKey))?.[taskAttributeNames.lastTask];
const addInOrder = async (...tasks: readonly TaskInput[]): Promise<void> => {
  for (const task of tasks) {
    await setOf("adder").add([{ serialKey, ...task }]);
    await clock.advance(1);
  }
};

beforeEach(async () => {
  await clock.advance(5_000);
  await addInOrder({ id: "1", maxAttempts: 2 }, { id: "2" });
});

describe("a claim of a task with a serial key", () => {
  test("is one read and one transaction, and knows what the table has", async () => {
    const { outcome, calls } = await attempt(stored("1"));
    expect(calls).toEqual(["get", "transact"]);
    const { token, fence, version, expiresAt, acquiredAt } = attributeNames;
    const task = outcome as Task;
    expect(stored("1")).toMatchObject({
      [fence]: task.fencingToken,
      [expiresAt]: task.expiresAt,
      [acquiredAt]: clock.now(),
      [version]: 1,
      attempts: task.attempt,
      serialKey,
    });
    expect(stored("1")[token]).toBeDefined();
    expect(last()).toBe("1");
  });

  test("is refused while a worker has another task of its key, whatever was read of that", async () => {
    await setOf("other").claim();
    const { outcome, calls } = await attempt(stored("2"));
    expect(outcome).toMatchObject({ isParked: false, isKeyBusy: true });
    expect(calls).toEqual(["get", "transact"]);
    expect(stored("2")[attributeNames.token]).toBeUndefined();
    expect(last()).toBe("1");
  });

  test("that no answer ever confirms is taken back, and frees its key", async () => {
    store.next("answer lost", "answer lost", "answer lost");
    const trying = attempt(stored("1")).catch((error: unknown) => error);
    await clock.advance(20_000);
    expect(await trying).toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(stored("1")).toMatchObject({ attempts: 0 });
    expect(stored("1")[attributeNames.token]).toBeUndefined();
    expect(stored("1")[attributeNames.lastEnd]).toMatch(/^released \d/);
    await setOf("operator").cancel("1");
    expect((await setOf("next").claim())?.id).toBe("2");
  });

  test("is refused when another task of its key was claimed while it was on its way", async () => {
    await (await setOf("other").claim())?.release();
    const transact = store.transact.bind(store);
    store.transact = async (...call) => {
      store.transact = transact;
      expect((await attempt(stored("2"))).outcome).toBeInstanceOf(Task);
      return await transact(...call);
    };
    expect((await attempt(stored("1"))).outcome).toMatchObject({ isKeyBusy: true });
    expect(stored("1")[attributeNames.token]).toBeUndefined();
    expect(last()).toBe("2");
  });

  test.each([
    ["waited", ["get", "transact"]],
    ["ran", ["get"]],
  ])(
    "of a task that %s when it was seen, and has ended, is refused: its key is free",
    async (then, calls) => {
      const waiting = stored("1");
      const other = await setOf("other").claim();
      const seen = then === "ran" ? stored("1") : waiting;
      await other?.succeed();
      const outcome = { isParked: false, isKeyBusy: false, claimableInMs: Number.POSITIVE_INFINITY };
      expect(await attempt(seen)).toEqual({ outcome, calls });
      await clock.advance(0);
      // There is nothing to take back.
      expect(store.count("update")).toBe(0);
    },
  );

  test("of a task that failed since it was seen has its remark", async () => {
    const other = await setOf("other").claim();
    const seen = stored("1");
    await other?.fail("no stock", { retryAfterMs: 0 });
    const { outcome, calls } = await attempt(seen);
    expect(outcome).toMatchObject({ id: "1", attempt: 2, remark: "no stock" });
    expect(calls).toEqual(["get", "get", "transact"]);
    // A read that lags shows the attempts of before.
    expect(store.calls.every(({ consistent = true }) => consistent)).toBe(true);
  });

  test("of a task whose worker was lost since it was seen counts on from that worker's attempt", async () => {
    const seen = stored("1");
    const lost = await setOf("lost").claim();
    await clock.advance(pastLeaseMs);
    const { outcome, calls } = await attempt(seen);
    expect(calls).toEqual(["get", "transact", "get", "transact"]);
    const { attempt: count, fencingToken } = outcome as Task;
    expect(count).toBe(2);
    expect(fencingToken).toBeGreaterThan(lost?.fencingToken ?? 0);
  });

  test("of a lost worker's task takes it over for three requests, with what the first has shown", async () => {
    await setOf("lost").claim();
    await clock.advance(pastLeaseMs);
    const { outcome, calls } = await attempt({ ...stored("1"), attempts: 0 });
    expect(outcome).toMatchObject({ id: "1", attempt: 2 });
    expect(calls).toEqual(["get", "get", "transact"]);
    expect(stored("1")).toMatchObject({ attempts: 2, fence: (outcome as Task).fencingToken });
    await (outcome as Task).renew();
  });
});

describe("a worker", () => {
  test("tries a key once in each look, where it does not see who has it", async () => {
    await addInOrder(...Array.from({ length: 20 }, (_, index) => ({ id: `more ${index}` })));
    await setOf("other").claim();
    const query = store.query.bind(store);
    store.query = async (...call) => {
      const { items, next } = await query(...call);
      return { items: items.filter((item) => item[attributeNames.token] === undefined), next };
    };
    const calls = await requestsOf(() => setOf("me").claim());
    expect(calls.filter((method) => method === "transact")).toHaveLength(1);
  });

  test("looks for no other task of a key that it has found busy", async () => {
    const sortKeyOf = (id: string): string => openTaskKey("set", id).sk;
    // A look at what is due begins there, and shows neither the task that runs nor the one that waits for it.
    const isLast = (id: string): boolean => ["1", "2"].every((other) => sortKeyOf(id) > sortKeyOf(other));
    await setOf("other").claim();
    await addInOrder({ id: [..."3456789abcdef"].find(isLast) ?? "", delayMs: 1_000 });
    const stop = new AbortController();
    const worker = setOf("me").work({ until: "never", pollMs: 60_000, signal: stop.signal });
    const none = worker.next();
    await clock.advance(500);
    expect(await requestsOf(() => clock.advance(1_000))).toEqual(["query", "get", "transact"]);
    stop.abort();
    expect((await none).value).toBeUndefined();
  });

  test("claims the next task of a key when it has ended the one before, for one small look", async () => {
    const stop = new AbortController();
    const worker = setOf("me").work({ concurrency: 2, until: "never", signal: stop.signal });
    const first = (await worker.next()).value as Task;
    const ids: string[] = [first.id];
    const second = worker.next().then(({ value }) => value && ids.push(value.id));
    await clock.advance(10);
    const calls = await requestsOf(async () => {
      await first.succeed();
      await clock.advance(0);
    });
    expect(ids).toEqual(["1", "2"]);
    expect(calls).toEqual(["transact", "query", "get", "transact"]);
    stop.abort();
    await second;
  });

  test("parks a task whose worker was lost for good, and claims the next task of its key at once", async () => {
    await (await setOf("other").claim())?.fail("no stock");
    await setOf("lost").claim();
    const stop = new AbortController();
    const worker = setOf("me").work({ until: "never", pollMs: 3_600_000, signal: stop.signal });
    const next = worker.next();
    await clock.advance(pastLeaseMs + 100);
    stop.abort();
    expect((await next).value?.id).toBe("2");
    expect(await setOf("reader").get("1")).toMatchObject({ state: "parked" });
  });

  test("claims a task that came due beside one of its key as soon as it has ended that one", async () => {
    await setOf("operator").cancel("2");
    const sortKeyOf = (id: string): string => openTaskKey("set", id).sk;
    // A look at what is due begins there, and does not show the first task.
    const id = [..."3456789"].find((later) => sortKeyOf(later) > sortKeyOf("1")) ?? "";
    await addInOrder(
      { id, delayMs: 1_000 },
      { id: "of another key", serialKey: "another", delayMs: 3_600_000 },
    );
    const stop = new AbortController();
    const worker = setOf("me").work({ concurrency: 2, until: "never", pollMs: 60_000, signal: stop.signal });
    const first = (await worker.next()).value as Task;
    const second = worker.next();
    await clock.advance(2_000);
    await first.succeed();
    await clock.advance(0);
    stop.abort();
    expect((await second).value).toMatchObject({ id });
  });
});

test("a worker that frees a key claims the next task of it at once, also beside many that are due later", async () => {
  const many = "many";
  const set = (owner: string, fraction = () => 0) => {
    const randomness = { token: () => crypto.randomUUID(), fraction };
    return new TaskSet(new LeaseClient({ store, clock, owner, randomness }), many);
  };
  /** Where a task is among all, from 0 to 1: by its hash. */
  const placeOf = (id: string): number =>
    Number.parseInt(openTaskKey(many, id).sk.slice(5, 13), 16) / 2 ** 32;
  const [first = "", ...others] = Array.from({ length: 200 }, (_, index) => `${index}`).sort(
    (one, other) => placeOf(one) - placeOf(other),
  );
  const [second = ""] = others.splice(99, 1);
  await set("adder").add([{ id: first, serialKey: "k" }]);
  await clock.advance(1);
  await set("adder").add([{ id: second, serialKey: "k" }]);
  await set("adder").add(others.map((id) => ({ id, delayMs: 3_600_000 })));

  const stop = new AbortController();
  const claims: { readonly id: string; readonly at: number }[] = [];
  // Its first look begins at the first task, and each later one at the second.
  const places = [0];
  const run = set("worker", () => places.pop() ?? placeOf(second) - 1e-6).process(
    async ({ id }) => {
      claims.push({ id, at: clock.monotonic() });
      await new Promise<void>((resolve) => void clock.schedule(resolve, 100));
    },
    { signal: stop.signal, until: "never", concurrency: 2 },
  );
  await clock.advance(60_000);
  stop.abort();
  await run;
  expect(claims.map(({ id }) => id)).toEqual([first, second]);
  expect((claims[1]?.at ?? 0) - (claims[0]?.at ?? 0)).toBeLessThan(300);
});
