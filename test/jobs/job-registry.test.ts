import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, type JobRunsOptions, registeredJobs } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { leasehold } from "../support/command-line.ts";

const hourMs = 3_600_000;
let clock: ManualClock;
let store: MemoryLeaseStore;
let client: LeaseClient;
let updates: number;

beforeEach(() => {
  clock = new ManualClock(Date.parse("2026-11-21T12:30:00.000Z"));
  store = new MemoryLeaseStore();
  updates = 0;
  const update = store.update.bind(store);
  store.update = async (...call) => {
    updates += 1;
    return await update(...call);
  };
  client = new LeaseClient({ store, clock });
});

function report(options: JobRunsOptions = {}): JobRuns {
  return new JobRuns(client, "daily-report", { heartbeat: false, ...options });
}

const slot = (hours: number): string =>
  new Date(clock.now() - (clock.now() % hourMs) - hours * hourMs).toISOString();
const hourly = { schedule: "cron(0 * * * ? *)", timeZone: "Europe/Berlin" };

describe("the registry of jobs", () => {
  it("has a job with a schedule after its first run; a job without one costs nothing and is not in it", async () => {
    await new JobRuns(client, "other").run(slot(0), () => {});
    expect(updates).toBe(2);
    await report(hourly).run(slot(0), () => {});
    expect(await registeredJobs(client)).toEqual([{ job: "daily-report", ...hourly }]);
  });

  it("costs a run 1 request a day", async () => {
    const runs = report(hourly);
    await runs.run(slot(3), () => {});
    expect(updates).toBe(3);
    await runs.run(slot(2), () => {});
    expect(updates).toBe(5);
    await clock.advance(25 * hourMs);
    await runs.run(slot(1), () => {});
    expect(updates).toBe(8);
  });

  it("keeps the latest schedule", async () => {
    await report(hourly).run(slot(2), () => {});
    await report({ schedule: "rate(1 hour)" }).run(slot(1), () => {});
    expect(await registeredJobs(client)).toEqual([
      { job: "daily-report", schedule: "rate(1 hour)", timeZone: undefined },
    ]);
  });

  it("is no reason for a run to fail", async () => {
    const { update } = store;
    store.update = async (request, options) => {
      if (request.key.pk === "leasehold/registry")
        throw Object.assign(new Error("gone"), { code: "ECONNRESET" });
      return await update.call(store, request, options);
    };
    expect(await report(hourly).run(slot(1), () => "done")).toBe("done");
    store.update = update;
    expect(await registeredJobs(client)).toEqual([]);
  });

  it("refuses a schedule that is none, and a time zone without one", () => {
    expect(() => report({ schedule: "cron(0 * * * *)" })).toThrow(/schedule is/);
    expect(() => report({ timeZone: "Europe/Berlin" })).toThrow(/timeZone is/);
    expect(() => report({ schedule: "rate(1 hour)", timeZone: "Mars/Base" })).toThrow(/schedule is/);
  });

  it("lets the command line find jobs and what they have missed without a scan", async () => {
    await report(hourly).run(slot(0), () => {});
    store.scan = () => Promise.reject(new Error("a scan"));
    const listed = await leasehold(["jobs", "--json"], { store, clock });
    expect(JSON.parse(listed.stdout)).toMatchObject([{ job: "daily-report", missed: 23 }]);
    const missed = await leasehold(["jobs", "missed", "daily-report", "--since", "3h", "-o", "key"], {
      store,
      clock,
    });
    expect(missed.stdout).toBe(`${slot(2)}\n${slot(1)}\n`);
  });
});
