import { GetItemCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { TaskSet } from "../../packages/jobs/src/index.ts";
import { ownTransactionsContract } from "../contract/own-transactions-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

describe("the user's own transactions on the engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  const keyOf = (id: string) => ({ pk: { S: id }, sk: { S: "user" } });
  ownTransactionsContract(
    (clock) => engine.place(clock),
    () => ({
      async write(id, entries) {
        const { tableName: TableName, dynamodb } = engine;
        const Put = { TableName, Item: keyOf(id), ConditionExpression: "attribute_not_exists(pk)" };
        await dynamodb.send(new TransactWriteItemsCommand({ TransactItems: [{ Put }, ...entries] }));
      },
      async has(id) {
        const { tableName: TableName, dynamodb } = engine;
        const asked = { TableName, Key: keyOf(id), ConsistentRead: true };
        return (await dynamodb.send(new GetItemCommand(asked))).Item !== undefined;
      },
    }),
  );

  it("take plain values where the client has a document client", async () => {
    const dynamodb = DynamoDBDocumentClient.from(engine.dynamodb);
    const tasks = new TaskSet(new LeaseClient({ tableName: engine.tableName, dynamodb }), "native");
    const TransactItems = tasks.addEntries([{ id: "1", payload: [1] }]);
    await dynamodb.send(new TransactWriteCommand({ TransactItems }));
    const task = await tasks.claim();
    await task?.succeedIn(async (entries) => {
      await dynamodb.send(new TransactWriteCommand({ TransactItems: entries }));
    });
    expect(await tasks.get("1")).toMatchObject({ state: "succeeded", payload: [1] });
  });
});
