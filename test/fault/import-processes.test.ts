// @module-tag long
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { DynamoDBDocumentClient, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { leaseSortKey } from "@leasehold/client/schema";
import { expect, inject, type TestContext, test } from "vitest";
import { doneKey, pendingKey, transferKey } from "../../functions/import-orders/schema.ts";
import { kindOf } from "../support/lease-writes.ts";
import { messageFrom, startScript } from "../support/processes.ts";
import { type Matcher, startProxy } from "../support/proxy.ts";
import { errorIn, type HeldRequest, hold } from "../support/proxy-behaviours.ts";
import { makeTable } from "../support/table.ts";
import { takeableAt } from "../support/watching.ts";
import type { ImportReport, ImportRunnerConfig } from "./fixtures/import-runner.ts";

/** A tenth of a second stands for a minute. */
const leaseDurationMs = 5_000;
const engine = inject("engine");

function imports(chunk: string): Matcher {
  return ({ operation, body }) =>
    operation === "TransactWriteItems" && JSON.stringify(body).includes(`"sk":{"S":"${chunk}"}`);
}

/** Tables and a way to them that no other test uses: these tests mostly wait, and do so side by side. */
async function makeImports({ onTestFinished }: TestContext) {
  const proxy = await startProxy(engine);
  const table = await makeTable(engine);
  const orders = await makeTable(engine);
  const documents = DynamoDBDocumentClient.from(orders.dynamodb);
  onTestFinished(async () => {
    table.close();
    orders.close();
    await proxy.close();
  });
  const releases: Matcher = ({ operation, body }) =>
    operation === "UpdateItem" &&
    body.TableName === table.tableName &&
    body.Key.sk.S === leaseSortKey &&
    kindOf({ values: body.ExpressionAttributeValues }) === "end";
  return {
    table,
    releases,
    /** A process that imports, and does not give up before it has had the lock. */
    startRunner: (owner: string, { waits }: { readonly waits: boolean }): ChildProcess => {
      const config: ImportRunnerConfig = {
        clientConfig: proxy.clientConfig,
        tableName: table.tableName,
        ordersTable: orders.tableName,
        owner,
        leaseDurationMs,
        waits,
      };
      const script = new URL("./fixtures/import-runner.ts", import.meta.url);
      const runner = startScript(script, config, { ipc: true });
      onTestFinished(() => {
        runner.kill("SIGKILL");
      });
      return runner;
    },
    seed: async (chunks: readonly string[]): Promise<void> => {
      for (const chunk of chunks) {
        const Item = {
          ...pendingKey("import", chunk),
          orders: [{ orderId: chunk, product: "mug", quantity: 1 }],
        };
        await documents.send(new PutCommand({ TableName: orders.tableName, Item }));
      }
    },
    /** Who has imported each chunk. */
    doneBy: async (): Promise<Record<string, unknown>> => {
      const { Items = [] } = await documents.send(
        new ScanCommand({ TableName: orders.tableName, ConsistentRead: true }),
      );
      const { pk } = doneKey("import", "");
      return Object.fromEntries(Items.filter((item) => item.pk === pk).map(({ sk, by }) => [sk, by]));
    },
    /** Keeps back the next request that matches, and resolves when it is there. */
    standing: async (matches: Matcher): Promise<HeldRequest> => {
      const request = hold();
      proxy.next(matches, request);
      await proxy.arrival(matches);
      return request;
    },
  };
}

test.concurrent.for([["killed"], ["frozen"]] as const)(
  "A, %s on a lease of 30 minutes, writes at 32: B has taken over at 30, A's write is fenced off, and its release touches nothing",
  async ([mishap], context) => {
    const { table, startRunner, seed, doneBy, standing } = await makeImports(context);
    await seed(["1", "2", "3"]);
    const b = startRunner("B", { waits: true });
    const a = startRunner("A", { waits: false });
    const report = messageFrom<ImportReport>(a).catch(() => undefined);
    const aWrite = await standing(imports("2"));
    a.kill(mishap === "killed" ? "SIGKILL" : "SIGSTOP");
    if (mishap === "killed") await once(a, "exit");
    const stoppedAt = Date.now();
    const before = await table.client().inspect(transferKey);

    const bReport = messageFrom<ImportReport>(b);
    b.send("begin");
    const bWrite = await standing(imports("3"));
    const held = await table.client().inspect(transferKey);
    expect(held).toMatchObject({ owner: "B" });
    expect(held?.acquiredAt).toBeGreaterThanOrEqual(takeableAt(before, stoppedAt));
    const { body } = await aWrite.letGo();
    expect(JSON.parse(body).CancellationReasons[0]).toMatchObject({ Code: "ConditionalCheckFailed" });

    if (mishap === "frozen") {
      a.kill("SIGCONT");
      expect(await report).toMatchObject({ outcome: { result: "lost", chunks: 1 } });
    }
    expect(await table.client().inspect(transferKey)).toEqual(held);
    expect(await doneBy()).toEqual({ 1: "A", 2: "B" });
    await bWrite.letGo();
    const { outcome, skipped } = await bReport;
    expect(outcome).toMatchObject({ result: "ran", chunks: 2, isUnfinished: false });
    expect(skipped).toBeGreaterThan(0);
    expect(await doneBy()).toEqual({ 1: "A", 2: "B", 3: "B" });
    expect(await table.client().inspect(transferKey)).toBeUndefined();
  },
);

test.concurrent("A, whose release is under way for longer than its lease, frees nothing: B has the lock by then", async (context) => {
  const { table, releases, startRunner, seed, doneBy, standing } = await makeImports(context);
  await seed(["1"]);
  const a = startRunner("A", { waits: false });
  const report = messageFrom<ImportReport>(a);
  const release = await standing(releases);
  a.kill("SIGSTOP");
  await seed(["2"]);
  const b = startRunner("B", { waits: false });
  const bReport = messageFrom<ImportReport>(b);
  const bWrite = await standing(imports("2"));
  const held = await table.client().inspect(transferKey);
  expect(held?.owner).toBe("B");

  expect(errorIn(await release.letGo())).toBe("ConditionalCheckFailedException");
  a.kill("SIGCONT");
  expect((await report).outcome).toMatchObject({ result: "ran", chunks: 1 });
  expect(await table.client().inspect(transferKey)).toEqual(held);
  await bWrite.letGo();
  expect((await bReport).outcome).toMatchObject({ result: "ran", chunks: 1 });
  expect(await doneBy()).toEqual({ 1: "A", 2: "B" });
});
