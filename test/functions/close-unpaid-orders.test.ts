import { LeaseClient } from "@leasehold/client";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { type JobRun, JobRuns } from "@leasehold/jobs";
import type { Context } from "aws-lambda";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { onSchedule, type ScheduledJob } from "../../functions/close-unpaid-orders/handler.ts";
import {
  attemptsOfTrigger,
  closeOrdersUnder,
  closeUnpaidOrdersKey,
} from "../../functions/close-unpaid-orders/job.ts";
import { type CloseResult, type FoundOrder, OrderBook } from "../../functions/close-unpaid-orders/orders.ts";
import { adminOf } from "../support/admin.ts";
import { dieAfter } from "../support/dead-writer.ts";

const tick = "2026-01-01T10:00:00.000Z";
const anyCall = { signal: new AbortController().signal, isCurrent: () => true };
const orders: FoundOrder[] = ["o-1", "o-2"].map((orderId) => ({
  orderId,
  item: { pk: "orders#open", sk: orderId },
}));

/** The orders of a shop in memory, each of which closes once. */
class ShelvedOrders extends OrderBook {
  readonly asked: number[] = [];
  readonly closed: string[] = [];
  readonly results: CloseResult[] = [];

  override async *unpaid(dueBefore: number): AsyncGenerator<FoundOrder, void, undefined> {
    this.asked.push(dueBefore);
    yield* orders.filter(({ orderId }) => !this.closed.includes(orderId));
  }

  override async close({ orderId }: FoundOrder): Promise<CloseResult> {
    const result = this.results.shift() ?? "closed";
    if (result === "closed") this.closed.push(orderId);
    return result;
  }
}

let clock: ManualClock;
let store: MemoryLeaseStore;
let book: ShelvedOrders;

function leases(): LeaseClient {
  return new LeaseClient({ store, clock });
}

/** What the history has about a slot. */
async function entry(slot: string = tick): Promise<JobRun | undefined> {
  return await new JobRuns(leases(), closeUnpaidOrdersKey).get(slot);
}

/** The latest slot that the lock knows to be dealt with. */
async function doneSlot(): Promise<unknown> {
  const request = { key: leaseItemKey(closeUnpaidOrdersKey), consistent: true };
  return (await store.get(request, anyCall))?.doneSlot;
}

/** Lets time pass until a promise settles. */
async function inTime<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  for (let turns = 0; !isSettled && turns < 2_000; turns += 1) await clock.advance(100);
  return await promise;
}

function instance(
  options: Partial<ScheduledJob> = {},
  awsRequestId: string = crypto.randomUUID(),
  remainingMs: () => number = () => 60_000,
): (event: unknown) => Promise<unknown> {
  const handle = onSchedule({ leases: leases(), orders: book, now: () => clock.now(), ...options });
  const context = {
    awsRequestId,
    functionName: "close-unpaid-orders",
    getRemainingTimeInMillis: () => remainingMs(),
  } as Context;
  return (event) => handle(event as object, context);
}

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  clock = new ManualClock(Date.parse(tick) + 120_000);
  store = new MemoryLeaseStore();
  book = new ShelvedOrders({} as never, "shop");
});

describe("the schedule that closes unpaid orders", () => {
  test("closes what was due before the scheduled time, and not before the trigger's arrival; the history has its run", async () => {
    expect(await instance()({ job: "j", scheduledTime: tick })).toMatchObject({ result: "ran", closed: 2 });
    expect(book.asked).toEqual([Date.parse(tick)]);
    expect(await entry()).toMatchObject({
      state: "succeeded",
      attempt: 1,
      progress: { closed: 2, parked: 0 },
      fencingToken: expect.any(Number),
      endedAt: clock.now(),
    });
  });

  test("takes an EventBridge rule's time too", async () => {
    expect(await instance()({ time: tick })).toMatchObject({ result: "ran", closed: 2 });
  });

  test("a trigger that comes again, also to an instance whose clock is half a minute off, after a run of no time at all, runs once", async () => {
    await instance()({ scheduledTime: tick });
    for (const offMs of [0, -30_000, 30_000]) {
      const elsewhere = new ManualClock(clock.now() + offMs);
      const repeated = instance({ leases: new LeaseClient({ store, clock: elsewhere }) });
      expect(await repeated({ scheduledTime: tick })).toEqual({ result: "doneBefore", slot: tick });
    }
    expect(book.asked).toHaveLength(1);
  });

  test("a trigger that is dated in the future closes nothing, and does not keep out the ticks until then", async () => {
    const wrong = "2026-01-09T10:00:00.000Z";
    await expect(instance()({ scheduledTime: wrong })).rejects.toMatchObject({ code: "LEASE_SLOT_NOT_DUE" });
    expect(book.asked).toEqual([]);
    expect(await entry(wrong)).toBeUndefined();
    expect(await doneSlot()).toBeUndefined();
    expect(await instance()({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 2 });
  });

  test("a trigger a little ahead of the clock runs, and closes nothing that is not due by that clock", async () => {
    const ahead = new Date(clock.now() + 20_000).toISOString();
    expect(await instance()({ scheduledTime: ahead })).toMatchObject({ result: "ran" });
    expect(book.asked).toEqual([clock.now()]);
  });

  test("a backlog that is longer than the invocation is unfinished, and no failure: the next tick goes on", async () => {
    let left = 5_000;
    const short = instance({}, crypto.randomUUID(), () => (left -= 1_000));
    const answer = await short({ scheduledTime: tick });
    expect(answer).toMatchObject({ result: "ran", isUnfinished: true });
    expect(book.closed.length).toBeLessThan(2);
    expect(await entry()).toMatchObject({
      state: "succeeded",
      attempt: 1,
      remark: expect.stringContaining("unfinished"),
      progress: { closed: book.closed.length, parked: 0 },
    });
    const next = "2026-01-01T10:01:00.000Z";
    expect(await instance()({ scheduledTime: next })).toMatchObject({ result: "ran", isUnfinished: false });
    expect(book.closed).toEqual(["o-1", "o-2"]);
  });

  test("orders that are parked are counted in the answer and in the run history, and logged for the alarm", async () => {
    book.results.push("parked", "closed");
    expect(await instance()({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 1, parked: 1 });
    expect(await entry()).toMatchObject({
      state: "succeeded",
      remark: expect.stringContaining("1 orders could not be closed"),
      progress: { closed: 1, parked: 1 },
    });
    const lines = vi.mocked(console.log).mock.calls.map(([line]) => JSON.parse(String(line)));
    expect(lines).toContainEqual(
      expect.objectContaining({ message: "orders parked", slot: tick, parked: 1 }),
    );
  });

  test("while one instance runs, the others skip and name it: the history has the run under way, and no skipped trigger", async () => {
    const other = "2026-01-01T10:01:00.000Z";
    const running = instance({
      beforeClose: async ({ orderId }, { owner }) => {
        if (orderId !== "o-1") return;
        for (const scheduledTime of [tick, other])
          expect(await instance()({ scheduledTime })).toMatchObject({ result: "skipped", holder: owner });
        expect(await entry()).toMatchObject({ state: "running", attempt: 1 });
      },
    });
    expect(await running({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 2 });
    expect(await entry(other)).toBeUndefined();
    expect.assertions(5);
  });

  test("a run that loses its lease rejects, names the order that was fenced off, and leaves its slot open: the retry closes the rest", async () => {
    const taken = instance({
      beforeClose: async ({ orderId }, { key, token }) => {
        if (orderId === "o-2") await adminOf(new LeaseClient({ store, clock })).forceRelease(key, { token });
      },
    });
    book.results.push("closed", "fencedOff");
    await expect(taken({ scheduledTime: tick })).rejects.toMatchObject({
      code: "LEASE_LOST",
      key: closeUnpaidOrdersKey,
    });
    expect(await entry()).toMatchObject({
      state: "failed",
      remark: expect.stringContaining("order o-2 was fenced off"),
    });
    expect(await instance()({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 1 });
    expect(book.closed).toEqual(["o-1", "o-2"]);
  });

  test.each([{}, { scheduledTime: "soon" }, { scheduledTime: 7 }])(
    "refuses %j, and asks for no order",
    async (event) => {
      await expect(instance()(event)).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
      expect(book.asked).toEqual([]);
    },
  );
});

describe("the history of its runs", () => {
  test("has a failed run with the error and what it had closed, and then its retry, for which the lock is free", async () => {
    const failing = instance({
      beforeClose: async ({ orderId }) => {
        if (orderId === "o-2") throw new Error("no answer");
      },
    });
    await expect(failing({ scheduledTime: tick })).rejects.toThrow("no answer");
    expect(await entry()).toMatchObject({
      state: "failed",
      remark: "Error: no answer",
      progress: { closed: 1, parked: 0 },
      exhausted: false,
    });
    await instance()({ scheduledTime: tick });
    expect(await entry()).toMatchObject({
      state: "succeeded",
      attempt: 2,
      progress: { closed: 1, parked: 0 },
    });
  });

  test("a retry beside the dead attempt's lease rejects; Lambda's next one follows the attempt without waiting for its run", async () => {
    const [requestId, runLeaseMs] = [crypto.randomUUID(), 120_000];
    const dies = { runLeaseMs, beforeClose: () => new Promise<void>(() => undefined) };
    void instance(dies, requestId)({ scheduledTime: tick });
    await clock.advance(0);
    const dead = clock.now();
    expect(await entry()).toMatchObject({ state: "running", attempt: 1 });
    clock = new ManualClock(dead + 5_000);
    await expect(instance({ runLeaseMs }, requestId)({ scheduledTime: tick })).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
    });
    const start = dead + 63_000;
    clock = new ManualClock(start);
    const next = instance({ runLeaseMs }, requestId)({ scheduledTime: tick });
    expect(await inTime(next)).toMatchObject({ result: "ran", closed: 2 });
    expect(clock.now() - start).toBeLessThan(1_000);
    expect(await entry()).toMatchObject({ state: "succeeded", attempt: 2, lostAttempts: 1 });
  });

  test.each([
    { landed: 0, died: "before its lock", attempt: 1 },
    { landed: 1, died: "before its run had begun", attempt: 1 },
    { landed: 2, died: "before its run had ended", attempt: 2 },
    { landed: 3, died: "before its slot was done", attempt: 1 },
    { landed: 4, died: "with everything done", attempt: 1 },
  ])(
    "an instance that died $died, with its last write lost or late: the retry does the rest, and the history has attempt $attempt",
    async ({ landed, attempt }) => {
      for (const isLate of [false, true]) {
        [store, book] = [new MemoryLeaseStore(), new ShelvedOrders({} as never, "shop")];
        const requestId = crypto.randomUUID();
        const dead = dieAfter(store, landed);
        void instance({}, requestId)({ scheduledTime: tick });
        await clock.advance(0);
        dead.bury();
        // Nobody who has died renews.
        clock = new ManualClock(clock.now() + 120_000);
        await instance({}, requestId)({ scheduledTime: tick });
        if (isLate) await dead.land();
        expect(book.closed).toEqual(["o-1", "o-2"]);
        expect(await entry()).toMatchObject({ state: "succeeded", attempt, lostAttempts: attempt - 1 });
        expect(await doneSlot()).toBe(tick);
        expect(await leases().inspect(closeUnpaidOrdersKey)).toBeUndefined();
      }
    },
  );

  test("a slot whose attempts are spent answers so, asks for no order, and is dealt with", async () => {
    const failing = instance({ beforeClose: () => Promise.reject(new Error("no answer")) });
    for (let attempt = 1; attempt <= attemptsOfTrigger; attempt += 1)
      await expect(failing({ scheduledTime: tick })).rejects.toThrow("no answer");
    const asked = book.asked.length;
    expect(await instance()({ scheduledTime: tick })).toEqual({
      result: "exhausted",
      slot: tick,
      attempts: attemptsOfTrigger,
    });
    expect(book.asked).toHaveLength(asked);
    expect(await entry()).toMatchObject({ state: "failed", exhausted: true });
    expect(await instance()({ scheduledTime: tick })).toEqual({ result: "doneBefore", slot: tick });
  });

  test("the retry of a run that died costs 6, and one that finds its run done 3", async () => {
    void instance({ beforeClose: () => new Promise(() => undefined) })({ scheduledTime: tick });
    await clock.advance(0);
    clock = new ManualClock(clock.now() + 120_000);
    const update = vi.spyOn(store, "update");
    await instance()({ scheduledTime: tick });
    expect(update).toHaveBeenCalledTimes(6);

    const next = "2026-01-01T10:01:00.000Z";
    await new JobRuns(leases(), closeUnpaidOrdersKey).run(next, () => undefined);
    update.mockClear();
    expect(await instance()({ scheduledTime: next })).toEqual({ result: "doneBefore", slot: next });
    expect(update).toHaveBeenCalledTimes(3);
  });
});

test("a run that is asked to stop closes no other order, and rejects with the reason", async () => {
  const lease = await leases().acquire(closeUnpaidOrdersKey);
  const stop = new AbortController();
  const reason = new Error("the environment shuts down");
  const close = book.close.bind(book);
  book.close = async (order) => {
    stop.abort(reason);
    return await close(order);
  };
  const run = closeOrdersUnder(lease, { orders: book, remainingMs: () => 60_000 }, 0, stop.signal);
  await expect(run).rejects.toBe(reason);
  expect(book.closed).toEqual(["o-1"]);
  expect(lease.held).toBe(true);
});
