// @module-tag long
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { RuntimeClosedError } from "../../tools/local/src/lambda/errors.ts";
import { LambdaRuntime } from "../../tools/local/src/lambda/runtime.ts";
import type {
  FunctionDefinition,
  LambdaEvent,
  LambdaLogLine,
  LambdaRuntimeOptions,
} from "../../tools/local/src/lambda/types.ts";
import { eventually } from "../support/patience.ts";
import { sampleFunction } from "./fixtures/lambda/functions.ts";

const folder = (name: string): string => fileURLToPath(new URL(`./fixtures/lambda/${name}`, import.meta.url));

async function startLambda(options: LambdaRuntimeOptions = {}) {
  const logs: LambdaLogLine[] = [];
  const events: LambdaEvent[] = [];
  const lambda = await LambdaRuntime.start({
    onLog: (line) => logs.push(line),
    onEvent: (event) => events.push(event),
    ...options,
  });
  onTestFinished(() => lambda.close());
  const define = (name: string, handler: string, more: Partial<FunctionDefinition> = {}): void =>
    lambda.define(sampleFunction(name, handler, more));
  /** Waits until an invocation of the function is under way, and gives its environment. */
  const underWay = async (name: string) =>
    eventually(() => {
      const found = lambda.environments(name).find(({ state }) => state === "busy");
      if (found?.pid === undefined) throw new Error(`no invocation of ${name} is under way`);
      return { id: found.id, pid: found.pid };
    });
  const types = (name: string): string[] =>
    events.filter(({ functionName }) => functionName === name).map(({ type }) => type);
  return { lambda, define, logs, events, types, underWay };
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

interface Echo {
  readonly event: unknown;
  readonly context: Record<string, unknown>;
  readonly pid: number;
  readonly invocation: number;
}
interface Gap {
  readonly pid: number;
  readonly widestGapMs: number;
}

describe("an invocation", () => {
  test("gives the handler the event and the context, and the caller the result; the next ones find what the module holds", async () => {
    const { lambda, define, types } = await startLambda();
    define("echo", "index.echo", { memoryMb: 256 });
    const result = await lambda.invoke("echo", { key: "ä" }, { requestId: "r-1" });
    expect(result).toEqual({ payload: expect.anything(), requestId: "r-1" });
    const first = result.payload as Echo;
    expect(first).toMatchObject({
      event: { key: "ä" },
      context: {
        awsRequestId: "r-1",
        functionName: "echo",
        functionVersion: "$LATEST",
        invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:echo",
        memoryLimitInMB: "256",
        logGroupName: "/aws/lambda/echo",
        logStreamName: expect.stringMatching(/^\d{4}\/\d\d\/\d\d\/\[\$LATEST\][0-9a-f]{32}$/),
      },
      invocation: 1,
    });
    expect(types("echo")).toEqual(["started", "invoked", "responded", "frozen"]);
    expect((await lambda.invoke("echo")).payload).toMatchObject({ event: {}, invocation: 2 });
    expect((await lambda.invoke("echo", null)).payload).toMatchObject({ event: null, invocation: 3 });
    expect(lambda.environments("echo")).toMatchObject([{ state: "idle", frozen: true, pid: first.pid }]);
    define("nothing", "index.undefinedResult");
    expect(await lambda.invoke("nothing")).toMatchObject({ payload: null });
  });

  test("gets an environment of its own while the others are busy", async () => {
    const { lambda, define } = await startLambda();
    define("wait", "index.wait");
    const results = await Promise.all([1, 2, 3].map(() => lambda.invoke("wait", { ms: 150 })));
    expect(new Set(results.map(({ payload }) => (payload as Gap).pid)).size).toBe(3);
    expect(lambda.environments("wait")).toHaveLength(3);
  });
});

test("the environment variables are Lambda's, the base's and the function's, and nothing of this process", async () => {
  const { lambda, define } = await startLambda({ baseEnvironment: { OF_BASE: "base", LEVEL: "base" } });
  process.env.LEAK = "of the parent";
  onTestFinished(() => {
    delete process.env.LEAK;
  });
  define("environment", "index.environment", { environment: { TABLE: "locks", LEVEL: "own" } });
  const variables = (await lambda.invoke("environment")).payload as object;
  expect(variables).toMatchObject({
    ...{ OF_BASE: "base", TABLE: "locks", LEVEL: "own" },
    ...{ TZ: "UTC", AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "local" },
    AWS_LAMBDA_FUNCTION_NAME: "environment",
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "128",
    AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${process.versions.node.split(".")[0]}.x`,
  });
  expect(variables).not.toHaveProperty("LEAK");
});

describe("a failure", () => {
  test("of the handler leaves the environment in use; what it throws may be a text", async () => {
    const { lambda, define, types } = await startLambda();
    define("fail", "index.fail");
    expect(await lambda.invoke("fail", {})).toMatchObject({
      payload: { trace: expect.arrayContaining([expect.stringContaining("index.mjs")]) },
    });
    expect(await lambda.invoke("fail", { raw: true })).toMatchObject({
      payload: { errorType: "string", errorMessage: "just a text" },
    });
    expect(types("fail").filter((type) => type === "started")).toHaveLength(1);
  });

  test.for([
    ["a module that throws", "index.handler", "broken", "TypeError", "no table name"],
    ["a missing export", "index.nobody", "handlers", "Error", "index.nobody"],
    ["an exit", "index.exit", "handlers", "Runtime.ExitError", "Runtime exited with error: exit status 3"],
    ["a rejection", "index.reject", "handlers", "Runtime.UnhandledPromiseRejection", "nobody waits"],
    ["a promise that nothing can settle", "stuck.handler", "stuck", "Runtime.NodeJsExit", "never settled"],
  ] as const)("by %s is the invocation's, and the environment is gone", async (row) => {
    const [, handler, code, errorType, words] = row;
    const { lambda, define } = await startLambda();
    define("broken", handler, { codeDir: folder(code) });
    for (let i = 1; i <= 2; i++) {
      expect(await lambda.invoke("broken")).toMatchObject({
        functionError: "Unhandled",
        payload: { errorType, errorMessage: expect.stringContaining(words) },
      });
      expect(lambda.environments("broken")).toEqual([]);
    }
  });

  test("of code that takes too long to load is a timeout after ten seconds", async () => {
    const clock = new ManualClock();
    const { lambda, define, logs } = await startLambda({ clock });
    define("slow", "slow.handler", { codeDir: folder("stuck") });
    const call = lambda.invoke("slow");
    await eventually(() => expect(logs.map(({ line }) => line)).toEqual(["loading"]));
    expect(logs[0]).not.toHaveProperty("requestId");
    await clock.advance(10_000);
    expect(await call).toMatchObject({
      payload: { errorType: "Sandbox.Timedout", errorMessage: expect.stringContaining("10.00 seconds") },
    });
    expect(lambda.environments("slow")).toEqual([]);
  });
});

describe("a frozen process", () => {
  test("stands still between invocations, which its timers see as one gap", async () => {
    const { lambda, define } = await startLambda();
    define("gap", "index.gap");
    await lambda.invoke("gap");
    await sleep(1_500);
    const { widestGapMs } = (await lambda.invoke("gap")).payload as Gap;
    expect(widestGapMs).toBeGreaterThan(1_000);
  });

  test("in mid-invocation goes on when it is thawed", async () => {
    const { lambda, define, types, underWay } = await startLambda();
    define("wait", "index.wait");
    const call = lambda.invoke("wait", { ms: 2_000 });
    const { id, pid } = await underWay("wait");
    await sleep(50);
    lambda.freeze(id);
    lambda.freeze(id);
    expect(lambda.environments("wait")).toMatchObject([{ id, state: "busy", frozen: true }]);
    await sleep(1_000);
    lambda.thaw(id);
    const result = (await call).payload as Gap;
    expect(result.pid).toBe(pid);
    expect(result.widestGapMs).toBeGreaterThan(500);
    expect(types("wait")).toEqual(["started", "invoked", "frozen", "thawed", "responded", "frozen"]);
  });

  test("in mid-invocation still times out", async () => {
    const { lambda, define, underWay } = await startLambda();
    define("wait", "index.wait", { timeoutMs: 3_000 });
    const call = lambda.invoke("wait", { ms: 2_000 });
    const { id, pid } = await underWay("wait");
    lambda.freeze(id);
    expect(await call).toMatchObject({ payload: { errorType: "Sandbox.Timedout" } });
    expect(isAlive(pid)).toBe(false);
  });
});

test("a killed environment that is only starting fails its first invocation, whether it has a process yet or not", async () => {
  const { lambda, define, logs } = await startLambda();
  define("slow", "slow.handler", { codeDir: folder("stuck") });
  const early = lambda.invoke("slow");
  await lambda.kill(lambda.environments("slow")[0]?.id ?? "");
  const late = lambda.invoke("slow");
  await eventually(() => expect(logs).toHaveLength(1));
  await lambda.kill(lambda.environments("slow")[0]?.id ?? "");
  for (const call of [early, late]) {
    expect(await call).toMatchObject({ payload: { errorType: "Runtime.ExitError" } });
  }
});

test("an asynchronous invocation that fails is tried again after a minute, and after two more, with the same request id, until the runtime closes", async () => {
  const clock = new ManualClock();
  const { lambda, define, events } = await startLambda({ clock });
  define("fail", "index.fail");
  const requestId = lambda.invokeAsync("fail", { key: "orders" });
  const failures = async (count: number): Promise<void> => {
    await eventually(() => expect(events.filter(({ type }) => type === "failed")).toHaveLength(count));
    await eventually(() => expect(lambda.environments("fail")).toMatchObject([{ state: "idle" }]));
  };
  await failures(1);
  await clock.advance(59_999);
  expect(lambda.environments("fail")).toMatchObject([{ state: "idle" }]);
  await clock.advance(1);
  await failures(2);
  await clock.advance(120_000);
  await failures(3);
  const invoked = events.filter(({ type }) => type === "invoked").map((event) => event.requestId);
  expect(invoked).toEqual([requestId, requestId, requestId]);
  expect(clock.pending).toBe(0);

  lambda.invokeAsync("fail");
  await failures(4);
  await lambda.close();
  expect(clock.pending).toBe(0);
});

describe("logs", () => {
  test("are there, line by line and with their request, when the result is", async () => {
    const { lambda, define, logs } = await startLambda();
    define("log", "index.log");
    for (const text of ["one", "two"]) {
      const { requestId } = await lambda.invoke("log", { text }, { requestId: `r-${text}` });
      const [environment] = lambda.environments("log");
      const lines = logs.splice(0);
      expect(lines.map(({ line }) => line).sort()).toEqual([
        `${text} err`,
        `${text} last, without an end`,
        `${text} out`,
      ]);
      for (const line of lines) {
        expect(line).toMatchObject({ functionName: "log", environmentId: environment?.id, requestId });
      }
    }
  });
});

describe("close", () => {
  test("ends every process: starting, busy, frozen in mid-invocation and idle", async () => {
    const { lambda, define, underWay } = await startLambda();
    define("wait", "index.wait");
    define("held", "index.wait");
    define("echo", "index.echo");
    define("fresh", "index.echo");
    await lambda.invoke("echo");
    const calls = [lambda.invoke("wait", { ms: 60_000 }), lambda.invoke("held", { ms: 60_000 })];
    await underWay("wait");
    lambda.freeze((await underWay("held")).id);
    calls.push(lambda.invoke("fresh"));
    const pids = lambda.environments().flatMap(({ pid }) => pid ?? []);
    expect(pids.length).toBeGreaterThanOrEqual(3);
    await Promise.all([lambda.close(), lambda.close()]);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(lambda.environments()).toEqual([]);
    for (const call of calls) {
      expect(await call).toMatchObject({ payload: { errorType: "Runtime.ExitError" } });
    }
    await expect(lambda.invoke("echo")).rejects.toThrow(RuntimeClosedError);
    expect(() => lambda.invokeAsync("echo")).toThrow(RuntimeClosedError);
  });

  test.for([
    ["lets an idle function handle SIGTERM", {}],
    ["kills a function that does not end after SIGTERM", { STUBBORN: "1" }],
  ] as const)("%s", async ([, environment]) => {
    const { lambda, define, logs } = await startLambda();
    define("graceful", "index.handler", { codeDir: folder("graceful"), environment });
    const { payload: pid } = await lambda.invoke("graceful");
    await lambda.close();
    expect(logs.map(({ line }) => line)).toEqual(["releasing", "released"]);
    expect(isAlive(pid as number)).toBe(false);
  });
});
