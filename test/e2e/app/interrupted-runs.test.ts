// @module-tag long
import { setTimeout as delay } from "node:timers/promises";
import type { LeaseEvent } from "@leasehold/client";
import { leaseSortKey } from "@leasehold/client/schema";
import { type JobRun, JobRuns } from "@leasehold/jobs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { closeUnpaidOrdersKey as key } from "../../../functions/close-unpaid-orders/job.ts";
import { startTestApp, type TestApp, until } from "../../support/app.ts";
import { changedAssembly } from "../../support/assembly.ts";
import { type HeldRequest, hang, hold } from "../../support/proxy-behaviours.ts";
import { nextTrigger, Shop, type ShopRun } from "../../support/shop.ts";
import { takeableAt } from "../../support/watching.ts";

/** What the job has in the template is too long to wait for. */
const timeoutSeconds = 4;
let it: TestApp;

beforeAll(async () => {
  it = await startTestApp();
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});
beforeEach(() => it.proxy.reset());

/** A run that stands between the check of its lease and a write; its process is known. */
interface StandingRun extends ShopRun {
  readonly environmentId: string;
  readonly scheduledTime: string;
  readonly write: HeldRequest;
}

/** Starts a run and stops it before it closes its second order. */
async function standAtSecondOrder(shop: Shop): Promise<StandingRun> {
  const write = hold();
  it.proxy.next(shop.closes(1), write);
  const trigger = nextTrigger();
  const run = shop.run(trigger);
  await it.proxy.arrival(shop.closes(1));
  const { id: environmentId } = await it.environmentOf(run.requestId);
  return { ...run, environmentId, scheduledTime: trigger.scheduledTime, write };
}

/** What the history has about a run. */
async function ledgerOf({ scheduledTime }: StandingRun): Promise<JobRun | undefined> {
  return await new JobRuns(it.leases, key).get(scheduledTime);
}

/** What became of the first trigger that got the lock, and how many were skipped before it. */
interface Success {
  readonly requestId: string;
  readonly outcome: unknown;
  readonly skipped: number;
}

/** Triggers the job until a run gets the lock. */
async function runOnceFree(shop: Shop): Promise<Success> {
  for (let skipped = 0; ; skipped++) {
    const { requestId, result } = shop.run(nextTrigger());
    const { payload: outcome, functionError } = await result;
    expect(functionError, JSON.stringify(outcome)).toBeUndefined();
    if ((outcome as { readonly result: string }).result !== "skipped") return { requestId, outcome, skipped };
    await delay(50);
  }
}

/** Whether an event is about the lock, and not about the run that is in the run history. */
function isOfTheLock(event: LeaseEvent): boolean {
  return "sortKey" in event && event.sortKey === leaseSortKey;
}

/** When an invocation acquired its lease, by its own clock, and under which fencing token. */
function grantOf(
  { requestId }: Success,
  leaseDurationMs: number,
): { acquiredAt: number; fencingToken: number } {
  const granted = it.leaseEvents(requestId).find((event) => event.type === "acquired" && isOfTheLock(event));
  if (granted?.type !== "acquired") throw new Error("the run acquired nothing");
  return { acquiredAt: granted.expiresAt - leaseDurationMs, fencingToken: granted.fencingToken };
}

describe("a run that is interrupted between the check of its lease and a write", () => {
  test("frozen for longer than its lease: its write is refused, also while another run is under way, which does the rest", async () => {
    const shop = await Shop.open(it, 4);
    const frozen = await standAtSecondOrder(shop);
    it.app.freeze(frozen.environmentId);
    expect(await shop.state()).toEqual({ closings: [1, 0, 0, 0], restocked: 1 });
    const successorsWrite = hold();
    it.proxy.next(shop.closes(1), successorsWrite);
    const successor = runOnceFree(shop);
    await it.proxy.arrival(shop.closes(1), 2);
    const holder = await it.leases.inspect(key);
    expect(holder?.owner).not.toContain(frozen.requestId);

    await frozen.write.letGo();
    it.app.thaw(frozen.environmentId);
    expect(await frozen.result).toMatchObject({
      functionError: "Unhandled",
      payload: { errorType: "LeaseLostError", errorMessage: expect.stringContaining("was fenced off") },
    });
    expect(await shop.state()).toEqual({ closings: [1, 0, 0, 0], restocked: 1 });
    expect(await it.leases.inspect(key)).toMatchObject({ token: holder?.token });
    expect(await ledgerOf(frozen)).toMatchObject({
      state: "failed",
      attempt: 1,
      remark: expect.stringContaining("was fenced off"),
      progress: { closed: 1, parked: 0 },
    });
    await successorsWrite.letGo();
    const { outcome, skipped } = await successor;
    expect(outcome).toMatchObject({ result: "ran", closed: 3 });
    expect(skipped).toBeGreaterThan(0);
    expect(await shop.state()).toEqual({ closings: [1, 1, 1, 1], restocked: 4 });
  });

  test("killed: nobody gets in before its lease is over, and then the next run does the rest", async () => {
    const shop = await Shop.open(it, 4);
    const killed = await standAtSecondOrder(shop);
    await it.app.kill(killed.environmentId);
    const killedAt = Date.now();
    expect(await killed.result).toMatchObject({ payload: { errorType: "Runtime.ExitError" } });
    const left = await it.leases.inspect(key);
    if (left === undefined) throw new Error("the lock is free");
    expect(left.owner).toContain(killed.requestId);

    const successor = await runOnceFree(shop);
    expect(successor.outcome).toMatchObject({ result: "ran", closed: 3 });
    const { acquiredAt, fencingToken } = grantOf(successor, left.leaseDurationMs);
    expect(acquiredAt).toBeGreaterThanOrEqual(takeableAt(left, killedAt));
    expect(fencingToken).toBeGreaterThan(left.fencingToken);
    await killed.write.letGo();
    expect(await shop.state()).toEqual({ closings: [1, 1, 1, 1], restocked: 4 });
    await until("the loss of its run", async () => (await ledgerOf(killed))?.state === "lost");
    expect(await ledgerOf(killed)).toMatchObject({ attempt: 1, exhausted: false });
  });
});

describe("a run that hits the function's timeout", () => {
  let short: TestApp;
  beforeAll(async () => {
    const assemblyDir = await changedAssembly("short-timeout", (resources) => {
      const [id] = Object.keys(resources).filter((name) => /^UnpaidOrdersClose[0-9A-F]{8}$/.test(name));
      const properties = resources[id ?? ""]?.Properties;
      if (properties?.Timeout === undefined) throw new Error("there is no such function");
      properties.Timeout = timeoutSeconds;
    });
    short = await startTestApp({ assemblyDir });
  });
  afterAll(async () => {
    await short?.[Symbol.asyncDispose]();
  });

  test("keeps its lease to the end, which frees the lock when it is over; the next run does the rest", async () => {
    const shop = await Shop.open(short, 3);
    // The write lands and is never answered; heartbeats go on.
    short.proxy.always(shop.closes(1), hang());
    const run = shop.run(nextTrigger());
    await short.proxy.arrival(shop.closes(1));
    const before = await short.leases.inspect(key);
    expect(await run.result).toMatchObject({
      functionError: "Unhandled",
      payload: {
        errorType: "Sandbox.Timedout",
        errorMessage: expect.stringContaining("timed out after 4.00 seconds"),
      },
    });
    const endedAt = Date.now();
    const left = await short.leases.inspect(key);
    expect(left).toMatchObject({ token: before?.token });
    expect(left?.expiresAt).toBeGreaterThan(before?.expiresAt ?? Number.POSITIVE_INFINITY);
    short.proxy.reset();

    const successor = await short.leases.acquire(key, { waitMs: 10_000 });
    expect(successor.acquiredAt).toBeGreaterThanOrEqual(takeableAt(left, endedAt));
    await successor.release();
    expect((await shop.run(nextTrigger()).result).payload).toMatchObject({ result: "ran", closed: 1 });
    expect(await shop.state()).toEqual({ closings: [1, 1, 1], restocked: 3 });
  });
});
