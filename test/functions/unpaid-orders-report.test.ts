import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import type { JobRuns } from "@leasehold/jobs";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { closeUnpaidOrdersKey as key, openRuns } from "../../functions/close-unpaid-orders/job.ts";
import { type FoundOrder, OrderBook } from "../../functions/close-unpaid-orders/orders.ts";
import {
  type BackfillAnswer,
  type MissedAnswer,
  type RunsAnswer,
  report,
} from "../../functions/close-unpaid-orders/report.ts";
import { adminOf } from "../support/admin.ts";

const minuteMs = 60_000;
const start = Date.UTC(2026, 0, 1, 10);
let clock: ManualClock;
let store: MemoryLeaseStore;
let runs: JobRuns;
let book: AskedOrders;

/** A shop without orders, which knows when it was asked for them. */
class AskedOrders extends OrderBook {
  readonly asked: string[] = [];
  onAsked: () => Promise<void> = async () => undefined;

  override async *unpaid(dueBefore: number): AsyncGenerator<FoundOrder, void, undefined> {
    this.asked.push(new Date(dueBefore).toISOString());
    await this.onAsked();
    yield* [];
  }
}

/** The slot of so many minutes past the hour. */
function at(minute: number): string {
  return new Date(start + minute * minuteMs).toISOString();
}

function leases(owner = "operator"): LeaseClient {
  return new LeaseClient({ store, clock, owner, leaseDurationMs: 45_000 });
}

async function ask<T>(event: unknown, remainingMs: number | (() => number) = 300_000): Promise<T> {
  const schedule = "cron(0/1 * * * ? *)";
  const sources = {
    leases: leases(),
    orders: book,
    schedule,
    leaseDurationMs: 45_000,
    now: () => clock.now(),
  };
  const left = typeof remainingMs === "number" ? () => remainingMs : remainingMs;
  return (await report(sources, event, left)) as T;
}

async function fail(minute: number, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1)
    await runs.run(at(minute), () => Promise.reject(new Error("no answer"))).catch(() => undefined);
}

/** Eight minutes: 0 succeeded, 1 failed, 2 exhausted, 3 lost, 4 skipped by an operator, 5 and 6 never begun. */
beforeEach(async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  // The hour's first slots are over: one that is to come does not run.
  clock = new ManualClock(start + 4 * minuteMs);
  store = new MemoryLeaseStore();
  book = new AskedOrders({} as never, "shop");
  runs = openRuns(leases("trigger"), { key, leaseDurationMs: 45_000 });
  await runs.run(at(0), ({ progress }) => progress({ closed: 2 }));
  await fail(1, 1);
  await fail(2, 3);
  void openRuns(leases("dead"), { key }).run(at(3), () => new Promise(() => undefined));
  await clock.advance(0);
  await runs.skip(at(4), "the shop was closed");
  // Nobody who has died renews.
  clock = new ManualClock(start + 7 * minuteMs + 30_000);
});

describe("the report on the schedule's runs", () => {
  test("counts the runs by how they stand, and shows those that did not succeed, latest first", async () => {
    const { counts, runs: shown } = await ask<RunsAnswer>({ action: "runs" });
    expect(counts).toEqual({ running: 0, succeeded: 1, failed: 1, lost: 1, exhausted: 1, skipped: 1 });
    expect(shown.map(({ slot, state, remark }) => [slot, state, remark])).toEqual([
      [at(4), "skipped", "the shop was closed"],
      [at(3), "lost", undefined],
      [at(2), "exhausted", "Error: no answer"],
      [at(1), "failed", "Error: no answer"],
    ]);
  });

  test("shows those of one standing", async () => {
    const { runs: shown } = await ask<RunsAnswer>({ action: "runs", since: at(0), state: "succeeded" });
    expect(shown).toMatchObject([{ slot: at(0), attempt: 1, owner: "trigger", progress: { closed: 2 } }]);
  });

  test("shows the slots that were due by the schedule and have no success, but for those that are still to begin", async () => {
    const answer = await ask<MissedAnswer>({ action: "missed", since: at(0) });
    expect(answer.missed.map(({ slot, run }) => [slot, run?.state])).toEqual([
      [at(1), "failed"],
      [at(2), "exhausted"],
      [at(3), "lost"],
      [at(5), undefined],
      [at(6), undefined],
    ]);
    expect(answer).toMatchObject({ until: new Date(clock.now() - minuteMs).toISOString(), complete: true });
  });

  test("says when there are more than it shows, and looks back a day by itself", async () => {
    const { since, missed, complete } = await ask<MissedAnswer>({ action: "missed" });
    expect(since).toBe(new Date(clock.now() - 86_400_000).toISOString());
    expect(missed).toHaveLength(100);
    expect(complete).toBe(false);
  });

  test.each([
    [{}, "event.action"],
    [{ action: "repair" }, "event.action"],
    [{ action: "runs", state: "odd" }, "event.state"],
    [{ action: "runs", since: 7 }, "event.since"],
    [{ action: "missed", since: "yesterday" }, "since"],
    [{ action: "missed", since: "2025-01-01T00:00:00.000Z" }, "since"],
    [{ action: "backfill", since: "yesterday" }, "since"],
    [{ action: "backfill", since: "2025-01-01T00:00:00.000Z" }, "since"],
    [{ action: "backfill", maxAttempts: 3 }, "event.maxAttempts"],
    [{ action: "backfill", slot: at(1) }, "event.slot"],
    [{ action: "slot", since: at(1) }, "event.since"],
    [{ action: "takeBack" }, "event.slot"],
    [{ action: "takeBack", slot: at(1), to: at(1) }, "to"],
    [{ action: "takeBack", slot: "tomorrow" }, "event.slot"],
    [{ action: "takeBack", slot: at(1), to: "2025-11-21" }, "event.to"],
    [{ action: "putBack" }, "event.order"],
  ])("refuses %j by name, and writes nothing", async (event, option) => {
    const update = vi.spyOn(store, "update");
    await expect(ask(event)).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS", option });
    expect(update).not.toHaveBeenCalled();
  });
});

describe("its back-fill", () => {
  test("runs what was missed, oldest first, each slot by its own time; the exhausted are left", async () => {
    expect(await ask<BackfillAnswer>({ action: "backfill", since: at(0) })).toEqual({
      succeeded: [at(1), at(3), at(5), at(6)],
      failed: [],
      left: [at(2)],
      complete: true,
    });
    expect(book.asked).toEqual([at(1), at(3), at(5), at(6)]);
    expect(await runs.get(at(3))).toMatchObject({ state: "succeeded", attempt: 2, lostAttempts: 1 });
    const { missed } = await ask<MissedAnswer>({ action: "missed", since: at(0) });
    expect(missed.map(({ slot }) => slot)).toEqual([at(2)]);
  });

  test("with more attempts runs the exhausted too", async () => {
    const { left, succeeded } = await ask<BackfillAnswer>({
      action: "backfill",
      since: at(0),
      maxAttempts: 4,
    });
    expect([left, succeeded]).toEqual([[], [at(1), at(2), at(3), at(5), at(6)]]);
  });

  test("runs under the lock, and lets it go", async () => {
    const holders: (string | undefined)[] = [];
    book.onAsked = async () => {
      holders.push((await leases().inspect(key))?.owner);
    };
    await ask({ action: "backfill", since: at(5) });
    expect(holders).toEqual(["operator", "operator"]);
    expect(await leases().inspect(key)).toBeUndefined();
  });

  test("leaves the slots that the lock knows to be done, and those to come, as they were", async () => {
    const done = await leases("trigger").acquire(key, { slot: at(6) });
    await done.complete();
    await ask({ action: "backfill", since: at(5) });
    expect(await leases().tryAcquire(key, { slot: at(6) })).toBeUndefined();
    expect(await leases().tryAcquire(key, { slot: at(7) })).toBeDefined();
  });

  test("begins no slot while the lock is held for longer than it waits", async () => {
    await leases("trigger").acquire(key, { heartbeat: true });
    const asked = ask({ action: "backfill", since: at(0) }, 20_000);
    asked.catch(() => undefined);
    await clock.advance(30_000);
    await expect(asked).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "trigger" });
    expect(book.asked).toEqual([]);
  });

  test("that loses the lock stops, and says so; what it had begun is in the run history", async () => {
    book.onAsked = async () => {
      const { token = "" } = (await leases().inspect(key)) ?? {};
      await adminOf(leases()).forceRelease(key, { token });
      await clock.advance(46_000);
    };
    await expect(ask({ action: "backfill", since: at(0) })).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(book.asked).toHaveLength(1);
  });

  test("gives back what failed as text, and goes on", async () => {
    let times = 0;
    book.onAsked = async () => {
      times += 1;
      if (times === 1) throw new Error("no answer");
    };
    expect(await ask<BackfillAnswer>({ action: "backfill", since: at(5) })).toMatchObject({
      succeeded: [at(6)],
      failed: [{ slot: at(5), problem: "Error: no answer" }],
    });
  });

  test("whose time is over in the middle of a slot's orders leaves the rest to the next run, and fails nothing", async () => {
    let left = 4_000;
    const found: FoundOrder = { orderId: "o", item: { pk: "orders#open", sk: "o" } };
    book.unpaid = async function* () {
      yield found;
      yield found;
    };
    let closed = 0;
    book.close = async () => {
      closed += 1;
      left -= 3_000;
      return "closed";
    };
    const answer = await ask<BackfillAnswer>({ action: "backfill", since: at(5) }, () => left);
    expect(answer).toMatchObject({ succeeded: [at(5), at(6)], failed: [] });
    expect(closed).toBe(1);
    expect(await runs.get(at(5))).toMatchObject({
      state: "succeeded",
      remark: expect.stringContaining("unfinished"),
    });
  });

  test("has no time left: begins nothing", async () => {
    await expect(ask({ action: "backfill", since: at(0) }, 1_000)).rejects.toThrow();
    expect(book.asked).toEqual([]);
  });
});

describe("its repairs", () => {
  test("take a slot back that was done by mistake: the ticks after it run again, and so does its own", async () => {
    const wrong = at(60);
    const trigger = leases("trigger");
    await (await trigger.acquire(key, { slot: at(5) })).complete();
    clock = new ManualClock(start + 61 * minuteMs);
    await openRuns(leases("trigger"), { key }).run(wrong, () => undefined);
    await (await leases("trigger").acquire(key, { slot: wrong })).complete();
    clock = new ManualClock(start + 7 * minuteMs);
    expect(await trigger.tryAcquire(key, { slot: at(6) })).toBeUndefined();

    expect(await ask({ action: "slot" })).toEqual({ doneSlot: wrong });
    const repair = { action: "takeBack", slot: wrong, to: at(5) };
    expect(await ask({ ...repair, slot: at(59) })).toEqual({ isTakenBack: false, doneSlot: wrong });
    expect(await ask(repair)).toEqual({ isTakenBack: true, doneSlot: at(5) });
    expect(await ask(repair)).toEqual({ isTakenBack: true, doneSlot: at(5) });
    expect(await trigger.tryAcquire(key, { slot: at(5) })).toBeUndefined();
    const lock = await trigger.acquire(key, { slot: at(6) });
    await lock.complete();
    expect(await openRuns(leases(), { key }).get(wrong)).toMatchObject({ state: "failed", exhausted: false });
    expect(await ask(repair)).toEqual({ isTakenBack: false, doneSlot: at(6) });
  });

  test("leave a run alone whose slot is not the one that is done", async () => {
    await leases()
      .acquire(key, { slot: at(5) })
      .then((lease) => lease.complete());
    expect(await ask({ action: "takeBack", slot: at(0) })).toEqual({ isTakenBack: false, doneSlot: at(5) });
    expect(await runs.get(at(0))).toMatchObject({ state: "succeeded" });
  });

  test("list the orders that could not be closed, and put one back", async () => {
    const order = { id: "x#o-1", orderId: "o-1", problem: "no stock", parkedBy: "trigger", fencingToken: 7 };
    const asked: string[] = [];
    book.parked = async () => [order];
    book.putBack = async (id) => asked.push(id) === 1;
    expect(await ask({ action: "parked" })).toEqual({ parked: [order] });
    expect(await ask({ action: "putBack", order: "x#o-1" })).toEqual({ isPutBack: true });
    expect(await ask({ action: "putBack", order: "x#o-1" })).toEqual({ isPutBack: false });
    expect(asked).toEqual(["x#o-1", "x#o-1"]);
  });
});
