// @module-tag long
import { renewUnlessRevoked } from "@leasehold/client/internal";
import { leaseSortKey } from "@leasehold/client/schema";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { transferKey } from "../../../functions/import-orders/schema.ts";
import { adminOf } from "../../support/admin.ts";
import { leaseTable, startTestApp, type TestApp, until } from "../../support/app.ts";
import type { Matcher, ProxiedRequest } from "../../support/proxy.ts";
import { failWith } from "../../support/proxy-behaviours.ts";
import { Transfers } from "../../support/transfers.ts";

let it: TestApp;
let transfers: Transfers;

beforeAll(async () => {
  it = await startTestApp();
  transfers = new Transfers(it);
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});
beforeEach(() => it.proxy.reset());

/** What was written to an item of the lease table, by whomever. */
function writesTo(key: string): ProxiedRequest[] {
  return it.proxy.requests.filter(
    ({ operation, body }) =>
      operation === "UpdateItem" && body.Key.pk.S === key && body.Key.sk.S === leaseSortKey,
  );
}

/** The update of a renewal, whatever its values. */
const renewal = renewUnlessRevoked(
  { key: "key" },
  {
    shown: { token: "token", fencingToken: 1 },
    version: 1,
    expiresAt: 1,
    leaseDurationMs: 1,
    retentionMs: 1,
  },
).request().update;

const isRenewal: Matcher = ({ body }) => body.UpdateExpression === renewal;

/** The keeper gave up and stopped the workflow, and both say why. */
async function expectStopped(workflow: string, keeper: string, loss: string): Promise<void> {
  const error = "LeaseLostError";
  const cause = expect.stringContaining(`the lease of ${transferKey} is lost: ${loss}`);
  expect(await it.app.finished(keeper)).toMatchObject({ status: "FAILED", error, cause });
  const stopped = await it.app.finished(workflow);
  const told = expect.stringContaining(`the lease is lost: ${loss}`);
  expect(stopped).toMatchObject({ status: "ABORTED", error, cause: told });
}

describe("the keeper of a workflow", () => {
  test("keeps the lease of one that outlives it, at 2.4 transitions and 1 write a beat, and succeeds", async () => {
    await transfers.seed(4);
    const workflow = transfers.start();
    const keeper = await transfers.keeperOf(workflow);
    expect(await it.app.finished(workflow)).toMatchObject({ status: "SUCCEEDED" });
    expect(await transfers.holder()).toBeUndefined();
    expect(await it.app.finished(keeper.arn)).toMatchObject({
      status: "SUCCEEDED",
      output: { handedOver: false },
    });
    expect(await transfers.done()).toBe(4);

    const states = transfers.states(keeper.arn);
    const isBeat = (state: string): boolean => /^Renew[1-5]$/.test(state);
    // The last one is refused, for the workflow has let the lock go.
    const beats = states.filter(isBeat).length - 1;
    // Four pauses of 2 s, and a beat a second.
    expect(beats).toBeGreaterThanOrEqual(6);
    const start = ["Begin", "Prove", "JudgeProof", "MayStop", "AskGuarded", "Decide"];
    const ready = ["RenewFirst", "IsAwaited", "Answer", "GoOn"];
    expect(states.slice(0, 10)).toEqual([...start, ...ready]);
    const round = [1, 2, 3, 4, 5].flatMap((number) => [`Pause${number}`, `Renew${number}`]);
    expect(states.slice(10, 23)).toEqual([...round, "AskGuarded", "Decide", "Pause1"]);
    expect(states.slice(-4)).toEqual([expect.stringMatching(/^Renew/), "Inspect", "JudgeLease", "Done"]);
    // With the first one, before the work, and the refused one.
    expect(writesTo(transferKey).filter(isRenewal)).toHaveLength(beats + 2);
    // All others: the workflow's acquisition and release.
    expect(writesTo(transferKey)).toHaveLength(beats + 2 + 2);
    const item = await it.leaseItem(transferKey);
    expect(item).toMatchObject({ releasedToken: keeper.lease.token, fence: keeper.lease.fencingToken });
  });

  test("does not begin before its keeper has proven the lease and renewed it", async () => {
    await transfers.seed(1);
    const workflow = transfers.start();
    const { arn } = await transfers.keeperOf(workflow);
    await it.app.finished(workflow);
    const entered = (execution: string, name: string): string =>
      it.app.history(execution).entered.find(({ stateName }) => stateName === name)?.at ?? "never";
    expect(entered(workflow, "Work") >= entered(arn, "Answer")).toBe(true);
    expect(entered(arn, "Answer") >= entered(arn, "RenewFirst")).toBe(true);
  });

  test("lets go the lock of one that was stopped in mid-work as soon as EventBridge tells", async () => {
    const workflow = await transfers.startLong();
    const { arn } = await transfers.keeperOf(workflow);
    it.app.stopExecution(workflow, { error: "Operator", cause: "had enough" });
    expect(await transfers.holder()).toMatch(/^workflow:arn:/);
    await until("the release", async () => (await transfers.holder()) === undefined);
    const [ended] = transfers.endsOf(workflow);
    expect(await it.app.finished(String(ended?.executionArn))).toMatchObject({ status: "SUCCEEDED" });
    expect(transfers.states(String(ended?.executionArn))).toEqual([
      "Begin",
      "See",
      "JudgeHolder",
      "Ask",
      "IsOver",
      "Release",
      "Pause",
      "AskAgain",
      "IsAtWork",
      "Done",
    ]);
    expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED", output: { handedOver: false } });
    expect(transfers.states(arn).slice(-3)).toEqual(["Inspect", "JudgeLease", "Done"]);
    expect(await it.app.finished(workflow)).toMatchObject({ status: "ABORTED", error: "Operator" });
    expect(await transfers.done()).toBeLessThan(20);
    expect(await (await it.leases.acquire(transferKey)).release()).toBe(true);
  });

  test("stops one whose lease was stolen, and leaves the thief's alone", async () => {
    const workflow = await transfers.startLong();
    const { arn, lease } = await transfers.keeperOf(workflow);
    await it.deleteItem(transferKey);
    const thief = await it.leases.acquire(transferKey, { owner: "the thief" });
    await expectStopped(workflow, arn, "another holder has it");
    expect(await it.leases.inspect(transferKey)).toMatchObject({ token: thief.token, version: 1 });
    expect(thief.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await thief.release()).toBe(true);
  });

  // The keeper takes a lease that was broken for one that its workflow released, and leaves it alone.
  test("stops one whose lease was broken and taken by another", async () => {
    const workflow = await transfers.startLong();
    const { arn, lease } = await transfers.keeperOf(workflow);
    onTestFinished(() => it.app.stopExecution(workflow));
    expect(await adminOf(it.leases).forceRelease(transferKey, { token: lease.token })).toBe(true);
    await using _thief = await it.leases.acquire(transferKey, { owner: "the thief" });
    expect(await it.app.finished(arn)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
    expect(await it.app.finished(workflow)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
  });

  test("stops one whose lease item was deleted", async () => {
    const workflow = await transfers.startLong();
    const { arn } = await transfers.keeperOf(workflow);
    await it.deleteItem(transferKey);
    await expectStopped(workflow, arn, "it was broken, or expired and was removed");
    expect(await it.leaseItem(transferKey)).toBeUndefined();
  });

  test("is replaced when it is aborted, and the work goes on under its lease", async () => {
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

  test("stops one whose lease cannot be renewed in time", async () => {
    const workflow = await transfers.startLong();
    const { arn } = await transfers.keeperOf(workflow);
    it.proxy.always(isRenewal, failWith("AccessDeniedException"));
    await expectStopped(workflow, arn, "it could not be renewed in time");
    await (await it.leases.acquire(transferKey, { waitMs: 10_000 })).release();
  });

  test("stops one that was asked to stop, and releases its lock", async () => {
    const workflow = await transfers.startLong();
    const { arn, lease } = await transfers.keeperOf(workflow);
    expect(await adminOf(it.leases).requestRevocation(transferKey, { token: lease.token })).toBe(true);
    expect(await it.app.finished(workflow)).toMatchObject({
      status: "ABORTED",
      error: "LeaseLostError",
      cause: expect.stringContaining("asked to stop"),
    });
    expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED" });
    expect(await it.leaseItem(transferKey)).toMatchObject({ releasedToken: lease.token });
    expect(await transfers.holder()).toBeUndefined();
  });
});

describe("a keeper that was started by hand", () => {
  test("with a made-up lease neither stops nor keeps a workflow that has a real one", async () => {
    const workflow = await transfers.startLong();
    onTestFinished(() => it.app.stopExecution(workflow));
    const mine = await it.leases.acquire("shared/mine");
    const arn = transfers.startKeeper({ lease: mine.toJSON(), guarded: workflow });
    expect(await it.app.finished(arn)).toMatchObject({ status: "FAILED", error: "LeaseNotProvenError" });
    expect(transfers.states(arn)).toEqual(["Begin", "Prove", "JudgeProof", "Unproven", "NotBegun"]);
    expect(await it.app.history(workflow)).toMatchObject({
      counts: expect.not.objectContaining({ ExecutionAborted: 1 }),
    });
    await mine.release();
  });
});

describe("a keeper with no execution to guard", () => {
  const key = "a person's lock";

  test("keeps a lease until its time is over, and releases it", async () => {
    const lease = await it.leases.acquire(key, { leaseDurationMs: 3_000 });
    const arn = transfers.startKeeper({ lease: lease.toJSON(), until: Date.now() + 5_000 });
    await it.entered(arn, "RenewAlone", 3);
    const kept = await it.leases.inspect(key);
    expect(kept?.token).toBe(lease.token);
    expect(kept?.expiresAt).toBeGreaterThan(lease.expiresAt);
    expect(await it.app.finished(arn)).toMatchObject({ status: "SUCCEEDED", output: { handedOver: false } });
    expect(await it.leaseItem(key)).toMatchObject({ releasedToken: lease.token });
  });

  test("refuses a lease of another table, and changes nothing", async () => {
    const lease = await it.leases.acquire("a refused keeper's lock");
    const before = await it.items(leaseTable);
    const elsewhere = { ...lease.toJSON(), tableName: "elsewhere" };
    const arn = transfers.startKeeper({ lease: elsewhere, until: Date.now() + 60_000 });
    expect(await it.app.finished(arn)).toMatchObject({ status: "FAILED", error: "InvalidOptionsError" });
    expect(await it.items(leaseTable)).toEqual(before);
    await lease.release();
  });
});
