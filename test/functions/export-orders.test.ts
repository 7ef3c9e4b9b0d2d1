/** An export under DynamoDB's own limits: a batch of reads may be answered in parts. */
import {
  type BatchGetCommand,
  type DynamoDBDocumentClient,
  TransactWriteCommand,
} from "@aws-sdk/lib-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { expect, test } from "vitest";
import { OrderTransfer } from "../../functions/import-orders/transfer.ts";

const orderIds = ["a", "b", "c", "d", "e"];

/** A table that has these orders, and answers for so many of a batch at a time. */
function tableOf(answersPerBatch: number) {
  const written: unknown[] = [];
  const batches: number[] = [];
  const send = async (command: { readonly input: object }): Promise<object> => {
    if (command.constructor.name === "GetCommand") return { Item: { orderIds } };
    if (command instanceof TransactWriteCommand) {
      written.push(...(command.input.TransactItems ?? []).flatMap(({ Put }) => Put?.Item ?? []));
      return {};
    }
    const { RequestItems = {} } = (command as BatchGetCommand).input;
    const { Keys = [], ConsistentRead } = RequestItems.shop ?? {};
    // A read that lags could miss an order that was imported a moment ago.
    expect(ConsistentRead).toBe(true);
    batches.push(Keys.length);
    const [read, left] = [Keys.slice(0, answersPerBatch), Keys.slice(answersPerBatch)];
    const orders = read.map((key) => {
      const orderId = orderIds.find((one) => Object.values(key).some((part) => String(part).endsWith(one)));
      return { ...key, orderId, product: "tea", quantity: 1 };
    });
    return {
      // In no order.
      Responses: { shop: orders.reverse() },
      UnprocessedKeys: left.length === 0 ? {} : { shop: { Keys: left, ConsistentRead: true } },
    };
  };
  return { documents: { send } as unknown as DynamoDBDocumentClient, written, batches };
}

async function exported(answersPerBatch: number) {
  const table = tableOf(answersPerBatch);
  const client = new LeaseClient({ store: new MemoryLeaseStore(), clock: new ManualClock() });
  const lease = await client.acquire("transfer");
  const transfer = new OrderTransfer(table.documents, "shop");
  const result = transfer.transfer("export", "chunk", lease, () => 60_000);
  return { ...table, ended: await result.catch(({ message }: Error) => message) };
}

test("an export has every order, also where the table answers for a part of them at a time", async () => {
  const { ended, written, batches } = await exported(2);
  expect(ended).toBe("transferred");
  expect(batches).toEqual([5, 3, 1]);
  expect(written).toMatchObject([{ orders: orderIds.map((orderId) => ({ orderId })) }]);
});

test("an export that the table never answers wholly fails, and writes nothing", async () => {
  const { ended, written } = await exported(0);
  expect(ended).toContain("5 orders could not be read");
  expect(written).toEqual([]);
});
