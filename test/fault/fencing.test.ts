import {
  DeleteItemCommand,
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
import { marshall } from "@aws-sdk/util-dynamodb";
import type { Fence, Lease, LeaseConditionCheck } from "@leasehold/client";
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

/** What the two clients of the SDK differ in: their commands, and the form of their values. */
const forms = {
  DynamoDBClient: {
    dynamodb: table.dynamodb,
    commands: [PutItemCommand, UpdateItemCommand, DeleteItemCommand, TransactWriteItemsCommand],
    values: marshall,
  },
  DynamoDBDocumentClient: {
    dynamodb: documents,
    commands: [PutCommand, UpdateCommand, DeleteCommand, TransactWriteCommand],
    values: (item: object) => item,
  },
} as const;

/** The same writes through either. */
function writesOf({ dynamodb, commands, values }: (typeof forms)[keyof typeof forms]) {
  const [Put, Update, Delete, Transact] = commands;
  const keyOf = (id: string) => ({ pk: id, sk: "item" });
  // The commands of a form take its values: the types do not tell that the two belong together.
  const client = dynamodb as { send(command: object): Promise<unknown> };
  const send = (Command: new (input: never) => object, input: object) =>
    client.send(new Command(input as never));
  return {
    put: (id: string, text: string, { attributes, UpdateExpression: _, ...fence }: Fence) =>
      send(Put, { TableName, Item: { ...values({ ...keyOf(id), text }), ...attributes }, ...fence }),
    update: (id: string, text: string, { attributes: _, ...fence }: Fence) =>
      send(Update, {
        ...{ TableName, Key: values(keyOf(id)), ...fence },
        UpdateExpression: `${fence.UpdateExpression}, #text = :text`,
        ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#text": "text" },
        ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ...values({ ":text": text }) },
      }),
    remove: (id: string, { attributes: _, UpdateExpression: __, ...fence }: Fence) =>
      send(Delete, { TableName, Key: values(keyOf(id)), ...fence }),
    transact: (id: string, text: string, check: LeaseConditionCheck) =>
      send(Transact, {
        TransactItems: [check, { Put: { TableName, Item: values({ ...keyOf(id), text }) } }],
      }),
  };
}

async function read(id: string): Promise<Record<string, unknown> | undefined> {
  const { Item } = await documents.send(
    new GetCommand({ TableName, Key: { pk: id, sk: "item" }, ConsistentRead: true }),
  );
  return Item;
}

const refused = { name: "ConditionalCheckFailedException" };

describe.each(["DynamoDBClient", "DynamoDBDocumentClient"] as const)("through a %s", (form) => {
  const { put, update, remove, transact } = writesOf(forms[form]);
  const client = table.client({ dynamodb: forms[form].dynamodb });
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
  const { put, transact } = writesOf(forms.DynamoDBClient);
  await put(lease.key, "first", lease.fence({ format: "attributeValue" }));
  await transact(lease.key, "second", lease.conditionCheck({ format: "attributeValue" }));
  expect(await read(lease.key)).toMatchObject({ text: "second" });
});
