import { LeaseServiceError } from "@leasehold/client";
import { beforeEach, describe, expect, test } from "vitest";
import { renew } from "../../packages/client/src/statements/lock.ts";
import { type Task, TaskLostError } from "../../packages/jobs/src/index.ts";
import { openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { claimed as claimedOf } from "../support/claimed.ts";
import type { Call, Fate } from "../support/scripted-store.ts";
import {
  beginAnew,
  breakClaim,
  claimed,
  clock,
  ended,
  ids,
  inTime,
  leaseDurationMs,
  open,
  pastLeaseMs,
  requestsOf,
  setOf,
  store,
} from "./tasks.ts";

beginAnew();
const writesSince = (calls: number): Call[] =>
  store.calls.slice(calls).filter(({ method }) => method === "update" || method === "transact");

beforeEach(async () => {
  await setOf("adder").add([{ id: "1", payload: "p" }]);
});

test("fifty tasks are added by one request, and the new ones among known ones by one more", async () => {
  const tasks = ids(50).map((id) => ({ id: `new ${id}` }));
  expect(await requestsOf(() => setOf("a").add(tasks))).toHaveLength(1);
  const others = [...tasks.slice(1), { id: "newer" }];
  expect(await requestsOf(() => setOf("a").add(others))).toHaveLength(2);
  expect(await requestsOf(() => setOf("a").add(tasks))).toHaveLength(1);
});

test.each<[string, Fate[], laterMs: number, ids: string[], added: number]>([
  ["what it has added, where an answer was lost", ["answer lost", "throttled"], 1, ["2", "3"], 2],
  ["what it has added, where a request was lost", ["request lost", "throttled"], 1, ["2", "3"], 2],
  ["as known what another has added before", ["request lost", "throttled"], 1, ["1", "2"], 1],
  ["as known what another has added at the same time, beside a new one", ["request lost"], 0, ["1", "2"], 1],
  [
    "as known what another has added at the same time, where its own request was refused",
    ["throttled"],
    0,
    ["1"],
    0,
  ],
])("an addition counts %s", async (_, fates, laterMs, ids, added) => {
  await clock.advance(laterMs);
  store.next(...fates);
  const adding = setOf("a").add(ids.map((id) => ({ id })));
  expect(await inTime(adding)).toEqual({ added, known: ids.length - added });
});

describe("a claim whose answer is lost", () => {
  test("and that lands after it was taken back is refused", async () => {
    store.next("request lost", "request lost", "request lost");
    const before = store.calls.length;
    await expect(inTime(claimed("a"))).rejects.toBeInstanceOf(LeaseServiceError);
    await clock.advance(1);
    const [late] = writesSince(before);
    for (const request of late?.requests ?? []) expect(store.table.updateNow(request).applied).toBe(false);
    expect(late?.requests).toHaveLength(1);
  });
});

describe("an ending whose answer is lost", () => {
  test("again and again leaves the task with its worker, which renews it and may try once more", async () => {
    const task = await claimed("a");
    store.next("request lost", "request lost", "request lost");
    await expect(inTime(task.succeed())).rejects.toBeInstanceOf(LeaseServiceError);
    await clock.advance(3 * leaseDurationMs);
    expect(task.held).toBe(true);
    await task.succeed("at last");
    expect(ended()).toMatchObject({ remark: "at last", attempts: 1 });
  });

  test("leaves the task unprotected from the moment it is sent", async () => {
    const task = await claimed("a");
    store.next("hangs");
    const ending = task.fail("no");
    await clock.advance(0);
    expect(task.held).toBe(false);
    expect(await inTime(setOf("b").claim())).toBeDefined();
    ending.catch(() => undefined);
  });
});

describe("what arrives late", () => {
  test("a copy of a requeue changes nothing once the task has ended again", async () => {
    const set = setOf("a", { maxAttempts: 1 });
    await (await claimedOf(set)).fail("no", { final: true });
    expect(await set.requeue("1")).toBe(true);
    const copy = store.calls.at(-1)?.entries ?? [];
    await (await claimedOf(set)).fail("no again", { final: true });
    const after = ended();
    expect(store.table.transactNow(copy).applied).toBe(false);
    expect([open(), ended()]).toEqual([undefined, after]);
  });

  test("no write of a worker of the first round changes a task that was requeued", async () => {
    const set = setOf("a");
    await (await claimedOf(set)).fail("once more");
    await (await claimedOf(set)).release();
    await (await claimedOf(set)).fail("and again");
    await (await claimedOf(set)).fail("no");
    expect(ended()).toMatchObject({ state: "failed", attempts: 3 });
    const firstRound = store.calls.filter(({ method }) => method === "update");
    const endings = store.calls.filter(({ entries }) => entries?.[0]?.action === "delete");
    expect(await set.requeue("1")).toBe(true);
    const second = await claimedOf(set);
    const running = open();
    for (const { requests } of firstRound) {
      for (const request of requests) expect(store.table.updateNow(request).applied).toBe(false);
    }
    for (const { entries = [] } of endings) expect(store.table.transactNow(entries).applied).toBe(false);
    expect([firstRound.length, endings.length]).toEqual([7, 1]);
    expect(open()).toEqual(running);
    await second.succeed();
  });
});

describe("ending", () => {
  test("as final costs one request, and is no other ending than the same once more", async () => {
    const task = await claimed("a");
    const before = store.calls.length;
    const park = () => task.fail("no address", { final: true });
    expect(await Promise.all([park(), park()])).toEqual(["parked", "parked"]);
    expect(await park()).toBe("parked");
    for (const other of [() => task.fail("once more"), () => task.succeed(), () => task.release()]) {
      await expect(other()).rejects.toMatchObject({
        ...{ name: "TaskLostError", code: "LEASE_TASK_LOST", set: "set", taskId: "1", reason: "ended" },
        message: expect.stringMatching(/ended already by this worker's earlier call; nothing was changed$/),
      });
    }
    expect(store.calls.length - before).toBe(1);
    expect(ended()).toMatchObject({ state: "parked", remark: "no address" });
  });
});

test("a renewal in the moment in which an ending is called is refused, and sends nothing", async () => {
  const task = await claimed("a");
  const before = store.calls.length;
  const ending = task.succeed();
  await expect(task.renew()).rejects.toMatchObject({ code: "LEASE_CONFLICT" });
  await ending;
  expect(writesSince(before).map(({ method }) => method)).toEqual(["transact"]);
});

test("a worker that is thought dead, and renews before its task is parked, keeps it", async () => {
  await (await claimed("a")).fail("once");
  await (await claimed("a")).fail("twice");
  const task = await claimed("slow", { heartbeat: false });
  await clock.advance(pastLeaseMs);
  const transact = store.transact.bind(store);
  store.transact = async (...call) => {
    store.transact = transact;
    const { token, fence } = open() ?? {};
    const shown = { token: String(token), fencingToken: Number(fence) };
    const renewal = {
      shown,
      version: 9,
      expiresAt: clock.now() + leaseDurationMs,
      leaseDurationMs,
      retentionMs: 0,
    };
    const { sk: sortKey } = openTaskKey("set", task.id);
    expect(store.table.updateNow(renew({ key: "set", sortKey }, renewal).request()).applied).toBe(true);
    return await transact(...call);
  };
  expect(await setOf("next").claim()).toBeUndefined();
  expect(ended()).toBeUndefined();
  await task.succeed();
  expect(ended()).toMatchObject({ state: "succeeded", attempts: 3 });
});

describe("a task whose last attempt was broken", () => {
  const breakLastAttempt = async (): Promise<Task> => {
    await (await claimed("a")).fail("once");
    await (await claimed("a")).fail("twice");
    const task = await claimed("slow", { heartbeat: false });
    expect(await breakClaim()).toBe(true);
    return task;
  };

  test("and that begins again while it is being parked is left alone", async () => {
    await breakLastAttempt();
    const transact = store.transact.bind(store);
    store.transact = async (...call) => {
      store.transact = transact;
      expect(await setOf("b").claim()).toBeUndefined();
      expect(await setOf("b").requeue("1")).toBe(true);
      return await transact(...call);
    };
    expect(await setOf("late").claim()).toBeUndefined();
    expect(ended()).toBeUndefined();
    expect(open()).toMatchObject({ attempts: 0 });
    expect((await claimed("next")).attempt).toBe(1);
  });
});

test("a task that runs for longer than maxRunMs is not renewed any more, and returns", async () => {
  const task = await claimed("a", { maxRunMs: 2 * leaseDurationMs });
  await clock.advance(2 * leaseDurationMs - 1);
  expect(task.held).toBe(true);
  await clock.advance(1);
  expect(task.signal.reason).toMatchObject({ reason: "expired" });
  await clock.advance(pastLeaseMs);
  const next = await claimed("b");
  expect(next.attempt).toBe(2);
  await expect(task.succeed()).rejects.toBeInstanceOf(TaskLostError);
});

test("ttl keeps every item as long as the set says, and what it has dropped may be added again", async () => {
  const keepForMs = 3_600_000;
  const set = setOf("a", { keepForMs });
  await set.add([{ id: "2" }]);
  const drop = (): number => store.table.collectGarbage(clock.now());
  await clock.advance(keepForMs / 2);
  const mine = [await claimedOf(set), await claimedOf(set)].find(({ id }) => id === "2");
  await clock.advance(keepForMs - 1_000);
  drop();
  expect(open("2")).toBeDefined();
  await mine?.succeed();
  await clock.advance(keepForMs - 1_000);
  drop();
  expect(ended("2")).toBeDefined();
  await clock.advance(3_000);
  drop();
  expect(ended("2")).toBeUndefined();
  expect(await set.add([{ id: "2" }])).toEqual({ added: 1, known: 0 });
});

test("ttl does not remove what a process adds by its first request, although its clock is slow", async () => {
  store.isLocal = false;
  const now = clock.now() + 12 * 3_600_000;
  store.time = () => ({ earliest: now, latest: now + 1_000 });
  await setOf("slow", { keepForMs: 3_600_000 }).add([{ id: "2" }]);
  const [added] = setOf("slow", { keepForMs: 3_600_000 }).addEntries([{ id: "3" }]);
  expect(added).toMatchObject({
    Update: { ExpressionAttributeValues: { ":ttl": { N: String(open("2")?.ttl) } } },
  });
  store.table.collectGarbage(now);
  expect(open("2")).toBeDefined();
});

test("a task that ttl has removed while a worker had it is not made again by the worker's ending", async () => {
  const task = await claimed("a", { heartbeat: false });
  store.table.collectGarbage(Number.POSITIVE_INFINITY);
  await expect(task.succeed()).rejects.toMatchObject({ name: "TaskLostError", reason: "gone" });
  expect([open(), ended()]).toEqual([undefined, undefined]);
});
