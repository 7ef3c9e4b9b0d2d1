import { type CallOptions, LeaseClient, LeaseServiceError, type TransactionEntry } from "@leasehold/client";
import { type AuditEntry, LeaseOperator } from "@leasehold/client/admin";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { TaskSet, type TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { endedTaskKey, openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { claimed } from "../support/claimed.ts";
import { type Call, ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;

const setOf = (owner: string, options: TaskSetOptions = {}): TaskSet =>
  new TaskSet(new LeaseClient({ store, clock, owner }), "set", { backoff: { delayMs: 0 }, ...options });
const open = (id = "1") => store.table.peek(openTaskKey("set", id));
const ended = (id = "1") => store.table.peek(endedTaskKey("set", id));
const add = (count: number) =>
  setOf("adder").add(Array.from({ length: count }, (_, index) => ({ id: `${index + 1}` })));
const parkAll = async (count: number): Promise<void> => {
  await add(count);
  const set = setOf("parker");
  for (let task = await set.claim(); task !== undefined; task = await set.claim()) {
    await task.fail("no address", { final: true });
  }
};
/** Lets repetitions come due. */
const afterWaiting = async <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => undefined);
  await clock.advance(6_000);
  return await promise;
};
const requestsOf = async (work: () => Promise<unknown>): Promise<Call["method"][]> => {
  const before = store.calls.length;
  await work();
  return store.calls.slice(before).map(({ method }) => method);
};
const lastTransaction = (): readonly TransactionEntry[] =>
  store.calls.findLast(({ method }) => method === "transact")?.entries ?? [];
/** Each happens while one of the next transactions is on its way; their own requests are not among these. */
const meanwhile = (...happenings: (() => Promise<unknown>)[]): void => {
  const transact = store.transact.bind(store);
  let isHappening = false;
  let sent = 0;
  store.transact = async (entries, call: CallOptions) => {
    sent += 1;
    if (sent > 20) throw new Error("it goes on for ever");
    if (!isHappening) {
      isHappening = true;
      await happenings.shift()?.();
      isHappening = false;
    }
    return await transact(entries, call);
  };
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("what people's calls cost", () => {
  test("get: 1 request for an open task, 2 for an ended one, 3 for none, all of them consistent", async () => {
    await add(1);
    const set = setOf("a");
    expect(await requestsOf(() => set.get("1"))).toEqual(["get"]);
    await set.cancel("1");
    expect(await requestsOf(() => set.get("1"))).toEqual(["get", "get"]);
    expect(await requestsOf(() => set.get("2"))).toEqual(["get", "get", "transact"]);
    const reads = store.calls.filter(({ method }) => method === "get");
    expect(reads.every(({ consistent }) => consistent)).toBe(true);
  });

  test("cancel: 2 requests; of a running task 1", async () => {
    await add(1);
    const set = setOf("a");
    const task = await claimed(set);
    expect(await requestsOf(() => set.cancel("1"))).toEqual(["get"]);
    await task.release();
    expect(await requestsOf(() => set.cancel("1"))).toEqual(["get", "transact"]);
  });

  test("requeueAll: 1 for a page, and 1 for every 50 tasks that begin again", async () => {
    await parkAll(120);
    expect(await requestsOf(() => setOf("a").requeueAll())).toEqual(["query", ...Array(3).fill("transact")]);
    expect(store.calls.findLast(({ method }) => method === "query")).toMatchObject({ consistent: true });
  });
});

test.each([
  ["begins again", "waiting"],
  ["begins again and ends once more", "cancelled"],
])("get finds a task that %s while it looks in both places", async (_, state) => {
  await parkAll(1);
  const get = store.get.bind(store);
  const other = setOf("b");
  let reads = 0;
  store.get = async (...call) => {
    reads += 1;
    const isSecond = reads === 2;
    if (isSecond) await other.requeue("1");
    const item = await get(...call);
    if (isSecond && state === "cancelled") await other.cancel("1");
    return item;
  };
  expect(await setOf("a").get("1")).toMatchObject({ state });
});

test.each(["answer lost", "request lost"] as const)(
  "a cancel and a requeue whose %s are repeated, and recognised",
  async (fate) => {
    await add(1);
    const set = setOf("a");
    store.next(fate);
    const requests = await requestsOf(async () =>
      expect(await afterWaiting(set.cancel("1", "no more"))).toBe(true),
    );
    expect(requests).toEqual(["get", "transact", "transact"]);
    expect([open(), ended()]).toMatchObject([undefined, { state: "cancelled", remark: "no more" }]);
    store.next(fate);
    expect(await afterWaiting(set.requeue("1"))).toBe(true);
    expect([open(), ended()]).toMatchObject([{ attempts: 0 }, undefined]);
  },
);

describe("a cancel", () => {
  beforeEach(() => add(1));

  test.each([
    ["answer lost", "cancelled"],
    ["request lost", "waiting"],
  ] as const)("whose %s again and again rejects, and may be called again", async (fate, state) => {
    store.next(fate, fate, fate);
    const set = setOf("a");
    await expect(afterWaiting(set.cancel("1"))).rejects.toBeInstanceOf(LeaseServiceError);
    expect(await set.get("1")).toMatchObject({ state });
    expect(await set.cancel("1")).toBe(true);
    expect(await set.get("1")).toMatchObject({ state: "cancelled" });
  });

  test("of which a copy arrives after the task was requeued changes nothing", async () => {
    const set = setOf("a");
    await set.cancel("1");
    const copy = lastTransaction();
    await set.requeue("1");
    const requeued = open();
    expect(store.table.transactNow(copy).applied).toBe(false);
    expect([open(), ended()]).toEqual([requeued, undefined]);
    // Not after a second cancel and a second requeue either.
    await set.cancel("1");
    await set.requeue("1");
    const again = open();
    expect(store.table.transactNow(copy).applied).toBe(false);
    expect([open(), ended()]).toEqual([again, undefined]);
  });

  test("of which a copy arrives after a worker has had the task changes nothing", async () => {
    store.next("request lost", "request lost", "request lost");
    await expect(afterWaiting(setOf("a").cancel("1"))).rejects.toBeInstanceOf(LeaseServiceError);
    const copy = lastTransaction();
    await (await claimed(setOf("b"))).release();
    const waiting = open();
    expect(store.table.transactNow(copy).applied).toBe(false);
    expect([open(), ended()]).toEqual([waiting, undefined]);
  });

  test("finds the task claimed since its read, and leaves it alone", async () => {
    meanwhile(async () => void (await claimed(setOf("b"))));
    expect(await setOf("a").cancel("1")).toBe(false);
    expect(open()).toMatchObject({ owner: "b" });
  });

  test("finds the task claimed and returned since its read, and begins anew", async () => {
    meanwhile(async () => await (await claimed(setOf("b"))).fail("no"));
    expect(await setOf("a").cancel("1")).toBe(true);
    expect(ended()).toMatchObject({ state: "cancelled", attempts: 1, remark: "no" });
  });

  test("that finds it so again and again rejects by name", async () => {
    const visit = async () => await (await claimed(setOf("b"))).release();
    meanwhile(visit, visit, visit);
    await expect(setOf("a").cancel("1")).rejects.toMatchObject({ code: "LEASE_CONFLICT", retryable: true });
    expect(open()).toMatchObject({ attempts: 0 });
  });

  test("makes nothing of a task that ttl removes under it", async () => {
    meanwhile(async () => store.table.collectGarbage(Number.POSITIVE_INFINITY));
    expect(await setOf("a").cancel("1")).toBe(false);
    expect([open(), ended()]).toEqual([undefined, undefined]);
  });

  test("of a task that was never claimed has fencing tokens go on from the time, as a claim does", async () => {
    const set = setOf("a");
    await set.cancel("1");
    await set.requeue("1");
    expect((await claimed(set)).fencingToken).toBeGreaterThan(clock.now());
  });

  test("refuses a copy of what added the task", async () => {
    const [copy] = store.calls.flatMap(({ entries }) => (entries === undefined ? [] : [entries]));
    await setOf("a").cancel("1");
    expect(store.table.transactNow(copy ?? []).applied).toBe(false);
    expect(open()).toBeUndefined();
  });
});

describe("a requeue", () => {
  beforeEach(() => parkAll(1));

  test("whose answer is lost, and whose task ends again before it is repeated, does not begin a third round", async () => {
    store.next("answer lost");
    const call = setOf("a").requeue("1", { maxAttempts: 9 });
    await clock.advance(0);
    await (await claimed(setOf("b"))).fail("no", { final: true });
    const after = ended();
    expect(await afterWaiting(call)).toBe(true);
    expect([open(), ended()]).toEqual([undefined, after]);
  });

  test("makes nothing of a task that ttl removes under it", async () => {
    meanwhile(async () => store.table.collectGarbage(Number.POSITIVE_INFINITY));
    expect(await setOf("a").requeue("1")).toBe(false);
    expect([open(), ended()]).toEqual([undefined, undefined]);
  });

  test("by two at once lets it begin once", async () => {
    expect(await Promise.all([setOf("a").requeue("1"), setOf("b").requeue("1")])).toEqual([true, true]);
    expect((await claimed(setOf("c"))).attempt).toBe(1);
    expect(await setOf("c").claim()).toBeUndefined();
  });
});

describe("letting many tasks begin again", () => {
  test.each(["answer lost", "request lost"] as const)("counts each once: %s", async (fate) => {
    await parkAll(70);
    store.next(fate, undefined, fate);
    expect(await afterWaiting(setOf("a").requeueAll())).toBe(70);
    expect(await setOf("a").counts()).toMatchObject({ waiting: 70, parked: 0 });
  });

  test.each([{}, { by: "alice" }])(
    "counts what another has requeued since it was read, whatever became of it, in one more request: %o",
    async (trace) => {
      await parkAll(5);
      meanwhile(async () => {
        const other = setOf("b");
        await other.requeue("3");
        await other.requeue("5");
        for (let task = await other.claim(); task !== undefined; task = await other.claim()) {
          if (task.id === "5") await task.succeed();
        }
      });
      const requests = await requestsOf(async () => expect(await setOf("a").requeueAll(trace)).toBe(5));
      expect(await setOf("a").counts()).toMatchObject({ waiting: 3, running: 1, succeeded: 1, parked: 0 });
      // Three are the other's.
      expect(requests.filter((method) => method === "transact")).toHaveLength(5);
    },
  );

  test("leaves out in each round what another has requeued, and does what is left", async () => {
    await parkAll(4);
    const other = setOf("b");
    meanwhile(...["1", "2", "3"].map((id) => () => other.requeue(id)));
    const requests = await requestsOf(async () => expect(await setOf("a").requeueAll()).toBe(4));
    expect(requests.filter((method) => method === "transact")).toHaveLength(7);
    expect(await setOf("a").counts()).toMatchObject({ waiting: 4, parked: 0 });
  });

  test("that the service fails may be called again, and does the rest", async () => {
    await parkAll(120);
    store.next(undefined, "request lost", "request lost", "request lost");
    const set = setOf("a");
    await expect(afterWaiting(set.requeueAll())).rejects.toBeInstanceOf(LeaseServiceError);
    expect(await set.counts()).toMatchObject({ waiting: 50, parked: 70 });
    expect(await set.requeueAll()).toBe(70);
  });

  test("ends where a filter throws, and says so", async () => {
    await parkAll(1);
    const filter = (): boolean => {
      throw new TypeError("task.owner is undefined");
    };
    await expect(setOf("a").requeueAll({ filter })).rejects.toThrow(TypeError);
  });
});

describe("what operators do to tasks, with their names", () => {
  const traces = async (): Promise<readonly AuditEntry[]> => {
    const operator = new LeaseOperator(new LeaseClient({ store, clock }), { by: "reader" });
    const found: AuditEntry[] = [];
    for await (const entry of operator.audit({ key: "set" })) found.push(entry);
    return found;
  };

  test.each([undefined, "answer lost", "request lost"] as const)(
    "leaves one trace of each: %s",
    async (fate) => {
      await parkAll(40);
      await add(41);
      store.next(fate);
      const set = setOf("operator");
      const calls = await requestsOf(async () => {
        expect(await afterWaiting(set.requeueAll({ by: "alice", reason: "INC-1" }))).toBe(40);
      });
      // 33 tasks with their traces are what one transaction holds.
      expect(calls.filter((method) => method === "transact")).toHaveLength(fate === undefined ? 2 : 3);
      store.next(fate);
      expect(await afterWaiting(set.cancel("41", "a mistake", { by: "bob" }))).toBe(true);
      const found = await traces();
      expect(new Set(found.map(({ sortKey }) => sortKey)).size).toBe(41);
      expect(found).toHaveLength(41);
      expect(found.filter(({ action }) => action === "requeue")).toHaveLength(40);
      expect(found.find(({ action }) => action === "cancel")).toMatchObject({
        ...{ key: "set", sortKey: "done#41", by: "bob", reason: "a mistake" },
      });
      expect(found[0]).toMatchObject({ holder: undefined, until: undefined });
    },
  );

  test("leaves none where nothing is changed, and none without a name", async () => {
    await parkAll(2);
    const set = setOf("operator");
    expect(await set.requeue("1")).toBe(true);
    expect(await set.requeue("1", { by: "alice" })).toBe(false);
    meanwhile(() => setOf("another").requeue("2"));
    await set.requeue("2", { by: "alice" });
    expect(await traces()).toEqual([]);
  });

  test.each([
    ["requeue", (set: TaskSet) => set.requeue("1", { by: "" })],
    ["requeueAll", (set: TaskSet) => set.requeueAll({ by: "" })],
    ["cancel", (set: TaskSet) => set.cancel("1", "why", { by: "" })],
  ] as const)("refuses %s under no name before anything is sent", async (_name, call) => {
    await expect(call(setOf("operator"))).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
    expect(store.calls).toEqual([]);
  });
});
