import type { CallOptions } from "@leasehold/client";
import { type AuditEntry, LeaseOperator } from "@leasehold/client/admin";
import { beforeEach, describe, expect, test } from "vitest";
import { claimed as claimedOf } from "../support/claimed.ts";
import {
  beginAnew,
  claimed,
  clientOf,
  clock,
  ended,
  ids,
  inTime,
  open,
  requestsOf,
  setOf,
  store,
} from "./tasks.ts";

beginAnew();
const addTo = (last: number) => setOf("adder").add(ids(last).map((id) => ({ id: `${Number(id) + 1}` })));
const parkAll = async (count: number): Promise<void> => {
  await addTo(count);
  const set = setOf("parker");
  for (let task = await set.claim(); task !== undefined; task = await set.claim()) {
    await task.fail("no address", { final: true });
  }
};
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

describe("what people's calls cost", () => {
  test("get: 1 request for an open task, 2 for an ended one, 3 for none, all of them consistent", async () => {
    await addTo(1);
    const set = setOf("a");
    expect(await requestsOf(() => set.get("1"))).toEqual(["get"]);
    await set.cancel("1");
    expect(await requestsOf(() => set.get("1"))).toEqual(["get", "get"]);
    expect(await requestsOf(() => set.get("2"))).toEqual(["get", "get", "transact"]);
    const reads = store.calls.filter(({ method }) => method === "get");
    expect(reads.every(({ consistent }) => consistent)).toBe(true);
  });

  test("cancel: 2 requests; of a running task 1", async () => {
    await addTo(1);
    const set = setOf("a");
    const task = await claimedOf(set);
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

describe("a cancel", () => {
  beforeEach(() => addTo(1));

  test("whose answer is lost is repeated, and known again without another read", async () => {
    const set = setOf("a");
    store.next("answer lost");
    const requests = await requestsOf(async () => expect(await inTime(set.cancel("1"))).toBe(true));
    expect(requests).toEqual(["get", "transact", "transact"]);
  });

  test("finds the task claimed since its read, and leaves it alone", async () => {
    meanwhile(async () => void (await claimed("b")));
    expect(await setOf("a").cancel("1")).toBe(false);
    expect(open()).toMatchObject({ owner: "b" });
  });

  test("finds the task claimed and returned since its read, and begins anew", async () => {
    meanwhile(async () => await (await claimed("b")).fail("no"));
    expect(await setOf("a").cancel("1")).toBe(true);
    expect(ended()).toMatchObject({ state: "cancelled", attempts: 1, remark: "no" });
  });

  test("that finds it so again and again rejects by name", async () => {
    const visit = async () => await (await claimed("b")).release();
    meanwhile(visit, visit, visit);
    await expect(setOf("a").cancel("1")).rejects.toMatchObject({ code: "LEASE_CONFLICT", retryable: true });
    expect(open()).toMatchObject({ attempts: 0 });
  });

  test("of a task that was never claimed has fencing tokens go on from the time, as a claim does", async () => {
    const set = setOf("a");
    await set.cancel("1");
    await set.requeue("1");
    expect((await claimed("a")).fencingToken).toBeGreaterThan(clock.now());
  });

  test("makes nothing of a task that ttl removes under it", async () => {
    meanwhile(async () => store.table.collectGarbage(Number.POSITIVE_INFINITY));
    expect(await setOf("a").cancel("1")).toBe(false);
    expect([open(), ended()]).toEqual([undefined, undefined]);
  });
});

describe("a requeue", () => {
  beforeEach(() => parkAll(1));

  test("whose answer is lost, and whose task ends again before it is repeated, does not begin a third round", async () => {
    store.next("answer lost");
    const call = setOf("a").requeue("1", { maxAttempts: 9 });
    await clock.advance(0);
    await (await claimed("b")).fail("no", { final: true });
    const after = ended();
    expect(await inTime(call)).toBe(true);
    expect([open(), ended()]).toEqual([undefined, after]);
  });

  test("makes nothing of a task that ttl removes under it", async () => {
    meanwhile(async () => store.table.collectGarbage(Number.POSITIVE_INFINITY));
    expect(await setOf("a").requeue("1")).toBe(false);
    expect([open(), ended()]).toEqual([undefined, undefined]);
  });
});

describe("letting many tasks begin again", () => {
  test("leaves out in each round what another has requeued, and does what is left", async () => {
    await parkAll(4);
    const other = setOf("b");
    meanwhile(...["1", "2", "3"].map((id) => () => other.requeue(id)));
    const requests = await requestsOf(async () => expect(await setOf("a").requeueAll()).toBe(4));
    expect(requests.filter((method) => method === "transact")).toHaveLength(7);
    expect(await setOf("a").counts()).toMatchObject({ waiting: 4, parked: 0 });
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
    const operator = new LeaseOperator(clientOf("reader"), { by: "reader" });
    const found: AuditEntry[] = [];
    for await (const entry of operator.audit({ key: "set" })) found.push(entry);
    return found;
  };

  test("leaves one trace of each, also where an answer was lost", async () => {
    await parkAll(40);
    await addTo(41);
    const set = setOf("operator");
    store.next("answer lost");
    const calls = await requestsOf(async () => {
      expect(await inTime(set.requeueAll({ by: "alice", reason: "INC-1" }))).toBe(40);
    });
    // 33 tasks with their traces are what one transaction holds.
    expect(calls.filter((method) => method === "transact")).toHaveLength(3);
    store.next("answer lost");
    expect(await inTime(set.cancel("41", "a mistake", { by: "bob" }))).toBe(true);
    const found = await traces();
    expect(new Set(found.map(({ sortKey }) => sortKey)).size).toBe(41);
    expect(found).toHaveLength(41);
    expect(found.filter(({ action }) => action === "requeue")).toHaveLength(40);
    expect(found.find(({ action }) => action === "cancel")).toMatchObject({
      ...{ key: "set", sortKey: "done#41", by: "bob", reason: "a mistake" },
    });
  });

  test("leaves none where nothing is changed, and none without a name", async () => {
    await parkAll(2);
    const set = setOf("operator");
    expect(await set.requeue("1")).toBe(true);
    expect(await set.requeue("1", { by: "alice" })).toBe(false);
    meanwhile(() => setOf("another").requeue("2"));
    await set.requeue("2", { by: "alice" });
    expect(await traces()).toEqual([]);
  });
});
