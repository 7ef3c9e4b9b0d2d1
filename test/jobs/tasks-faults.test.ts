import { LeaseClient, type LeaseEvent, LeaseServiceError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { renew } from "../../packages/client/src/statements/lock.ts";
import { type Task, TaskLostError, TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { claimTask } from "../../packages/jobs/src/tasks/expressions.ts";
import {
  endedTaskKey,
  endedTaskPrefix,
  openTaskKey,
  taskIdOf,
} from "../../packages/jobs/src/tasks/schema.ts";
import { adminOf } from "../support/admin.ts";
import { claimed } from "../support/claimed.ts";
import { type Call, ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];

/** A set whose attempts follow each other at once. */
const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet => {
  const onEvent = (event: LeaseEvent): void => {
    events.push(event);
  };
  const client = new LeaseClient({ store, clock, owner, leaseDurationMs, onEvent });
  return new TaskSet(client, "set", { backoff: { delayMs: 0 }, ...options });
};
const open = (id = "1") => store.table.peek(openTaskKey("set", id));
const ended = (id = "1") => store.table.peek(endedTaskKey("set", id));
const isClaimOf =
  (owner: string) =>
  ({ requests }: Call): boolean =>
    requests[0]?.values[":owner"] === owner;
/** Lets repetitions come due. */
const afterWaiting = async <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => undefined);
  await clock.advance(6_000);
  return await promise;
};
const writesSince = (calls: number): Call[] =>
  store.calls.slice(calls).filter(({ method }) => method === "update" || method === "transact");

beforeEach(async () => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  await setOf("adder").add([{ id: "1", payload: "p" }]);
});

describe("requests", () => {
  test("a task costs one to claim and one to end, and a look", async () => {
    const before = store.calls.length;
    await (await claimed(setOf("a"))).succeed();
    expect(writesSince(before)).toHaveLength(2);
    expect(store.count("query")).toBeLessThanOrEqual(2);
  });

  test("fifty tasks are added by one, and the new ones among known ones by one more", async () => {
    const tasks = Array.from({ length: 50 }, (_, index) => ({ id: `${index + 2}` }));
    const before = store.calls.length;
    await setOf("a").add(tasks);
    expect(store.calls.length - before).toBe(1);
    await setOf("a").add([...tasks.slice(1), { id: "new" }]);
    expect(store.calls.length - before).toBe(3);
    await setOf("a").add(tasks);
    expect(store.calls.length - before).toBe(4);
  });

  test("a dead worker's task costs two to claim", async () => {
    await claimed(setOf("dead", { heartbeat: false }));
    await clock.advance(leaseDurationMs + 1_001);
    const before = store.calls.length;
    await claimed(setOf("next"));
    expect(writesSince(before)).toHaveLength(2);
  });

  test("looking for work reads no task that has ended", async () => {
    const set = setOf("a");
    for (let id = 2; id <= 200; id += 1) await set.add([{ id: `${id}` }]);
    await set.process(() => undefined);
    const before = store.calls.length;
    expect(await set.claim()).toBeUndefined();
    expect(store.calls.length - before).toBeLessThanOrEqual(2);
  });
});

describe("an addition whose answer is lost", () => {
  test.each(["answer lost", "request lost"] as const)("counts what it has added: %s", async (fate) => {
    store.next(fate);
    const adding = setOf("a").add([{ id: "2" }, { id: "3" }]);
    expect(await afterWaiting(adding)).toEqual({ added: 2, known: 0 });
  });

  test("counts what it has added, where a worker has ended it meanwhile", async () => {
    store.next("answer lost");
    const adding = setOf("a").add([{ id: "2" }]);
    await setOf("b").process(() => undefined);
    expect(ended("2")).toBeDefined();
    expect(await afterWaiting(adding)).toEqual({ added: 1, known: 0 });
  });

  test("counts as known what another caller has added before", async () => {
    await clock.advance(1);
    store.next("request lost", "throttled");
    const adding = setOf("a").add([{ id: "1" }, { id: "2" }]);
    expect(await afterWaiting(adding)).toEqual({ added: 1, known: 1 });
  });
});

describe("a claim whose answer is lost", () => {
  test.each(["answer lost", "request lost"] as const)(
    "(%s) is repeated, and counts one attempt",
    async (fate) => {
      store.next(fate);
      const task = await afterWaiting(claimed(setOf("a")));
      expect(task.attempt).toBe(1);
      expect(open()).toMatchObject({ attempts: 1, owner: "a" });
      await task.succeed();
      expect(ended()).toMatchObject({ state: "succeeded", attempts: 1 });
    },
  );

  test.each(["answer lost", "request lost"] as const)(
    "(%s) again and again is taken back, and the task waits with its attempts",
    async (fate) => {
      store.next(fate, fate, fate);
      await expect(afterWaiting(claimed(setOf("a")))).rejects.toBeInstanceOf(LeaseServiceError);
      await clock.advance(1);
      expect(open()).toMatchObject({ attempts: 0 });
      expect(open()?.token).toBeUndefined();
      expect((await claimed(setOf("b"))).attempt).toBe(1);
    },
  );

  test("and that lands after it was taken back is refused", async () => {
    store.next("request lost", "request lost", "request lost");
    const before = store.calls.length;
    await expect(afterWaiting(claimed(setOf("a")))).rejects.toBeInstanceOf(LeaseServiceError);
    await clock.advance(1);
    const [late] = writesSince(before);
    for (const request of late?.requests ?? []) expect(store.table.updateNow(request).applied).toBe(false);
    expect(late?.requests).toHaveLength(1);
  });

  test("and that comes after the claim would have run out is not used", async () => {
    store.next("hangs", "hangs", "hangs");
    const claim = setOf("a", { leaseDurationMs: 5_000 }).claim();
    claim.catch(() => undefined);
    await clock.advance(40_000);
    await expect(claim).rejects.toBeInstanceOf(LeaseServiceError);
    expect(open()).toMatchObject({ attempts: 0 });
  });
});

describe("an ending whose answer is lost", () => {
  describe.each<[string, (task: Task) => Promise<unknown>, open: object | undefined, ended?: object]>([
    [
      "succeed",
      (task) => task.succeed("a remark"),
      undefined,
      { state: "succeeded", remark: "a remark", attempts: 1 },
    ],
    ["fail", (task) => task.fail("a remark"), { attempts: 1, remark: "a remark" }],
    ["release", (task) => task.release(), { attempts: 0 }],
    [
      "final",
      (task) => task.fail("no address", { final: true }),
      undefined,
      { state: "parked", remark: "no address", attempts: 1 },
    ],
  ])("(%s)", (_, end, stillOpen, hasEnded) => {
    test.each(["answer lost", "request lost"] as const)("is repeated, and recognised: %s", async (fate) => {
      const task = await claimed(setOf("a"));
      const before = store.calls.length;
      store.next(fate);
      await afterWaiting(end(task));
      expect(writesSince(before)).toHaveLength(2);
      expect([open(), ended()]).toMatchObject([stillOpen, hasEnded]);
      expect(events.at(-1)).toMatchObject({ type: "released", confirmed: true });
      expect(events.some(({ type }) => type === "lost")).toBe(false);
    });
  });

  test("leaves the task unprotected from the moment it is sent", async () => {
    const task = await claimed(setOf("a"));
    store.next("hangs");
    const ending = task.fail("no");
    await clock.advance(0);
    expect(task.held).toBe(false);
    expect(await afterWaiting(setOf("b").claim())).toBeDefined();
    ending.catch(() => undefined);
  });

  test("again and again leaves the task with its worker, which renews it and may try once more", async () => {
    const task = await claimed(setOf("a"));
    store.next("request lost", "request lost", "request lost");
    await expect(afterWaiting(task.succeed())).rejects.toBeInstanceOf(LeaseServiceError);
    await clock.advance(3 * leaseDurationMs);
    expect(task.held).toBe(true);
    expect(await setOf("b").claim()).toBeUndefined();
    await task.succeed("at last");
    expect(ended()).toMatchObject({ remark: "at last", attempts: 1 });
  });

  test("cannot be changed into another ending", async () => {
    const task = await claimed(setOf("a"));
    store.next("answer lost", "answer lost", "answer lost");
    // It lands at the first time; the repetitions are not answered either.
    await expect(afterWaiting(task.succeed())).rejects.toBeInstanceOf(LeaseServiceError);
    await expect(task.fail("changed my mind")).rejects.toMatchObject({ name: "TaskLostError" });
    expect(ended()).toMatchObject({ state: "succeeded" });
  });
});

describe("what arrives late", () => {
  test.each(["succeed", "fail", "release"] as const)(
    "a copy of a claim does not land once another has had the task, and does not let its worker end it: %s",
    async (ending) => {
      const stale = await claimed(setOf("stale", { heartbeat: false }));
      const [copy] = store.calls.filter(isClaimOf("stale")).flatMap(({ requests }) => requests);
      if (copy === undefined) throw new Error("there is no claim");
      await clock.advance(leaseDurationMs + 1_001);
      await (await claimed(setOf("next"))).release();
      const before = [open(), ended()];
      expect(store.table.updateNow(copy).applied).toBe(false);
      await expect(stale[ending]("late")).rejects.toMatchObject({
        name: "TaskLostError",
        reason: "returned",
      });
      expect([open(), ended()]).toEqual(before);
    },
  );

  test.each(["succeed", "fail", "release"] as const)(
    "a claim with a worker's token and a later fencing token is not that worker's to end: %s",
    async (ending) => {
      const stale = await claimed(setOf("stale", { heartbeat: false }));
      const token = String(open()?.token);
      await clock.advance(leaseDurationMs + 1_001);
      await (await claimed(setOf("next"))).release();
      const acquiredAt = clock.now();
      const times = { acquiredAt, expiresAt: acquiredAt + leaseDurationMs, leaseDurationMs };
      const wishes = { retentionMs: 0, reentrant: false, data: undefined, slot: undefined };
      const grant = { token, version: 1, owner: "ghost", ...times, ...wishes };
      const claim = claimTask({ set: "set", id: "1" }, grant, Number(open()?.fence));
      expect(store.table.updateNow(claim.request()).applied).toBe(true);
      const before = [open(), ended()];
      await expect(stale[ending]("late")).rejects.toMatchObject({ name: "TaskLostError", reason: "taken" });
      expect([open(), ended()]).toEqual(before);
      await clock.advance(leaseDurationMs + 1_001);
      await (await claimed(setOf("third"))).succeed();
    },
  );

  test("a copy of a requeue changes nothing once the task has ended again", async () => {
    const set = setOf("a", { maxAttempts: 1 });
    await (await claimed(set)).fail("no", { final: true });
    expect(await set.requeue("1")).toBe(true);
    const copy = store.calls.at(-1)?.entries ?? [];
    await (await claimed(set)).fail("no again", { final: true });
    const after = ended();
    expect(store.table.transactNow(copy).applied).toBe(false);
    expect([open(), ended()]).toEqual([undefined, after]);
  });

  test("no write of a task's life changes anything after its end", async () => {
    const a = setOf("a");
    await (await claimed(a)).fail("once more");
    const second = await claimed(a);
    await second.renew();
    await second.release();
    await (await claimed(a)).succeed("done");
    const after = [open(), ended()];
    for (const { requests, entries } of store.calls) {
      for (const request of requests) expect(store.table.updateNow(request).applied).toBe(false);
      if (entries !== undefined) expect(store.table.transactNow(entries).applied).toBe(false);
    }
    expect([open(), ended()]).toEqual(after);
    expect(after[0]).toBeUndefined();
  });

  test("no write of a worker of the first round changes a task that was requeued", async () => {
    const set = setOf("a");
    await (await claimed(set)).fail("once more");
    await (await claimed(set)).release();
    await (await claimed(set)).fail("and again");
    await (await claimed(set)).fail("no");
    expect(ended()).toMatchObject({ state: "failed", attempts: 3 });
    const firstRound = store.calls.filter(({ method }) => method === "update");
    const endings = store.calls.filter(({ entries }) => entries?.[0]?.action === "delete");
    expect(await set.requeue("1")).toBe(true);
    const second = await claimed(set);
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

test("a request to stop reaches the claim that it was made to, and no later one", async () => {
  const first = await claimed(setOf("a", { heartbeat: false }));
  const { sk: sortKey } = openTaskKey("set", "1");
  const operator = new LeaseClient({ store, clock, owner: "operator" });
  expect(await adminOf(operator).requestRevocation("set", { sortKey, token: String(open()?.token) })).toBe(
    true,
  );
  await first.release();
  const second = await claimed(setOf("b", { heartbeat: false }));
  await second.renew();
  expect(second.held).toBe(true);
});

describe("ending", () => {
  test("twice in the same way sends once", async () => {
    const task = await claimed(setOf("a"));
    const before = store.calls.length;
    await Promise.all([task.succeed(), task.succeed()]);
    await task.succeed();
    expect(store.calls.length - before).toBe(1);
  });

  test("as final costs one request, and is no other ending than the same once more", async () => {
    const task = await claimed(setOf("a"));
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

  test("waits for a renewal that is under way, and none begins beside it", async () => {
    const task = await claimed(setOf("a"));
    store.next("hangs");
    await clock.advance(leaseDurationMs / 3);
    const before = store.calls.length;
    const ending = task.succeed();
    await clock.advance(0);
    expect(store.calls.length).toBe(before);
    await clock.advance(1_000);
    await ending;
    expect(ended()).toMatchObject({ state: "succeeded" });
    await clock.advance(3 * leaseDurationMs);
    expect(store.calls.length).toBe(before + 1);
    expect(clock.pending).toBe(0);
  });
});

test("a renewal in the moment in which an ending is called is refused, and sends nothing", async () => {
  const task = await claimed(setOf("a"));
  const before = store.calls.length;
  const ending = task.succeed();
  await expect(task.renew()).rejects.toMatchObject({ code: "LEASE_CONFLICT" });
  await ending;
  expect(writesSince(before).map(({ method }) => method)).toEqual(["transact"]);
});

test("no renewal begins while an ending waits for its answer", async () => {
  const task = await claimed(setOf("a"));
  await clock.advance(8_000);
  const renewals = store.count("update");
  store.next("hangs");
  const ending = task.succeed();
  await clock.advance(9_000);
  expect(store.count("transact")).toBe(2);
  expect(store.count("update")).toBe(renewals);
  await clock.advance(3_000);
  await ending;
  expect(ended()).toMatchObject({ state: "succeeded" });
  expect(task.signal.reason).toMatchObject({ reason: "released" });
});

describe("a worker that is thought dead and renews at the last moment", () => {
  /** Its renewal arrives just before the next write of this kind. */
  const renewsBefore = (method: "update" | "transact", task: Task): void => {
    const proceed = store[method].bind(store) as (...call: unknown[]) => Promise<never>;
    let writes = method === "update" ? 2 : 1;
    store[method] = (...call: unknown[]) => {
      writes -= 1;
      if (writes === 0) {
        const { token, fence } = open() ?? {};
        const expiresAt = clock.now() + leaseDurationMs;
        const sortKey = openTaskKey("set", task.id).sk;
        const shown = { token: String(token), fencingToken: Number(fence) };
        const renewal = { shown, version: 9, expiresAt, leaseDurationMs, retentionMs: 0 };
        expect(store.table.updateNow(renew({ key: "set", sortKey }, renewal).request()).applied).toBe(true);
      }
      return proceed(...call);
    };
  };

  test("keeps its task", async () => {
    const task = await claimed(setOf("slow", { heartbeat: false }));
    await clock.advance(leaseDurationMs + 1_001);
    renewsBefore("update", task);
    expect(await setOf("next").claim()).toBeUndefined();
    expect(open()).toMatchObject({ owner: "slow", attempts: 1 });
    await task.succeed();
  });

  test("has its last attempt not parked", async () => {
    await (await claimed(setOf("a"))).fail("once");
    await (await claimed(setOf("a"))).fail("twice");
    const task = await claimed(setOf("slow", { heartbeat: false }));
    await clock.advance(leaseDurationMs + 1_001);
    renewsBefore("transact", task);
    expect(await setOf("next").claim()).toBeUndefined();
    expect(ended()).toBeUndefined();
    await task.succeed();
    expect(ended()).toMatchObject({ state: "succeeded", attempts: 3 });
  });
});

describe("a task whose last attempt was broken", () => {
  const breakLastAttempt = async (): Promise<Task> => {
    await (await claimed(setOf("a"))).fail("once");
    await (await claimed(setOf("a"))).fail("twice");
    const task = await claimed(setOf("slow", { heartbeat: false }));
    const { sk: sortKey } = openTaskKey("set", task.id);
    const token = String(open()?.token);
    const operator = new LeaseClient({ store, clock, owner: "operator", leaseDurationMs });
    expect(await adminOf(operator).forceRelease("set", { sortKey, token })).toBe(true);
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
    expect((await claimed(setOf("next"))).attempt).toBe(1);
  });

  test("and that another has on its last attempt again, while it is being parked, stays the other's", async () => {
    await breakLastAttempt();
    const transact = store.transact.bind(store);
    let task: Task | undefined;
    store.transact = async (...call) => {
      store.transact = transact;
      const other = setOf("b", { maxAttempts: 1 });
      expect(await other.claim()).toBeUndefined();
      expect(await other.requeue("1", { maxAttempts: 1 })).toBe(true);
      task = await claimed(other);
      return await transact(...call);
    };
    expect(await setOf("late").claim()).toBeUndefined();
    expect(open()).toMatchObject({ owner: "b", attempts: 1, maxAttempts: 1 });
    await task?.succeed();
    expect(ended()).toMatchObject({ state: "succeeded", owner: "b" });
  });

  test("is not claimed again by a late copy of the broken claim, and its worker's ending changes nothing", async () => {
    const task = await breakLastAttempt();
    const [claim] = store.calls.filter(isClaimOf("slow")).flatMap(({ requests }) => requests);
    if (claim === undefined) throw new Error("there is no claim");
    expect(store.table.updateNow(claim).applied).toBe(false);
    await expect(task.succeed()).rejects.toMatchObject({ reason: "returned" });
    expect(await setOf("next").claim()).toBeUndefined();
    expect(store.table.updateNow(claim).applied).toBe(false);
    expect(ended()).toMatchObject({ state: "parked" });
    expect(open()).toBeUndefined();
  });
});

test("a task that runs for longer than maxRunMs is not renewed any more, and returns", async () => {
  const task = await claimed(setOf("a", { maxRunMs: 2 * leaseDurationMs }));
  await clock.advance(2 * leaseDurationMs - 1);
  expect(task.held).toBe(true);
  await clock.advance(1);
  expect(task.signal.reason).toMatchObject({ reason: "expired" });
  await clock.advance(leaseDurationMs + 1_001);
  const next = await claimed(setOf("b"));
  expect(next.attempt).toBe(2);
  await expect(task.succeed()).rejects.toBeInstanceOf(TaskLostError);
});

test("ttl keeps every item as long as the set says, and what it has dropped may be added again", async () => {
  const keepForMs = 3_600_000;
  const set = setOf("a", { keepForMs });
  await set.add([{ id: "2" }]);
  const drop = (): number => store.table.collectGarbage(clock.now());
  await clock.advance(keepForMs / 2);
  const mine = [await claimed(set), await claimed(set)].find(({ id }) => id === "2");
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
  const task = await claimed(setOf("a", { heartbeat: false }));
  store.table.collectGarbage(Number.POSITIVE_INFINITY);
  await expect(task.succeed()).rejects.toMatchObject({ name: "TaskLostError", reason: "gone" });
  expect([open(), ended()]).toEqual([undefined, undefined]);
});

test("ids are kept as they are written", async () => {
  const ids = ["", "#", "task#1", "done#1", "käse/🧀", "a b"].slice(1);
  for (const id of ids) {
    expect(taskIdOf(openTaskKey("set", id).sk)).toBe(id);
    expect(taskIdOf(endedTaskPrefix + id)).toBe(id);
  }
  const set = setOf("a");
  await set.add(ids.map((id) => ({ id })));
  const done: string[] = [];
  await set.process((task) => void done.push(task.id));
  expect(done.sort()).toEqual(["1", ...ids].sort());
});
