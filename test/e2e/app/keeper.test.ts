// @module-tag long
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { transferKey } from "../../../functions/import-orders/schema.ts";
import { adminOf } from "../../support/admin.ts";
import { startTestApp, type TestApp, until } from "../../support/app.ts";
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

describe("the keeper of a workflow", () => {
  test("keeps the lease of one that outlives it, and succeeds", async () => {
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

    const item = await it.leaseItem(transferKey);
    expect(item).toMatchObject({ releasedToken: keeper.lease.token, fence: keeper.lease.fencingToken });
  });

  test("lets go the lock of one that was stopped in mid-work as soon as EventBridge tells", async () => {
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
});
