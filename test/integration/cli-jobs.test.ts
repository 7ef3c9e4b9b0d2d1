// `leasehold jobs run`, `jobs backfill` and `tasks work` with the commands that they run.

import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { type CliProcess, cliOnTable } from "../support/cli-process.ts";
import { eventually } from "../support/patience.ts";

const cli = cliOnTable();
const hourMs = 3_600_000;
let key: string;

beforeEach(() => {
  key = cli.table.newKey();
});

const leasehold = (...args: string[]): CliProcess => cli.call(args);

const thisHour = Math.floor(Date.now() / hourMs);

/** The full hour, so many hours before this test began. */
function slotAgo(hours: number): string {
  return new Date((thisHour - hours) * hourMs).toISOString();
}

describe("leasehold jobs run", () => {
  it("runs a slot by a command, whose exit code decides, and is the call's own", async () => {
    const runs = new JobRuns(cli.table.client(), key);
    const slot = slotAgo(2);
    const failed = leasehold("jobs", "run", key, "--slot", slot, "--", "sh", "-c", "exit 3");
    expect(await failed.ended).toBe(3);
    expect(await runs.get(slot)).toMatchObject({
      state: "failed",
      attempt: 1,
      remark: "the command exited 3",
    });
    const script = 'echo "$LEASEHOLD_KEY $LEASEHOLD_SLOT $LEASEHOLD_ATTEMPT"';
    const retried = leasehold("jobs", "run", key, "--slot", slot, "--", "sh", "-c", script);
    expect(await retried.ended).toBe(0);
    expect(retried.stdout).toBe(`${key} ${slot} 2\n`);
    expect(await runs.get(slot)).toMatchObject({ state: "succeeded", attempt: 2 });

    const done = leasehold("jobs", "run", key, "--slot", slot, "--", "false");
    expect(await done.ended).toBe(0);
    expect(done.stderr).toContain("is succeeded already");
    const again = leasehold("jobs", "run", key, "--slot", slot, "--yes", "--again", "--", "true");
    expect(await again.ended).toBe(0);
    expect(await runs.get(slot)).toMatchObject({ state: "succeeded", attempt: 3 });
  });

  it("runs the slot that is due once, on however many hosts, and registers the job", async () => {
    const line = ["jobs", "run", key, "--schedule", "rate(1 day)", "--skip-ok", "--", "sh", "-c"];
    const script =
      'sleep 0.3; echo "$LEASEHOLD_KEY $LEASEHOLD_SLOT $LEASEHOLD_TABLE_NAME $LEASEHOLD_FENCING_TOKEN"';
    const hosts = Array.from({ length: 3 }, () => leasehold(...line, script));
    expect(await Promise.all(hosts.map((host) => host.ended))).toEqual([0, 0, 0]);
    const slot = new Date(Math.floor(Date.now() / 86_400_000) * 86_400_000).toISOString();
    const run = await new JobRuns(cli.table.client(), key).get(slot);
    expect(run).toMatchObject({ state: "succeeded", attempt: 1 });
    const told = `${key} ${slot} ${cli.table.tableName} ${run?.fencingToken}\n`;
    expect(hosts.map((host) => host.stdout).toSorted()).toEqual(["", "", told]);
    const winner = hosts.find((host) => host.stdout !== "");
    expect(winner?.stderr).toBe("");
    // The registered schedule is enough from now on.
    const later = leasehold("jobs", "run", key, "--", "false");
    expect(await later.ended).toBe(0);
    expect(later.stderr).toContain("is succeeded already");
    const missed = leasehold("jobs", "missed", key, "--since", "3d", "-o", "key");
    expect(await missed.ended).toBe(0);
    expect(missed.stdout.trim().split("\n")).toHaveLength(2);
  });

  it("waits for another process's run with --wait, and takes over where that has failed", async () => {
    const slot = slotAgo(2);
    const script = "echo begun; read line; exit 9";
    const first = leasehold("jobs", "run", key, "--slot", slot, "--", "sh", "-c", script);
    await eventually(() => expect(first.stdout).toContain("begun"));
    const refused = leasehold("jobs", "run", key, "--slot", slot, "--", "true");
    expect(await refused.ended).toBe(75);
    expect(refused.stderr).toContain("--wait DUR waits for its end");
    const second = leasehold("jobs", "run", key, "--slot", slot, "--wait", "30s", "--", "true");
    first.process.stdin.write("end\n");
    expect(await first.ended).toBe(9);
    expect(first.stderr).toContain("the command exited 9");
    expect(await second.ended).toBe(0);
    expect((await new JobRuns(cli.table.client(), key).get(slot))?.attempts).toMatchObject([
      { attempt: 1, state: "failed", remark: "the command exited 9" },
      { attempt: 2, state: "succeeded" },
    ]);
  });

  it("says what is missing where --invoke cannot be done", async () => {
    const call = leasehold("jobs", "run", key, "--slot", slotAgo(2), "--invoke", "report");
    // Bundled into the temporary folder, it finds no package of the repository.
    expect(await call.ended).toBe(78);
    expect(call.stderr).toContain("--invoke needs @aws-sdk/client-lambda: npm install");
  });
});

describe("leasehold jobs backfill", () => {
  const schedule = ["--schedule", "rate(1 hour)", "--since", slotAgo(4), "--until", slotAgo(0)];

  it("runs what was missed, oldest first; what fails is said, and what is done is not run again", async () => {
    const script = `echo "$LEASEHOLD_SLOT"; [ "$LEASEHOLD_SLOT" != "${slotAgo(2)}" ]`;
    const call = leasehold("jobs", "backfill", key, ...schedule, "--yes", "--", "sh", "-c", script);
    expect(await call.ended).toBe(1);
    expect(call.stdout).toBe([4, 3, 2, 1].map((hours) => `${slotAgo(hours)}\n`).join(""));
    expect(call.stderr).toContain("the command exited 1");
    expect(call.stderr).toContain("3 succeeded, 1 failed, 0 left");
    const again = leasehold("jobs", "backfill", key, ...schedule, "--yes", "--", "sh", "-c", "exit 0");
    expect(await again.ended).toBe(0);
    expect(again.stderr).toContain("1 succeeded, 0 failed");
  });

  it("ends with the slot that runs when it is interrupted", async () => {
    const script = "trap 'exit 1' TERM; echo ready; while :; do sleep 0.05; done";
    const call = leasehold("jobs", "backfill", key, ...schedule, "--yes", "--", "sh", "-c", script);
    await eventually(() => expect(call.stdout).toContain("ready"));
    call.process.kill("SIGTERM");
    expect(await call.ended).toBe(143);
    expect(call.stdout).toBe("ready\n");
  });
});

describe("leasehold tasks work", () => {
  it("runs a command for each task: payload on stdin, the last line is the remark, the exit code decides", async () => {
    const tasks = new TaskSet(cli.table.client(), key, { maxAttempts: 1 });
    await tasks.add([
      { id: "good", payload: { rows: 3 } },
      { id: "bad", payload: 1 },
      { id: "hopeless", payload: 2 },
    ]);
    const script = `
      echo "working on $LEASEHOLD_TASK_ID"; cat
      case $LEASEHOLD_TASK_ID in bad) exit 1 ;; hopeless) exit 65 ;; esac`;
    const flags = ["--concurrency", "2", "--park-exit", "65", "--json"];
    const call = leasehold("tasks", "work", key, ...flags, "--", "sh", "-c", script);
    expect(await call.ended).toBe(1);
    expect(JSON.parse(call.stdout)).toMatchObject({ succeeded: 1, failed: 1, parked: 1 });
    expect(call.stderr).toContain("good: working on good\n");
    expect(await tasks.get("good")).toMatchObject({ state: "succeeded", remark: '{"rows":3}' });
    expect((await tasks.get("bad"))?.remark).toContain("the command exited 1: 1");
    expect((await tasks.get("hopeless"))?.state).toBe("parked");
  });

  it("passes a signal on to all children, gives their tasks back, and claims no more", async () => {
    const tasks = new TaskSet(cli.table.client(), key);
    await tasks.add(["a", "b", "c"].map((id) => ({ id })));
    const script = "trap 'exit 1' INT; echo ready; while :; do sleep 0.05; done";
    const call = leasehold("tasks", "work", key, "--concurrency", "2", "--", "sh", "-c", script);
    await eventually(() => expect(call.stderr.match(/ready/g)).toHaveLength(2));
    call.process.kill("SIGINT");
    expect(await call.ended).toBe(130);
    expect(await tasks.counts()).toMatchObject({ waiting: 3, running: 0 });
    for await (const task of tasks.list()) expect(task.attempts).toBe(0);
  });
});
