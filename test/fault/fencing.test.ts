import {
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import type { CommandValues, Fence, Lease, LeaseConditionCheck } from "@leasehold/client";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { makeTable } from "../support/table.ts";

const table = await makeTable(inject("engine"));
/** The user's own table; it happens to have the same key. */
const items = await makeTable(inject("engine"));
const TableName = items.tableName;
const documents = DynamoDBDocumentClient.from(table.dynamodb);

afterAll(() => {
  table.close();
  items.close();
});

/** The same writes in the two forms in which the SDK takes them. */
const forms = {
  DynamoDBClient: {
    dynamodb: table.dynamodb,
    put: (id: string, text: string, { attributes, ConditionExpression, ...rest }: Fence) => {
      const { UpdateExpression: _, ...values } = rest;
      const Item = { ...keyOf(id), text: { S: text }, ...attributes };
      return table.dynamodb.send(new PutItemCommand({ TableName, Item, ConditionExpression, ...values }));
    },
    update: (id: string, text: string, fence: Fence) =>
      table.dynamodb.send(
        new UpdateItemCommand({
          TableName,
          Key: keyOf(id),
          UpdateExpression: `${fence.UpdateExpression}, #text = :text`,
          ConditionExpression: fence.ConditionExpression,
          ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#text": "text" },
          ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":text": { S: text } },
        }),
      ),
    remove: (
      id: string,
      { ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues }: Fence,
    ) =>
      table.dynamodb.send(
        new DeleteItemCommand({
          TableName,
          Key: keyOf(id),
          ConditionExpression,
          ExpressionAttributeNames,
          ExpressionAttributeValues,
        }),
      ),
    transact: (id: string, text: string, check: LeaseConditionCheck) =>
      table.dynamodb.send(
        new TransactWriteItemsCommand({
          TransactItems: [check, { Put: { TableName, Item: { ...keyOf(id), text: { S: text } } } }],
        }),
      ),
  },
  DynamoDBDocumentClient: {
    dynamodb: documents,
    put: (id: string, text: string, { attributes, ConditionExpression, ...rest }: Fence) => {
      const { UpdateExpression: _, ...values } = rest;
      const Item = { pk: id, sk: "item", text, ...attributes };
      return documents.send(new PutCommand({ TableName, Item, ConditionExpression, ...values }));
    },
    update: (id: string, text: string, fence: Fence) =>
      documents.send(
        new UpdateCommand({
          TableName,
          Key: { pk: id, sk: "item" },
          UpdateExpression: `${fence.UpdateExpression}, #text = :text`,
          ConditionExpression: fence.ConditionExpression,
          ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#text": "text" },
          ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":text": text },
        }),
      ),
    remove: (
      id: string,
      { ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues }: Fence,
    ) =>
      documents.send(
        new DeleteCommand({
          TableName,
          Key: { pk: id, sk: "item" },
          ConditionExpression,
          ExpressionAttributeNames,
          ExpressionAttributeValues,
        }),
      ),
    transact: (id: string, text: string, check: LeaseConditionCheck) =>
      documents.send(
        new TransactWriteCommand({
          TransactItems: [check, { Put: { TableName, Item: { pk: id, sk: "item", text } } }],
        }),
      ),
  },
};

function keyOf(id: string): CommandValues {
  return { pk: { S: id }, sk: { S: "item" } };
}

async function read(id: string): Promise<Record<string, unknown> | undefined> {
  const { Item } = await documents.send(
    new GetCommand({ TableName, Key: { pk: id, sk: "item" }, ConsistentRead: true }),
  );
  return Item;
}

const refused = { name: "ConditionalCheckFailedException" };

describe.each(["DynamoDBClient", "DynamoDBDocumentClient"] as const)("through a %s", (form) => {
  const { dynamodb, put, update, remove, transact } = forms[form];
  const client = table.client({ dynamodb });
  /** Was broken, and does not know. */
  let stale: Lease;
  let current: Lease;
  let id: string;

  beforeEach(async () => {
    id = table.newKey();
    stale = await client.acquire(id);
    await adminOf(table.client()).forceRelease(id, { token: stale.token });
    current = await client.acquire(id);
    expect(stale.held).toBe(true);
  });

  test("fenced writes pass for the current holder, again and again, and fail for a stale one", async () => {
    await put(id, "earlier", stale.fence());
    await update(id, "first", current.fence());
    await expect(put(id, "stale", stale.fence())).rejects.toMatchObject(refused);
    await expect(update(id, "stale", stale.fence())).rejects.toMatchObject(refused);
    await expect(remove(id, stale.fence())).rejects.toMatchObject(refused);
    expect(await read(id)).toMatchObject({ text: "first", fence: current.fencingToken });
    await put(id, "second", current.fence());
    await update(id, "third", current.fence());
    expect(await read(id)).toMatchObject({ text: "third", fence: current.fencingToken });
    await remove(id, current.fence());
    expect(await read(id)).toBeUndefined();
  });

  test("the fence can be kept in an attribute of any name, a reserved word included", async () => {
    await put(id, "first", current.fence({ attribute: "number" }));
    await expect(update(id, "stale", stale.fence({ attribute: "number" }))).rejects.toMatchObject(refused);
    expect(await read(id)).toMatchObject({ text: "first", number: current.fencingToken });
  });

  test("a transaction with the condition check passes for the current holder alone, as long as it holds the lease", async () => {
    const check = current.conditionCheck();
    await transact(id, "first", check);
    const failure = await transact(id, "stale", stale.conditionCheck()).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      name: "TransactionCanceledException",
      CancellationReasons: [{ Code: "ConditionalCheckFailed" }, { Code: "None" }],
    });
    // It does not disturb the lease.
    await current.renew();
    expect(await current.release()).toBe(true);
    await expect(transact(id, "late", check)).rejects.toMatchObject({ name: "TransactionCanceledException" });
    expect(await read(id)).toMatchObject({ text: "first" });
  });
});

test("the form of the values can be asked for, whatever client the leases go through", async () => {
  const lease = await table.client({ dynamodb: documents }).acquire(table.newKey());
  await forms.DynamoDBClient.put(lease.key, "first", lease.fence({ format: "attributeValue" }));
  await forms.DynamoDBClient.transact(
    lease.key,
    "second",
    lease.conditionCheck({ format: "attributeValue" }),
  );
  const { Item } = await table.dynamodb.send(new GetItemCommand({ TableName, Key: keyOf(lease.key) }));
  expect(Item).toMatchObject({ text: { S: "second" } });
});
