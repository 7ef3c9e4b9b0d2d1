/** How commands that run a child end: by a signal, by --max, and what the table says then. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import tty from "node:tty";
import { runCommandLine } from "@leasehold/cli";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { connect } from "../../packages/cli/src/connection.ts";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import { globalFlags, parseFlags } from "../../packages/cli/src/flags.ts";
import { Child } from "../../packages/cli/src/work/child.ts";
import { adminOf } from "../support/admin.ts";
import { leasehold } from "../support/command-line.ts";
import { eventually } from "../support/patience.ts";
import { signals, stubChild } from "../support/stub-child.ts";
import { collectUncaught } from "../support/uncaught.ts";

const env = { PATH: process.env.PATH };
const slot = "2025-12-31T08:00:00.000Z";
let store: MemoryLeaseStore;
let clock: ManualClock;
let client: LeaseClient;

beforeEach(() => {
  [store, clock] = [new MemoryLeaseStore(), new ManualClock()];
  client = new LeaseClient({ store, clock, owner: "another" });
});

/** A call whose child has started, and ends with this code as soon as it gets a signal. */
async function begun(line: string, code: number) {
  const { got, started } = stubChild(code);
  const { onRedirect, send } = signals();
  const called = leasehold(line.split(" "), { store, clock, env, onRedirect });
  await started();
  return { called, got, send };
}

describe("leasehold tasks work --max", () => {
  it("counts a child as failed that was stopped, though it ends with 0", async () => {
    const tasks = new TaskSet(client, "orders", { maxAttempts: 1 });
    await tasks.add([{ id: "1" }]);
    const { called, got } = await begun("tasks work orders --max 5s -- true", 0);
    await clock.advance(5_000);
    expect((await called).code).toBe(1);
    expect(got[0]).toBe("SIGTERM");
    expect(await tasks.get("1")).toMatchObject({ state: "failed" });
  });
});

describe("leasehold tasks work", () => {
  it("keeps the first thousand characters of a longer remark", async () => {
    const tasks = new TaskSet(client, "orders");
    await tasks.add([{ id: "1" }]);
    const program = 'console.log("x".repeat(5_000))';
    const called = leasehold(["tasks", "work", "orders", "--", process.execPath, "-e", program], {
      store,
      env,
    });
    expect((await called).code).toBe(0);
    expect(await tasks.get("1")).toMatchObject({ state: "succeeded", remark: "x".repeat(1_000) });
  });
});

it("leasehold tasks work tells the first megabyte of a line that has no end", async () => {
  const tasks = new TaskSet(client, "orders");
  await tasks.add([{ id: "1" }]);
  const program = 'process.stdout.write("x".repeat(4_000_000))';
  const args = ["tasks", "work", "orders", "--", process.execPath, "-e", program];
  const { code, stderr } = await leasehold(args, { store, env });
  expect(code).toBe(0);
  expect(stderr.length).toBeGreaterThan(1_000_000);
  expect(stderr.length).toBeLessThan(1_100_000);
  expect((await tasks.get("1"))?.remark).toBe("x".repeat(1_000));
});

describe("leasehold tasks work at a terminal", () => {
  it.each(["SIGINT", "SIGTERM"] as const)(
    "waits after %s for nothing that its child has left behind",
    async (name) => {
      const isatty = vi.spyOn(tty, "isatty").mockReturnValue(true);
      syncBuiltinESMExports();
      onTestFinished(() => {
        isatty.mockRestore();
        syncBuiltinESMExports();
      });
      const folder = await mkdtemp(join(tmpdir(), "leasehold-left-"));
      const file = join(folder, "pid");
      onTestFinished(async () => {
        process.kill(Number(await readFile(file, "utf8")), "SIGKILL");
        await rm(folder, { recursive: true });
      });
      const start = vi.spyOn(Child, "start");
      onTestFinished(() => start.mockRestore());
      const tasks = new TaskSet(client, "orders");
      await tasks.add([{ id: "1" }]);
      const { onRedirect, send } = signals();
      const program = `sleep 600 2> /dev/null & echo $! > ${file}; exit 3`;
      const args = ["tasks", "work", "orders", "--", "sh", "-c", program];
      const called = leasehold(args, { store, env, onRedirect });
      await eventually(() => expect(start).toHaveBeenCalled());
      const child = await (start.mock.results[0]?.value as Promise<Child>);
      await child.ended;
      let code: number | undefined;
      void called.then((end) => {
        code = end.code;
      });
      // As a person does who waits.
      await eventually(() => {
        send(name);
        expect(code).toBe(128 + constants.signals[name]);
      });
      expect(await tasks.get("1")).toMatchObject({ state: "waiting", attempts: 0 });
    },
  );
});

describe("leasehold jobs run", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("that %s ends exits %i, whatever code its child ends with", async (name, code) => {
    const { called, got, send } = await begun(`jobs run report --slot ${slot} -- true`, 3);
    send(name);
    expect((await called).code).toBe(code);
    expect(got).toEqual([name]);
    expect(await new JobRuns(client, "report").get(slot)).toMatchObject({ state: "failed" });
  });

  it("that loses its lease stops its command, and exits 76", async () => {
    const { called, got } = await begun(`jobs run report --slot ${slot} --lease 10s -- true`, 1);
    const [{ token = "" } = {}] = await adminOf(client).inspectAll("report");
    await adminOf(client).forceRelease("report", { sortKey: `run#${slot}`, token });
    await clock.advance(10_000);
    const { code, stderr } = await called;
    expect([code, got[0], stderr]).toEqual([76, "SIGTERM", expect.stringContaining("LOST report")]);
    expect(await new JobRuns(client, "report").get(slot)).toMatchObject({ state: "lost" });
  });

  it("opens a slot that has succeeded with the reason that was given", async () => {
    await new JobRuns(client, "report").run(slot, () => undefined);
    const { started } = stubChild(3);
    const update = vi.spyOn(store, "update");
    const again = ["--yes", "--again", "--reason", "INC-7: wrong data"];
    const args = ["jobs", "run", "report", "--slot", slot, ...again, "--max", "1s", "--", "true"];
    const called = leasehold(args, { store, clock, env });
    await started();
    await clock.advance(1_000);
    expect((await called).code).toBe(124);
    const written = update.mock.calls.map(([request]) => request);
    expect(JSON.stringify(written)).toContain("INC-7: wrong data");
  });

  it.each([0, 3])("exits 124 after --max, whatever code its child ends with: %i", async (code) => {
    const { called } = await begun(`jobs run report --slot ${slot} --max 1s -- true`, code);
    await clock.advance(1_000);
    expect((await called).code).toBe(124);
    expect(await new JobRuns(client, "report").get(slot)).toMatchObject({
      state: "failed",
      remark: `it ran for longer than --max, and the command exited ${code}`,
    });
  });
});

describe("leasehold run", () => {
  it("tells of a lease that was broken while its child ran, though nothing has told the child", async () => {
    const { called, got, send } = await begun("run k -- true", 0);
    const { token = "" } = (await client.inspect("k")) ?? {};
    expect(await adminOf(client).forceRelease("k", { token })).toBe(true);
    send("SIGUSR1");
    const { code, stderr } = await called;
    expect(got).toEqual(["SIGUSR1"]);
    expect(code).toBe(76);
    expect(stderr).toContain("LOST k: it was broken or taken while the child ran");
  });

  it("goes on when its messages cannot be written any more: it tells its child of a loss, and ends with 76", async () => {
    const uncaught = collectUncaught();
    const { started, got } = stubChild(1);
    const stderr = new Writable({ write: (_chunk, _encoding, done) => done(new Error("write EPIPE")) });
    const called = runCommandLine(["run", "k", "--verbose", "--", "true"], {
      ...{ stdin: new PassThrough(), stdout: new PassThrough(), stderr },
      env: { ...env, LEASEHOLD_TABLE_NAME: store.tableName },
      clock,
      open: async () => store,
      signals: { signal: new AbortController().signal, redirect: () => () => {} },
    });
    await started();
    const { token = "" } = (await client.inspect("k")) ?? {};
    await adminOf(client).forceRelease("k", { token });
    await clock.advance(30_000);
    expect(await called).toBe(76);
    expect(got[0]).toBe("SIGTERM");
    expect(uncaught).toEqual([]);
  });
});

describe("--invoke", () => {
  const line = ["jobs", "run", "report", "--slot", slot, "--invoke"];
  const asked: string[] = [];

  /** In place of the AWS SDK's: the function `report` runs its slot as its code would, `idle` does not, `broken` fails, `slow` never ends. */
  class LambdaClient {
    async send(
      { FunctionName, Payload }: { readonly FunctionName: string; readonly Payload: Buffer },
      { abortSignal }: { readonly abortSignal: AbortSignal },
    ): Promise<object> {
      const { scheduledTime } = JSON.parse(Payload.toString());
      asked.push(`${FunctionName} ${scheduledTime}`);
      if (FunctionName === "broken") {
        const error = { errorType: "TypeError", errorMessage: "rows is not iterable" };
        return { FunctionError: "Unhandled", Payload: Buffer.from(JSON.stringify(error)) };
      }
      if (FunctionName === "slow") {
        return await new Promise((_, reject) => {
          abortSignal.addEventListener("abort", () => reject(abortSignal.reason));
        });
      }
      if (FunctionName === "report") await new JobRuns(client, "report").run(scheduledTime, () => undefined);
      return { StatusCode: 200 };
    }
  }

  beforeEach(() => {
    asked.length = 0;
    // A command is its input.
    vi.doMock("@aws-sdk/client-lambda", () => ({ InvokeCommand: Object, LambdaClient }));
    onTestFinished(() => void vi.doUnmock("@aws-sdk/client-lambda"));
  });

  it("calls the function with the slot, or with each missed one, and tells what became of the run", async () => {
    const broken = await leasehold([...line, "broken"], { store, clock, env });
    expect([broken.code, broken.stderr]).toEqual([
      1,
      expect.stringContaining("TypeError: rows is not iterable; the run is not recorded."),
    ]);
    expect((await leasehold([...line, "idle"], { store, clock, env })).code).toBe(1);
    expect((await leasehold([...line, "report"], { store, clock, env })).code).toBe(0);
    const range = [
      "--schedule",
      "rate(1 hour)",
      "--since",
      "2025-12-31T07:00Z",
      "--until",
      "2025-12-31T10:00Z",
    ];
    const backfill = ["jobs", "backfill", "report", ...range, "--yes", "--invoke", "report"];
    expect((await leasehold(backfill, { store, clock, env })).code).toBe(0);
    expect(asked).toEqual([
      ...["broken", "idle", "report"].map((name) => `${name} ${slot}`),
      "report 2025-12-31T07:00:00.000Z",
      "report 2025-12-31T09:00:00.000Z",
    ]);
  });

  it("waits for the function no longer when a signal ends it", async () => {
    const stop = new AbortController();
    const called = leasehold([...line, "slow"], { store, env, signal: stop.signal });
    await eventually(() => expect(asked).toHaveLength(1));
    stop.abort(new Interruption("SIGTERM"));
    expect((await called).code).toBe(143);
  });

  it("calls no function when a signal has ended it before", async () => {
    const signal = AbortSignal.abort(new Interruption("SIGTERM"));
    expect((await leasehold([...line, "report"], { store, env, signal })).code).toBe(143);
    expect(asked).toEqual([]);
  });
});

describe("--timeout", () => {
  it.each([
    ["ls", "scan"],
    ["get", "query"],
  ] as const)("ends %s where a %s hangs", async (command, operation) => {
    const hang = (_: unknown, { signal }: { readonly signal: AbortSignal }): Promise<never> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    store[operation] = hang;
    const args = [command, ...(command === "get" ? ["k"] : []), "--timeout", "20ms"];
    // The clock of its own time limits stands still.
    expect((await leasehold(args, { store, clock, env })).code).not.toBe(0);
  });

  it.each(["30d", "400d"])("may be longer than a timer can last: %s", async (timeout) => {
    const scan = store.scan.bind(store);
    store.scan = async (request, options) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      options.signal.throwIfAborted();
      return await scan(request, options);
    };
    expect((await leasehold(["ls", "--timeout", timeout], { store, clock, env })).code).toBe(0);
  });
});

it.each([
  "ls",
  "get k",
  "stop k",
  "wait k",
  "audit",
  "audit k",
  "history k",
  "tasks orders",
  "tasks ls orders",
  "tasks requeue orders --state failed",
  "jobs",
  "jobs report",
  "jobs runs report",
  `jobs show report ${slot}`,
  "jobs missed report",
  "tasks drop orders 1",
  `jobs skip report ${slot}`,
  "jobs backfill report --dry-run",
  "jobs run report -- true",
  `jobs run report --slot ${slot} --again -- true`,
  "run k -- true",
  "run k --mixed-ok --slot day -- true",
  "acquire k",
  "conformance",
])("%s ends at once at Ctrl-C, also where the service hangs", async (line) => {
  const stop = new AbortController();
  const hang = vi.fn(() => new Promise<never>(() => undefined));
  Object.assign(store, { get: hang, scan: hang, query: hang });
  const called = leasehold(line.split(" "), { store, clock, env, signal: stop.signal });
  await eventually(() => expect(hang).toHaveBeenCalled());
  stop.abort(new Interruption("SIGINT"));
  expect(await called).toEqual({ code: 130, stdout: "", stderr: "" });
});

it("Ctrl-C ends no read after a write: what is written may have to be put in order", async () => {
  const stop = new AbortController();
  const { values } = parseFlags(["-t", "leases"], globalFlags, {});
  const terms = {
    env,
    clock,
    signal: stop.signal,
    open: async () => store,
    by: "alice",
    printDryRun: undefined,
  };
  const written = await connect(values, terms);
  const { token } = await written.client.acquire("k");
  const answer = Promise.withResolvers<void>();
  const get = store.get.bind(store);
  store.get = async (...call) => {
    await answer.promise;
    return await get(...call);
  };
  const unwritten = await connect(values, terms);
  const [before, after] = [unwritten.client.inspect("k"), written.client.inspect("k")];
  const reason = new Interruption("SIGINT");
  stop.abort(reason);
  await expect(before).rejects.toBe(reason);
  answer.resolve();
  expect(await after).toMatchObject({ token });
});

it.each([
  ["run", ["run", "k", "--", "true"]],
  ["tasks work", ["tasks", "work", "orders", "--", "true"]],
])("%s gives the signals back when its child has ended", async (_, args) => {
  await new TaskSet(client, "orders").add([{ id: "1" }]);
  const { got, started } = stubChild(0);
  const listeners = new Set<(name: NodeJS.Signals) => void>();
  const onRedirect = (listener: (name: NodeJS.Signals) => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const called = leasehold(args, { store, clock, env, onRedirect });
  await started();
  expect(listeners.size).toBe(1);
  for (const listener of listeners) listener("SIGUSR1");
  expect((await called).code).toBe(0);
  expect(got).toEqual(["SIGUSR1"]);
  expect(listeners.size).toBe(0);
});
