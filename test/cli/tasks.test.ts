import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import { leasehold } from "../support/command-line.ts";

let store: MemoryLeaseStore;
let clock: ManualClock;
let tasks: TaskSet;

/** One task in each state: done, sick (parked), bad (cancelled), held (running), new (waiting). */
beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryLeaseStore();
  tasks = new TaskSet(new LeaseClient({ store, clock, owner: "host-1" }), "orders");
  await tasks.add([{ id: "done" }]);
  await (await tasks.claim())?.succeed("4 rows");
  await tasks.add([{ id: "sick" }]);
  await (await tasks.claim())?.fail("the text is missing", { final: true });
  await tasks.add([{ id: "bad" }]);
  await tasks.cancel("bad", "wrong file");
  await tasks.add([{ id: "held" }]);
  await tasks.claim();
  await tasks.add([{ id: "new", payload: { rows: 3 } }]);
});

const call = (args: readonly string[], answers?: readonly string[]) =>
  leasehold(args, { store, clock, ...(answers === undefined ? {} : { answers }) });

describe("leasehold tasks", () => {
  it("counts the tasks of each state, and tells how old the oldest are", async () => {
    await clock.advance(20_000);
    const { code, stdout } = await call(["tasks", "orders"]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      "waiting 1   running 1   succeeded 1   failed 0   parked 1   cancelled 1          oldest waiting 20s, oldest claim 20s\n",
    );
    const json = JSON.parse((await call(["tasks", "orders", "--json"])).stdout);
    expect(json).toMatchObject({ set: "orders", counts: { waiting: 1, parked: 1 } });
  });

  it("ends with 1 for a set without tasks", async () => {
    expect(await call(["tasks", "none"])).toMatchObject({ code: 1, stdout: "none has no tasks\n" });
  });

  it("ls shows them by state and by remark", async () => {
    const { stdout } = await call(["tasks", "ls", "orders", "--state", "parked"]);
    expect(stdout).toMatch(
      /^ID\s+STATE\s+ATTEMPTS\s+OWNER\s+SINCE\s+REMARK\nsick\s+parked\s+1\/3\s+.*the text is missing\n$/,
    );
    const matching = await call(["tasks", "ls", "orders", "--match", "file", "-o", "key"]);
    expect(matching.stdout).toBe("bad\n");
  });
});

it("leaves a trace of each task that is requeued or cancelled", async () => {
  await call(["tasks", "requeue", "orders", "sick", "bad", "--yes", "--reason", "INC-2"]);
  await call(["tasks", "requeue", "orders", "done", "--yes"]);
  await call(["tasks", "drop", "orders", "new", "--yes", "--reason", "INC-3"]);
  const { stdout } = await call(["audit", "orders", "--json"]);
  const traces = JSON.parse(stdout) as readonly Record<string, string>[];
  expect(traces.map(({ action, sortKey, reason }) => [action, sortKey, reason]).sort()).toEqual([
    ["cancel", "done#new", "INC-3"],
    ["requeue", "done#bad", "INC-2"],
    ["requeue", "done#sick", "INC-2"],
  ]);
  expect(traces[0]?.by).toMatch(/^alice@.* \(cli\)$/);
});

describe("leasehold tasks requeue", () => {
  it("asks, and lets those start again that were shown", async () => {
    const args = ["tasks", "requeue", "orders", "--state", "parked", "--match", "missing"];
    expect((await call(args, ["no"])).code).toBe(1);
    const { code, stderr } = await call(args, ["yes"]);
    expect(code).toBe(0);
    expect(stderr).toContain("1 of orders: sick");
    expect(await tasks.get("sick")).toMatchObject({ state: "waiting", attempts: 0 });
  });

  it("leaves those of the same state alone that were not shown", async () => {
    await tasks.cancel("new");
    const others = ["a", "b", "c", "d", "e"];
    for (const id of others) {
      await tasks.add([{ id }]);
      await (await tasks.claim())?.fail("out of paper", { final: true });
    }
    const args = ["tasks", "requeue", "orders", "--state", "parked", "--match", "missing", "--yes"];
    expect((await call(args)).code).toBe(0);
    expect(await tasks.get("sick")).toMatchObject({ state: "waiting" });
    for (const id of others) expect(await tasks.get(id)).toMatchObject({ state: "parked" });
  });

  it("takes ids; a task that has not ended in a bad way stays as it is", async () => {
    const { code, stderr } = await call(["tasks", "requeue", "orders", "bad", "done", "--yes"]);
    expect(code).toBe(1);
    expect(stderr).toContain("done has neither failed");
    expect(await tasks.get("bad")).toMatchObject({ state: "waiting" });
    expect(await tasks.get("done")).toMatchObject({ state: "succeeded" });
  });

  it.each([
    ["reads the tasks", ["--state", "parked"], "list"],
    ["reads them again", ["--state", "parked"], "requeueAll"],
    ["has let the first one start", ["bad", "sick"], "requeue"],
  ] as const)("lets no task start after Ctrl-C, which comes while it %s", async (_, which, method) => {
    const stop = new AbortController();
    const original = TaskSet.prototype[method] as (...args: unknown[]) => unknown;
    const spy = vi.spyOn(TaskSet.prototype, method).mockImplementation(function (
      this: TaskSet,
      ...args: unknown[]
    ) {
      const result = original.apply(this, args);
      stop.abort(new Interruption("SIGINT"));
      return result as never;
    });
    onTestFinished(() => spy.mockRestore());
    const { code } = await leasehold(["tasks", "requeue", "orders", ...which, "--yes"], {
      ...{ store, clock, signal: stop.signal },
    });
    expect(code).toBe(130);
    expect(await tasks.get("sick")).toMatchObject({ state: "parked" });
  });

  it.each([
    ["by their ids", ["bad", "sick"], "1 of 2 wait again."],
    ["by their state", ["--state", "parked"], "1 of 2 wait again."],
    ["by their state, and cannot look", ["--state", "parked"], "Some of 2 may wait again."],
  ])("says how many wait again where the service fails half-way: %s", async (what, which, said) => {
    await tasks.add([{ id: "ill" }]);
    await (await tasks.claim())?.fail("no", { final: true });
    const failure = new LeaseServiceError("LEASE_THROTTLED", "throttled");
    const { requeue } = TaskSet.prototype;
    vi.spyOn(TaskSet.prototype, "requeue").mockResolvedValueOnce(true).mockRejectedValueOnce(failure);
    vi.spyOn(TaskSet.prototype, "requeueAll").mockImplementation(async function (this: TaskSet) {
      await requeue.call(this, "sick");
      if (what.endsWith("look")) vi.spyOn(store, "query").mockRejectedValue(failure);
      throw failure;
    });
    const { code, stderr } = await call(["tasks", "requeue", "orders", ...which, "--yes"]);
    expect([code, stderr]).toEqual([69, expect.stringContaining(said)]);
  });

  it("finds out where there is nothing", async () => {
    expect((await call(["tasks", "requeue", "orders", "--state", "failed", "--yes"])).code).toBe(1);
  });
});

describe("leasehold tasks drop", () => {
  it("cancels a task that waits", async () => {
    const args = ["tasks", "drop", "orders", "new", "--reason", "INC-1"];
    expect((await call(args, ["n"])).code).toBe(1);
    expect((await call(args, ["y"])).code).toBe(0);
    expect(await tasks.get("new")).toMatchObject({ state: "cancelled", remark: "INC-1" });
  });

  it("refuses one that runs (75), has ended (1) or is not known (1)", async () => {
    const code = async (id: string) => (await call(["tasks", "drop", "orders", id, "--yes"])).code;
    expect([await code("held"), await code("done"), await code("other")]).toEqual([75, 1, 1]);
  });
});

describe("leasehold tasks add", () => {
  const add = (input: string) => leasehold(["tasks", "add", "orders"], { store, clock, input });

  it("adds a task for each line, and knows those that are there", async () => {
    const lines = ['{"id":"a","payload":{"n":1}}', "", '{"id":"new"}', '{"id":"b","maxAttempts":5}', ""].join(
      "\n",
    );
    expect(await add(lines)).toEqual({ code: 0, stdout: "2 added, 1 known before\n", stderr: "" });
    expect(await tasks.get("a")).toMatchObject({ payload: { n: 1 }, maxAttempts: 3 });
    expect(await tasks.get("b")).toMatchObject({ maxAttempts: 5 });
  });

  it("names the line that is no task", async () => {
    const { code, stderr } = await add('{"id":"a"}\nb\n');
    expect(code).toBe(64);
    expect(stderr).toContain("line 2 is b; allowed");
  });
});
