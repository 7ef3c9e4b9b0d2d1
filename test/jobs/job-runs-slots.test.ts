import { LeaseClient } from "@leasehold/client";
import {
  coreOf,
  InvalidOptionsError,
  LeaseLostError,
  LeaseUnavailableError,
} from "@leasehold/client/internal";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { type JobRun, JobRuns, RunsExhaustedError } from "../../packages/jobs/src/index.ts";
import { backfillFrom } from "../../packages/jobs/src/runs/backfill.ts";
import { readRun } from "../../packages/jobs/src/runs/run.ts";
import { checkExpression, checkMissedQuery, slotsOf } from "../../packages/jobs/src/runs/slots.ts";

const since = "2026-01-01T00:00:00.000Z";
const until = "2026-01-01T03:00:00.000Z";
const now = Date.parse("2026-01-02T00:00:00.000Z");
const hourMs = 3_600_000;
const hourly = { next: (after: Date) => new Date((Math.floor(after.getTime() / hourMs) + 1) * hourMs) };
/** What an option is refused for. */
const refusal = (call: () => unknown): InvalidOptionsError | undefined => {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error;
    throw error;
  }
};

describe("the schedule of a query", () => {
  const given = (schedule: unknown) => checkMissedQuery({ schedule: schedule as never, since }, now);

  test("is refused by name when it does not let itself be looked at", () => {
    const cause = new Error("not now");
    const schedule = {
      get next(): never {
        throw cause;
      },
    };
    expect(refusal(() => given(schedule))).toMatchObject({ option: "schedule", cause });
  });

  test("is an expression in UTC, or in the time zone that comes with it", () => {
    const first = (timeZone?: string) =>
      checkExpression("cron(0 8 * * ? *)", timeZone).next(new Date(since))?.toISOString();
    expect(first()).toBe("2026-01-01T08:00:00.000Z");
    expect(first("Europe/Berlin")).toBe("2026-01-01T07:00:00.000Z");
  });

  test("is refused by name when its expression is none, and otherwise as the parser refuses it", () => {
    expect(refusal(() => checkExpression("cron(8)"))).toMatchObject({ option: "schedule", value: "cron(8)" });
    expect(refusal(() => checkExpression(5 as never))).toMatchObject({ option: "expression", value: 5 });
  });

  test("is asked from a slot on: a query without one is refused", () => {
    const error = refusal(() => checkMissedQuery({ schedule: hourly } as never, now));
    expect(error?.option).toMatch(/since/);
    expect(error?.message).toMatch(/undefined/);
  });
});

test("missed slots are those of an expression", async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 5, 12));
  const runs = new JobRuns(new LeaseClient({ store: new MemoryLeaseStore(), clock }), "report");
  const slots: string[] = [];
  // 1 January 2026 is a Thursday.
  const query = { schedule: "cron(0 8 ? * MON-FRI *)", since: "2026-01-01T08:00:00.000Z" };
  for await (const { slot } of runs.missed(query)) slots.push(slot);
  expect(slots).toEqual(["01", "02", "05"].map((day) => `2026-01-${day}T08:00:00.000Z`));
});

test("a back-fill tries 100 slots, unless it is told otherwise", async () => {
  const clock = new ManualClock(now);
  const runs = new JobRuns(new LeaseClient({ store: new MemoryLeaseStore(), clock }), "report");
  const query = { schedule: "rate(1 minute)", since: new Date(now - 101 * 60_000) };
  const { succeeded, complete } = await runs.backfill(query, () => "done");
  expect([succeeded.length, complete]).toEqual([100, false]);
});

describe("the slots of a schedule", () => {
  const slots = (next: (after: Date) => Date | null | undefined) => [
    ...slotsOf({ schedule: { next }, since, until }),
  ];

  test("begin with the first of the range, and end before its end", () => {
    expect(slots(hourly.next)).toEqual([
      "2026-01-01T00:00:00.000Z",
      "2026-01-01T01:00:00.000Z",
      "2026-01-01T02:00:00.000Z",
    ]);
  });

  test("end when there is no next one", () => {
    expect(slots((after) => (after < new Date(since) ? new Date(since) : null))).toEqual([since]);
  });

  test("are refused when the next one is the same, or no time", () => {
    expect(refusal(() => slots((after) => after))).toMatchObject({ option: "schedule.next" });
    expect(refusal(() => slots(() => new Date(Number.NaN)))).toMatchObject({ option: "schedule.next" });
  });
});

describe("a run, as its item shows it", () => {
  const { detector } = coreOf(
    new LeaseClient({ store: new MemoryLeaseStore(), clock: new ManualClock(now), owner: "reader" }),
  );
  const read = (more: object) =>
    readRun({ pk: "report", sk: `run#${since}`, attempt: 1, ...more }, { detector, maxAttempts: 3 });
  const lease = (expiresAt: number) => ({
    ...{ token: "t", owner: "a", version: 1, fence: 1, acquiredAt: now - 60_000, leaseDurationMs: 30_000 },
    expiresAt,
  });

  test("is running until its lease expires", () => {
    expect(read(lease(now + 10_000))).toMatchObject({
      ...{ state: "running", expiresAt: now + 10_000, endedAt: undefined },
    });
  });

  test("is lost when its lease was over before anybody watched it, and ended with it", () => {
    const expiresAt = now - 3_600_000;
    expect(read(lease(expiresAt))).toMatchObject({ state: "lost", expiresAt: undefined, endedAt: expiresAt });
  });

  test.each(["no JSON", "{}", '[null,7,{"attempt":"one"}]', 7])(
    "has no earlier attempts in: %s",
    (attempts) => {
      expect(read({ attempts })?.attempts).toMatchObject([{ attempt: 1 }]);
    },
  );

  test("is lost without an outcome, and its end is not known", () => {
    expect(read({})).toMatchObject({ state: "lost", expiresAt: undefined, endedAt: undefined });
  });

  test("has succeeded by its state, and by its slot alone", () => {
    expect(read({ state: "succeeded", endedAt: 5 })).toMatchObject({ state: "succeeded", endedAt: 5 });
    expect(read({ doneSlot: since })).toMatchObject({ state: "succeeded" });
  });
});

describe("a back-fill", () => {
  const slots = [since, "2026-01-01T01:00:00.000Z", "2026-01-01T02:00:00.000Z"];
  const fill = (run: (slot: string) => Promise<unknown>, signal?: AbortSignal) => {
    async function* missed() {
      for (const slot of slots) yield { slot, run: undefined };
    }
    return backfillFrom(missed(), { limit: 9, stopOnFailure: false, signal }, async (slot) => {
      const result = await run(slot);
      return { state: "succeeded", result };
    });
  };

  test.each([
    new LeaseUnavailableError("report", undefined, 5),
    new LeaseLostError("report", "taken"),
    new RunsExhaustedError("report", since, { attempts: 3, maxAttempts: 3, remark: undefined }),
  ])("leaves a slot that it cannot run, and goes on: %s", async (error) => {
    const report = await fill((slot) => (slot === since ? Promise.reject(error) : Promise.resolve(1)));
    expect(report).toEqual({ succeeded: slots.slice(1), failed: [], left: [since], complete: true });
  });

  test("is complete when only slots without attempts left follow its limit", async () => {
    const spent = { state: "failed", exhausted: true } as JobRun;
    async function* missed() {
      yield { slot: since, run: undefined };
      yield { slot: slots[1] ?? "", run: spent };
    }
    const terms = { limit: 1, stopOnFailure: false, signal: undefined };
    const report = await backfillFrom(missed(), terms, async () => ({ state: "succeeded", result: 1 }));
    expect(report).toEqual({ succeeded: [since], failed: [], left: [slots[1]], complete: true });
  });

  test("ends, incomplete, when its signal cuts off a slot that has not begun", async () => {
    const stop = new AbortController();
    const report = await fill(async (slot) => {
      if (slot === since) return;
      stop.abort();
      throw stop.signal.reason;
    }, stop.signal);
    expect(report).toEqual({ succeeded: [since], failed: [], left: [], complete: false });
  });

  test("rejects with any other error", async () => {
    const error = new TypeError("a mistake");
    await expect(fill(() => Promise.reject(error))).rejects.toBe(error);
  });
});
