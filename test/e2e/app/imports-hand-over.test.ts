// @module-tag long
import { createHash } from "node:crypto";
import type { ExecutionDescription } from "@leasehold/local";
import { afterAll, beforeAll, expect, test } from "vitest";
import { doneKey, transferKey } from "../../../functions/import-orders/schema.ts";
import { chunksPerExecution } from "../../../infra/systems/imports.ts";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { changedAssembly } from "../../support/assembly.ts";
import { Transfers } from "../../support/transfers.ts";

/** Nobody waits here for the thousand chunks that an execution transfers in earnest. */
const shareOfChunks = 2;
const batches = "Imports/Batch";
let it: TestApp;
let transfers: Transfers;

beforeAll(async () => {
  const assemblyDir = await changedAssembly("short-histories", (resources) => {
    let changed = 0;
    for (const resource of Object.values(resources)) {
      if (resource?.Type !== "AWS::StepFunctions::StateMachine") continue;
      const text = JSON.stringify(resource.Properties.DefinitionString);
      const share = (count: number): string => String.raw`\"chunksLeft\":${count}`;
      changed += text.split(share(chunksPerExecution)).length - 1;
      resource.Properties.DefinitionString = JSON.parse(
        text.replaceAll(share(chunksPerExecution), share(shareOfChunks)),
      );
    }
    if (changed !== 2) throw new Error(`${changed} loops count their chunks`);
  });
  it = await startTestApp({ assemblyDir });
  transfers = new Transfers(it);
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

function batchesOf(token: string): ExecutionDescription[] {
  const name = createHash("sha256").update(token).digest("hex");
  return it.app.executions(batches).filter((execution) => execution.name.startsWith(`${name}-`));
}

function transferred(execution: string): number {
  return transfers.states(execution).filter((state) => state === "TransferChunk").length;
}

test("an import hands the rest on before its history is full, and keeps its lease, its token and its keeper to the end", async () => {
  await transfers.seed(5);
  const workflow = transfers.start();
  const { arn: keeper, lease } = await transfers.keeperOf(workflow);
  await it.entered(workflow, "HandOn");
  expect(await it.leases.tryAcquire(transferKey)).toBeUndefined();
  expect(await it.leases.inspect(transferKey)).toMatchObject({ token: lease.token });
  expect(await it.app.finished(workflow)).toMatchObject({ status: "SUCCEEDED" });
  expect(await it.app.finished(keeper)).toMatchObject({ status: "SUCCEEDED" });

  const { pk } = doneKey("import", "");
  const done = (await it.items("Imports/Orders")).filter((item) => item.pk === pk);
  expect(done.map(({ sk, fencingToken }) => [sk, fencingToken])).toEqual(
    Array.from({ length: 5 }, (_, index) => [`chunk-${index}`, lease.fencingToken]),
  );
  expect(transferred(workflow)).toBe(shareOfChunks);
  const handedOn = batchesOf(lease.token);
  expect(handedOn.map(({ executionArn }) => transferred(executionArn))).toEqual([2, 2]);
  expect(handedOn.map(({ name, output }) => [name.split("-").at(-1), output])).toEqual([
    ["1", { isDone: false }],
    ["2", { isDone: true }],
  ]);
  const item = await it.leaseItem(transferKey);
  expect(item).toMatchObject({ fence: lease.fencingToken, releasedToken: lease.token });
});

test("one that hands on twice, for its first start's answer was lost, has one execution at work", async () => {
  await transfers.seed(4);
  const workflow = transfers.start();
  const { lease } = await transfers.keeperOf(workflow);
  await it.entered(workflow, "Pause");
  // What the lost start has begun, by its name and with its input.
  const name = `${createHash("sha256").update(lease.token).digest("hex")}-1`;
  // The workflow's handle is as its keeper's first renewal has left the lease.
  const values = it.proxy.requests
    .map(({ body }) => body.ExpressionAttributeValues)
    .find((sent) => sent?.[":ifToken"]?.S === lease.token && sent[":version"]?.N === "2");
  const renewed = { ...lease, version: 2, expiresAt: Number(values?.[":expiresAt"].N) };
  const { executionArn } = it.app.startExecution(batches, { kind: "import", lease: renewed }, name);
  expect(await it.app.finished(workflow)).toMatchObject({ status: "SUCCEEDED" });
  const started = batchesOf(lease.token);
  expect(started.map((execution) => execution.status)).toEqual(started.map(() => "SUCCEEDED"));
  expect(started[0]?.executionArn).toBe(executionArn);
  expect(started.filter((execution) => execution.name === name)).toHaveLength(1);
  expect(await transfers.done()).toBe(4);
});

test("one that is stopped while another execution works for it takes that one with it, and lets the lock go", async () => {
  await transfers.seed(20);
  const workflow = transfers.start();
  const { arn: keeper, lease } = await transfers.keeperOf(workflow);
  await it.entered(workflow, "HandOn");
  it.app.stopExecution(workflow, { error: "Operator", cause: "had enough" });
  expect(await it.app.finished(keeper)).toMatchObject({ status: "SUCCEEDED" });
  const [batch] = batchesOf(lease.token);
  expect(await it.app.finished(batch?.executionArn ?? "")).toMatchObject({ status: "ABORTED" });
  expect(await transfers.holder()).toBeUndefined();
  const chunks = await transfers.done();
  const next = await it.leases.acquire(transferKey);
  expect(await transfers.done()).toBe(chunks);
  expect(await next.release()).toBe(true);
});
