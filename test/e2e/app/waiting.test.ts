// @module-tag long
import type { Lease } from "@leasehold/client";
import { waiterSortKeyPrefix } from "@leasehold/client/schema";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { transferKey } from "../../../functions/import-orders/schema.ts";
import { adminOf } from "../../support/admin.ts";
import { leaseTable, startTestApp, type TestApp, until } from "../../support/app.ts";
import type { Matcher } from "../../support/proxy.ts";
import { failWith, hold } from "../../support/proxy-behaviours.ts";
import { Transfers } from "../../support/transfers.ts";

const wake = "LeaseFunctions/Wakeup/Handler";
let it: TestApp;
let transfers: Transfers;

beforeAll(async () => {
  it = await startTestApp();
  transfers = new Transfers(it);
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  it.proxy.reset();
  // Nothing to do: each workflow is over as soon as it has the lock.
  await transfers.seed(0);
});

/** Takes the lock for longer than any test: what goes on before that was woken, and did not come by its own clock. */
async function holdLock(leaseDurationMs = 120_000): Promise<Lease> {
  const lease = await it.leases.acquire(transferKey, { leaseDurationMs, waitMs: 10_000 });
  onTestFinished(async () => {
    await lease.release();
  });
  return lease;
}

/** Starts a workflow that finds the lock held; resolves once it waits. */
async function park(): Promise<string> {
  const waiting = (await waiters()).length;
  const arn = transfers.start("export");
  onTestFinished(() => it.app.stopExecution(arn));
  await until("the waiter", async () => (await waiters()).length > waiting);
  return arn;
}

/** The sort keys of those who wait, the longest waiting first. */
async function waiters(): Promise<string[]> {
  const places = (await it.items(leaseTable)).map(({ sk }) => String(sk));
  return places.filter((sortKey) => sortKey.startsWith(waiterSortKeyPrefix));
}

/** The request by which the wake function looks for waiters. */
const looksForWaiters: Matcher = ({ operation, body }) =>
  operation === "Query" && body.TableName === it.app.tableName(leaseTable);

const times = (arn: string, state: string): number =>
  transfers.states(arn).filter((name) => name === state).length;

describe("a workflow that waits for the lock", () => {
  test("parks without a request, and goes on when the lock is released", async () => {
    const lease = await holdLock();
    const arn = await park();
    expect(await waiters()).toEqual([
      expect.stringMatching(new RegExp(`^${waiterSortKeyPrefix}\\d{13}#workflow:`)),
    ]);
    it.proxy.reset();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    // The app's schedules may fire meanwhile: what counts is who asks for this lock.
    expect(it.proxy.requests.filter(({ body }) => JSON.stringify(body).includes(transferKey))).toEqual([]);

    await lease.release();
    expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED" });
    expect(times(arn, "Leasehold_Park")).toBe(1);
    await until("the end of the queue", async () => (await waiters()).length === 0);
  });
});

describe("a wake-up that goes wrong", () => {
  test("comes again when the function is killed in the middle of it", async () => {
    const held = hold();
    it.proxy.next(looksForWaiters, held);
    const lease = await holdLock();
    const arn = await park();
    await lease.release();
    await it.proxy.arrival(looksForWaiters);
    const [environment] = it.app.environments(wake);
    await it.app.kill(String(environment?.id));
    expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED" });
    expect(times(arn, "Leasehold_Park")).toBe(1);
    expect(it.proxy.requests.filter(looksForWaiters).length).toBeGreaterThanOrEqual(2);
    await held.letGo();
  });

  test("is made good by the waiter's own clock when it is lost for good", async () => {
    it.proxy.always(looksForWaiters, failWith("AccessDeniedException"));
    const lostBefore = it.app.messages("LeaseFunctions/Wakeup/DeadLetters").length;
    // Long enough that the stream is given up on a busy machine too before the waiter comes by itself.
    const lease = await holdLock(12_000);
    const arn = await park();
    await lease.release();
    const lost = () => it.app.messages("LeaseFunctions/Wakeup/DeadLetters").slice(lostBefore);
    await until("the dead letter", () => lost().length > 0);
    expect(JSON.parse(lost()[0]?.body ?? "")).toMatchObject({
      requestContext: { condition: "RetryAttemptsExhausted" },
    });
    expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED" });
    expect(it.app.history(arn).counts).toMatchObject({ TaskTimedOut: 1 });
  });
});

test("a workflow that is stopped in mid-work lets its lock go as soon as EventBridge tells", async () => {
  const workflow = await transfers.startLong();
  const { arn } = await transfers.keeperOf(workflow);
  it.app.stopExecution(workflow, { error: "Operator", cause: "had enough" });
  expect(await transfers.holder()).toMatch(/^workflow:arn:/);
  await until("the release", async () => (await transfers.holder()) === undefined);
  const [ended] = transfers.endsOf(workflow);
  expect(await it.app.finished(String(ended?.executionArn))).toMatchObject({ status: "SUCCEEDED" });
  expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED", output: { handedOver: false } });
  expect(await it.app.finished(workflow)).toMatchObject({ status: "ABORTED", error: "Operator" });
  expect(await transfers.done()).toBeLessThan(20);
  expect(await (await it.leases.acquire(transferKey)).release()).toBe(true);
});

test("a keeper is replaced when it is aborted, and the work goes on under its lease", async () => {
  const workflow = await transfers.startLong();
  const { arn, lease } = await transfers.keeperOf(workflow);
  await it.app.stopExecution(arn);
  await until("another keeper", () => transfers.keepersOf(workflow).length === 2);
  const [second = ""] = transfers.keepersOf(workflow).filter((keeper) => keeper !== arn);
  await it.entered(second, "Renew2", 1);
  expect((await it.leases.inspect(transferKey))?.token).toBe(lease.token);
  expect(await it.leases.tryAcquire(transferKey)).toBeUndefined();
  await adminOf(it.leases).requestRevocation(transferKey, { token: lease.token });
  expect(await it.app.finished(workflow)).toMatchObject({ status: "ABORTED" });
  expect(await it.app.finished(second)).toMatchObject({ status: "SUCCEEDED" });
});
