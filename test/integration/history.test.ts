import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import type { AttributeValue, DynamoDBRecord } from "aws-lambda";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { recordHistory } from "../../packages/cdk/history/recording.ts";
import { putHistory } from "../../packages/cdk/history/table.ts";
import { adminOf } from "../support/admin.ts";
import { makeTable, type TestTable } from "../support/table.ts";

let table: TestTable;
beforeAll(async () => {
  table = await makeTable(inject("engine"));
});
afterAll(() => table?.close());

it("the function of a history writes what the operator reads, once, from images as the engine has them", async () => {
  const { tableName, dynamodb } = table;
  const key = table.newKey();
  const imageOf = async (): Promise<Record<string, AttributeValue>> => {
    const Key = { pk: { S: key }, sk: { S: "lease" } };
    const { Item } = await dynamodb.send(
      new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }),
    );
    return Item as Record<string, AttributeValue>;
  };
  const client = new LeaseClient({ tableName, dynamodb, owner: "a" });
  const lease = await client.acquire(key, { slot: "1" });
  const held = await imageOf();
  await lease.complete();
  const free = await imageOf();
  const at = { ApproximateCreationDateTime: Date.now() / 1000 };
  const Records: DynamoDBRecord[] = [
    { dynamodb: { NewImage: held, SequenceNumber: "1", ...at } },
    { dynamodb: { OldImage: held, NewImage: free, SequenceNumber: "2", ...at } },
  ];
  const recording = { put: putHistory(dynamodb, tableName), retentionMs: 86_400_000 };
  const operator = new LeaseOperator(client, { by: "reader" });
  for (let time = 1; time <= 2; time += 1) {
    expect(await recordHistory(recording, { Records })).toEqual({ batchItemFailures: [] });
    const told: string[] = [];
    for await (const { what, owner } of operator.history(key)) told.push(`${what} ${owner}`);
    expect(told).toEqual(["acquired a", "completed a"]);
  }
  expect(await adminOf(client).inspectAll(key)).toEqual([]);
});
