import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, type MissedQuery, parseScheduleExpression } from "@leasehold/jobs";
import { beforeEach, expect, test } from "vitest";

/** 1 January 2026 is a Thursday. */
const noonOfMonday = Date.UTC(2026, 0, 5, 12);
let runs: JobRuns;

beforeEach(() => {
  const client = new LeaseClient({ store: new MemoryLeaseStore(), clock: new ManualClock(noonOfMonday) });
  runs = new JobRuns(client, "report");
});

async function missed(schedule: MissedQuery["schedule"], since: string): Promise<string[]> {
  const slots: string[] = [];
  for await (const { slot } of runs.missed({ schedule, since })) slots.push(slot);
  return slots;
}

test("takes a cron expression of EventBridge as the schedule, in UTC", async () => {
  expect(await missed("cron(0 8 ? * MON-FRI *)", "2026-01-01T08:00:00.000Z")).toEqual([
    "2026-01-01T08:00:00.000Z",
    "2026-01-02T08:00:00.000Z",
    "2026-01-05T08:00:00.000Z",
  ]);
});

test("takes a rate, counted from the epoch", async () => {
  expect(await missed("rate(6 hours)", "2026-01-05T01:30:00.000Z")).toEqual(["2026-01-05T06:00:00.000Z"]);
});

test("takes what the parser makes of an expression and a time zone", async () => {
  const schedule = parseScheduleExpression("cron(0 8 * * ? *)", { timeZone: "Europe/Berlin" });
  expect(await missed(schedule, "2026-01-05T00:00:00.000Z")).toEqual(["2026-01-05T07:00:00.000Z"]);
});

test("back-fills the slots of an expression", async () => {
  const since = "2026-01-05T10:30:00.000Z";
  const { succeeded } = await runs.backfill({ schedule: "rate(30 minutes)", since }, () => undefined);
  expect(succeeded).toEqual([
    "2026-01-05T10:30:00.000Z",
    "2026-01-05T11:00:00.000Z",
    "2026-01-05T11:30:00.000Z",
  ]);
});

test("refuses a schedule that does not let itself be looked at, by its name", () => {
  const cause = new Error("not now");
  const schedule = {
    get next(): never {
      throw cause;
    },
  };
  expect(() => runs.missed({ schedule, since: "2026-01-05T00:00:00.000Z" })).toThrow(
    expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option: "schedule", cause }),
  );
});

test.each(["hourly", "cron(0 8 * * * *)", "rate(0 minutes)", "", "0 8 * * *"])(
  "refuses %j at once, and says what is wrong with it",
  (schedule) => {
    const query = { schedule, since: "2026-01-05T00:00:00.000Z" };
    expect(() => runs.missed(query)).toThrow(
      expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option: "schedule", value: schedule }),
    );
  },
);
