import { LambdaClient } from "@aws-sdk/client-lambda";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns } from "@leasehold/jobs";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { dueSlot } from "../../packages/cli/src/jobs/job-flags.ts";
import { leasehold } from "../support/command-line.ts";

const now = Date.parse("2026-11-21T12:30:00.000Z");
let store: MemoryLeaseStore;
let clock: ManualClock;
let runs: JobRuns;

/** Slots of the morning: 8 has succeeded, 9 is exhausted, 10 was never begun, 11 was skipped, 12 has failed once. */
beforeEach(async () => {
  clock = new ManualClock(now);
  store = new MemoryLeaseStore();
  runs = new JobRuns(new LeaseClient({ store, clock, owner: "host-1" }), "daily-report");
  const fail = (): never => {
    throw new TypeError("rows is not iterable");
  };
  await runs.run("2026-11-21T08:00:00.000Z", ({ remark }) => remark("10 pages"));
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await runs
      .run("2026-11-21T09:00:00.000Z", ({ progress }) => {
        progress({ page: 4 });
        fail();
      })
      .catch(() => {});
  }
  await runs.skip("2026-11-21T11:00:00.000Z", "holiday");
  await runs.run("2026-11-21T12:00:00.000Z", fail).catch(() => {});
});

const call = (args: readonly string[], answers?: readonly string[]) =>
  leasehold(args, { store, clock, ...(answers === undefined ? {} : { answers }) });

describe("leasehold jobs", () => {
  it("finds the jobs of the table, and tells how they do", async () => {
    const { code, stdout } = await call(["jobs", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([
      {
        job: "daily-report",
        lastRun: { slot: "2026-11-21T12:00:00.000Z", state: "failed" },
        lastSuccess: { slot: "2026-11-21T08:00:00.000Z" },
        last24h: { succeeded: 1, failed: 2, exhausted: 1, skipped: 1, lost: 0, running: 0 },
      },
    ]);
  });

  it("counts what was missed by a schedule", async () => {
    const { stdout } = await call(["jobs", "daily-report", "--schedule", "cron(0 8-12 * * ? *)", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([{ missed: 3 }]);
  });

  it("ends with 1 and --fail-if-empty where there is none", async () => {
    const { code, stdout } = await leasehold(["jobs", "--fail-if-empty"], {
      store: new MemoryLeaseStore(),
      clock,
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });
});

describe("leasehold jobs runs and show", () => {
  it("show the latest first, with remarks and progress", async () => {
    const { stdout } = await call(["jobs", "runs", "daily-report"]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => line.split(/\s{2,}/).slice(0, 3))).toEqual([
      ["SLOT (UTC)", "STATE", "ATTEMPT"],
      ["2026-11-21 12:00", "failed", "1/3"],
      ["2026-11-21 11:00", "skipped", "0/3"],
      ["2026-11-21 09:00", "EXHAUSTED", "3/3"],
      ["2026-11-21 08:00", "succeeded", "1/3"],
    ]);
    expect(lines[3]).toContain('TypeError: rows is not iterable  {"page":4}');
  });

  it.each([
    [["--state", "failed,lost"], 0, ["12", "09"]],
    [["--since", "1h"], 0, ["12"]],
    [["--since", "10m", "--fail-if-empty"], 1, []],
  ])("select by %j", async (flags, code, hours) => {
    const stdout = hours.map((hour) => `2026-11-21T${hour}:00:00.000Z\n`).join("");
    const called = await call(["jobs", "runs", "daily-report", "-o", "key", ...flags]);
    expect(called).toMatchObject({ code, stdout });
  });

  it("show one run; 1 where there is none", async () => {
    const { code, stdout } = await call(["jobs", "show", "daily-report", "2026-11-21T09:00Z"]);
    expect(code).toBe(0);
    expect(stdout).toContain("2026-11-21 09:00 UTC  EXHAUSTED");
    expect(stdout).toMatch(/attempt\s+3 of 3 \(0 lost\)/);
    for (const attempt of [1, 2]) {
      const line = `attempt ${attempt} +failed · .* · 2026-11-21 .* UTC, 0ms · TypeError: rows is not iterable`;
      expect(stdout.replaceAll(/\s+/g, " ")).toMatch(new RegExp(line));
    }
    expect((await call(["jobs", "show", "daily-report", "2026-11-21T10:00Z"])).code).toBe(1);
  });
});

describe("leasehold jobs missed", () => {
  it("lists what was due and not done", async () => {
    const flags = ["--schedule", "cron(0 8-12 * * ? *)", "--since", "2026-11-21"];
    const { stdout } = await call(["jobs", "missed", "daily-report", ...flags]);
    expect(stdout.split("\n").map((line) => line.split(/\s{2,}/).slice(0, 2))).toEqual([
      ["SLOT (UTC)", "STATE"],
      ["2026-11-21 09:00", "EXHAUSTED"],
      ["2026-11-21 10:00", "never begun"],
      ["2026-11-21 12:00", "failed"],
      [""],
    ]);
  });

  it("counts in the schedule's time zone", async () => {
    const flags = ["--schedule", "cron(0 11 * * ? *)", "--tz", "Europe/Berlin", "--since", "2026-11-21"];
    const { stdout } = await call(["jobs", "missed", "daily-report", ...flags, "-o", "key"]);
    expect(stdout).toBe("2026-11-21T10:00:00.000Z\n");
  });

  it("wants a schedule, and says what is wrong with one", async () => {
    expect((await call(["jobs", "missed", "daily-report"])).code).toBe(64);
    const { code, stderr } = await call(["jobs", "missed", "daily-report", "--schedule", "cron(0 8 * * *)"]);
    expect(code).toBe(64);
    expect(stderr).toContain("cron(0 8 * * *)");
    expect(stderr).toContain("write cron(0 8 * * ? *)");
  });
});

describe("leasehold jobs skip", () => {
  it("asks, records that the slot is not to run, and leaves a trace of who has skipped it", async () => {
    const args = ["jobs", "skip", "daily-report", "2026-11-21T12:00Z", "--reason", "holiday"];
    expect((await call(args, ["n"])).code).toBe(1);
    expect(await runs.get("2026-11-21T12:00:00.000Z")).toMatchObject({ state: "failed" });
    const { code, stderr } = await call(args, ["y"]);
    expect(code).toBe(0);
    expect(stderr).toContain("2026-11-21 12:00 UTC of daily-report: failed.");
    expect(await runs.get("2026-11-21T12:00:00.000Z")).toMatchObject({ state: "skipped", remark: "holiday" });
    const { stdout } = await call(["audit", "daily-report", "--action", "skip", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([
      { action: "skip", sortKey: "run#2026-11-21T12:00:00.000Z", reason: "holiday" },
    ]);
    expect(JSON.parse(stdout)[0].by).toMatch(/^alice@.* \(cli\)$/);
  });

  it("refuses a slot that has succeeded", async () => {
    expect((await call(["jobs", "skip", "daily-report", "2026-11-21T08:00Z", "--yes"])).code).toBe(80);
  });
});

describe("leasehold jobs run and backfill", () => {
  it("say what is needed before anything is run", async () => {
    const slot = "2026-11-21T09:00Z";
    const path = { store, clock, env: { PATH: process.env.PATH } };
    const exhausted = await leasehold(["jobs", "run", "daily-report", "--slot", slot, "--", "true"], path);
    expect(exhausted.code).toBe(1);
    expect(exhausted.stderr).toContain("--max-attempts 4 allows another");
    const another = ["jobs", "run", "daily-report", "--slot", slot, "--max-attempts", "4", "--", "true"];
    expect((await leasehold(another, path)).code).toBe(0);
    for (const flags of [[], ["--schedule", "cron(0 8 * * *)"]]) {
      const { code } = await leasehold(["jobs", "run", "unknown", ...flags, "--", "true"], path);
      expect(code).toBe(64);
    }
  });

  it("backfill --dry-run lists the slots that it would run", async () => {
    const flags = ["--schedule", "cron(0 8-12 * * ? *)", "--since", "2026-11-21", "--dry-run"];
    const { code, stdout } = await call(["jobs", "backfill", "daily-report", ...flags]);
    expect(code).toBe(0);
    expect(stdout).toBe("2026-11-21T10:00:00.000Z\n2026-11-21T12:00:00.000Z\n");
  });

  it("run --invoke --dry-run prints the call of the function, and does not send it", async () => {
    const send = vi.spyOn(LambdaClient.prototype, "send").mockRejectedValue(new Error("it was sent"));
    onTestFinished(() => send.mockRestore());
    const args = ["jobs", "run", "daily-report", "--slot", "2026-11-21T10:00Z", "--invoke", "report"];
    const { code, stdout } = await call([...args, "--dry-run"]);
    expect(send).not.toHaveBeenCalled();
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      {
        operation: "Invoke",
        request: { FunctionName: "report", Payload: { scheduledTime: "2026-11-21T10:00:00.000Z" } },
      },
    ]);
  });

  it.each(["2026-02-30T08:00Z", "2026-06-31T23:00-05:00"])(
    "refuse a day that no month has: %s",
    async (slot) => {
      const refused = { code: 64, stdout: "", stderr: expect.stringContaining(slot) };
      expect(await call(["jobs", "skip", "daily-report", slot, "--yes"])).toMatchObject(refused);
      expect(await call(["jobs", "runs", "daily-report", "--since", slot])).toMatchObject(refused);
    },
  );
});

describe("the slot that is due", () => {
  const at = Date.parse("2026-11-22T02:07:41.000Z");
  it.each([
    ["rate(1 minute)", undefined, "2026-11-22T02:07:00.000Z"],
    ["cron(0 2 * * ? *)", undefined, "2026-11-22T02:00:00.000Z"],
    ["cron(0 3 * * ? *)", undefined, "2026-11-21T03:00:00.000Z"],
    ["cron(0 3 * * ? *)", "Europe/Berlin", "2026-11-22T02:00:00.000Z"],
    ["cron(0 3 1 * ? *)", undefined, "2026-11-01T03:00:00.000Z"],
    ["at(2026-11-22T02:07:41)", undefined, "2026-11-22T02:07:41.000Z"],
  ])("of %s in %s is the latest: %s", (schedule, timeZone, slot) => {
    expect(dueSlot({ schedule, timeZone }, at)).toBe(slot);
  });

  it("is refused where none was due for as long as runs are kept", () => {
    const yearly = { schedule: "cron(0 3 1 1 ? *)", timeZone: undefined };
    expect(() => dueSlot(yearly, at)).toThrow("no slot of cron(0 3 1 1 ? *) was due in the last 30d");
    expect(dueSlot(yearly, at, 366 * 86_400_000)).toBe("2026-01-01T03:00:00.000Z");
  });
});
