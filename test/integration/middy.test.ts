import type { LeaseRecord } from "@leasehold/client/record";
import { type LeaseLockOptions, type Lock, leaseLock } from "@leasehold/middy";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { afterAll, beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { op, startProxy } from "../support/proxy.ts";
import { loseAnswer } from "../support/proxy-behaviours.ts";
import { makeTable, sdkClient } from "../support/table.ts";

type LockedContext = Context & { lock: Lock };
type Work = (lock: Lock) => unknown;

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const dynamodb = sdkClient(proxy);
const client = table.client({ dynamodb });
/** Goes past the proxy, and is not counted. */
const other = table.client({ owner: "somebody else" });
let key: string;

beforeEach(() => {
  key = table.newKey();
  proxy.reset();
});
afterAll(async () => {
  dynamodb.destroy();
  table.close();
  await proxy.close();
});

/** A handler under a lock, as a Lambda would have it; without more options its lease lasts for the remaining time. */
function locked(options: LeaseLockOptions, work: Work = () => "done") {
  const handler = async (_event: object, context: LockedContext) => await work(context.lock);
  const metrics: string[] = [];
  const lock = leaseLock<object>({
    client,
    key,
    job: "job",
    metrics: (line) => metrics.push(line),
    ...options,
  });
  const app = middy<object, unknown, Error, LockedContext>(handler).use(lock);
  const invoke = async (event: object, context: LockedContext): Promise<unknown> => await app(event, context);
  return { invoke, metrics };
}

/** What Lambda hands to an invocation that may run for so long from now. */
function contextOf(timeoutMs = 30_000, awsRequestId: string = crypto.randomUUID()): LockedContext {
  const end = performance.now() + timeoutMs;
  const getRemainingTimeInMillis = (): number => Math.max(0, Math.floor(end - performance.now()));
  return { functionName: "job", awsRequestId, getRemainingTimeInMillis } as LockedContext;
}

const holder = async (): Promise<LeaseRecord | undefined> => await other.inspect(key);

describe("counted on the wire", () => {
  test("an invocation whose lease is sized from its remaining time makes exactly 2 requests", async () => {
    let seen: LeaseRecord | undefined;
    const { invoke } = locked({}, async () => {
      seen = await holder();
      return "done";
    });
    expect(await invoke({}, contextOf(20_000))).toBe("done");
    expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
    expect(seen?.leaseDurationMs).toBeGreaterThan(20_000);
    expect(seen?.leaseDurationMs).toBeLessThanOrEqual(21_000);
    expect(await holder()).toBeUndefined();
  });

  test("a handler that fails makes 2 as well, and frees the lock", async () => {
    const { invoke } = locked({}, () => {
      throw new Error("no luck");
    });
    await expect(invoke({}, contextOf())).rejects.toThrow("no luck");
    expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
    expect(await holder()).toBeUndefined();
  });

  test("one that is skipped makes 1", async () => {
    await using lease = await other.acquire(key);
    const { invoke } = locked({ whenHeld: "skip", skipResult: "skipped" });
    expect(await invoke({}, contextOf())).toBe("skipped");
    expect(proxy.operations).toEqual(["UpdateItem"]);
    expect(await holder()).toMatchObject({ token: lease.token });
  });

  test("one that takes over from a holder that died makes 3", async () => {
    await table.deadLease(key);
    expect(await locked({}).invoke({}, contextOf())).toBe("done");
    expect(proxy.operations).toEqual(Array(3).fill("UpdateItem"));
  });

  /** Leaves a lease behind, as an attempt at an event that was killed. */
  const attemptThatDied = (context: LockedContext) =>
    other.acquire(key, { owner: `job/${context.awsRequestId}`, leaseDurationMs: 60_000, reentrant: true });

  test("a retry of an event, whose earlier attempt left its lease behind, makes 1 and is no success", async () => {
    const context = contextOf();
    await using left = await attemptThatDied(context);
    const { invoke } = locked({});
    await expect(invoke({}, context)).rejects.toMatchObject({ holder: `job/${context.awsRequestId}` });
    expect(proxy.operations).toEqual(["UpdateItem"]);
    expect(await holder()).toMatchObject({ token: left.token });
  });

  test("with resume such a retry makes 3 and waits for nothing", async () => {
    const context = contextOf();
    const left = await attemptThatDied(context);
    let token = Number.NaN;
    const { invoke } = locked({ resume: true }, ({ lease }) => {
      token = lease.fencingToken;
    });
    await invoke({}, context);
    expect(proxy.operations).toEqual(Array(3).fill("UpdateItem"));
    expect(token).toBeGreaterThan(left.fencingToken);
  });

  test("a run for each scheduled time costs nothing more: 2 for the run, 1 for the trigger that comes again", async () => {
    const runs: string[] = [];
    const { invoke } = locked({ once: true, skipResult: "skipped" }, () => runs.push("run"));
    const event = { scheduledTime: "2026-11-21T10:00:00Z" };
    await invoke(event, contextOf());
    expect(proxy.operations).toEqual(Array(2).fill("UpdateItem"));
    expect(await invoke(event, contextOf())).toBe("skipped");
    expect(proxy.operations).toEqual(Array(3).fill("UpdateItem"));
    expect(runs).toEqual(["run"]);
  });

  test("one whose lock has a cooldown makes 2", async () => {
    const { invoke } = locked({ lockAtLeastForMs: 5_000, whenHeld: "skip", skipResult: "skipped" });
    expect(await invoke({}, contextOf())).toBe("done");
    expect(proxy.operations).toEqual(Array(2).fill("UpdateItem"));
    expect(await invoke({}, contextOf())).toBe("skipped");
    expect(await holder()).toMatchObject({ inCooldown: true });
  });

  test("one with a short lease makes 1 more for each beat, and keeps others out", async () => {
    const { invoke } = locked({ lockAtMostForMs: 1_500, heartbeat: 300 }, async () => {
      await proxy.arrival(op("UpdateItem"), 4);
      return (await other.tryAcquire(key)) === undefined;
    });
    expect(await invoke({}, contextOf())).toBe(true);
    expect(proxy.count("UpdateItem")).toBeGreaterThanOrEqual(5);
    expect(proxy.requests.every(({ operation }) => operation === "UpdateItem")).toBe(true);
  });

  test("one that middy ends early makes 1: the lock stays with the handler that may still run", async () => {
    const end = Promise.withResolvers<void>();
    onTestFinished(() => end.resolve());
    let lock: Lock | undefined;
    const { invoke } = locked({}, async (given) => {
      lock = given;
      await end.promise;
    });
    await expect(invoke({}, contextOf(400))).rejects.toThrow();
    expect(proxy.operations).toEqual(["UpdateItem"]);
    expect(lock?.signal.aborted).toBe(true);
    expect(await holder()).toMatchObject({ token: lock?.lease.token });
  });
});

describe("when something goes wrong", () => {
  test("an acquisition whose answer was lost is recognised: the handler runs once, under one lease", async () => {
    proxy.next(op("UpdateItem"), loseAnswer());
    const tokens: number[] = [];
    const { invoke } = locked({}, ({ lease }) => tokens.push(lease.fencingToken));
    await invoke({}, contextOf());
    expect(tokens).toHaveLength(1);
    expect(await holder()).toBeUndefined();
  });

  test("a release whose answer was lost is a success all the same", async () => {
    const { invoke, metrics } = locked({}, () => {
      proxy.next(op("UpdateItem"), loseAnswer());
      return "done";
    });
    expect(await invoke({}, contextOf())).toBe("done");
    expect(await holder()).toBeUndefined();
    expect(metrics.filter((line) => line.includes("JobSucceeded"))).toHaveLength(1);
  });

  test("a handler whose lock another had in the meantime does not succeed, and its slot stays open", async () => {
    const { invoke, metrics } = locked({ once: true }, async ({ lease }) => {
      // As by a person: the lease has its time still before it, so the handler has no way to notice.
      await adminOf(other).forceRelease(key, { token: lease.token });
      await (await other.acquire(key)).release();
      return "done";
    });
    const event = { scheduledTime: "2026-11-21T10:00:00Z" };
    await expect(invoke(event, contextOf())).rejects.toMatchObject({ code: "LEASE_LOST", key });
    expect(metrics.filter((line) => line.includes("JobFailed"))).toHaveLength(1);
    expect(metrics.filter((line) => line.includes("JobSucceeded"))).toEqual([]);
    const retried = locked({ once: true });
    expect(await retried.invoke(event, contextOf())).toBe("done");
  });

  test("two invocations at once: one runs, the other waits for it as long as it may", async () => {
    const intervals: [number, number][] = [];
    const { invoke } = locked({ whenHeld: "wait" }, async () => {
      const began = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 50));
      intervals.push([began, performance.now()]);
      return "done";
    });
    expect(await Promise.all([invoke({}, contextOf()), invoke({}, contextOf())])).toEqual(["done", "done"]);
    const [first, second] = intervals.sort(([a], [b]) => a - b);
    expect(second?.[0]).toBeGreaterThanOrEqual(first?.[1] ?? Number.POSITIVE_INFINITY);
  });
});
