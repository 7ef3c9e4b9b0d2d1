import {
  DeleteItemCommand,
  DynamoDBClient,
  PutItemCommand,
  type PutItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { availableEngines, type Engine, startEngine } from "@leasehold/engine";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTable } from "../../tools/local/src/app/tables.ts";
import type { StreamMappingSpec, TableSpec } from "../../tools/local/src/assembly/types.ts";
import type { StreamEventRecord } from "../../tools/local/src/streams/event.ts";
import { StreamPoller } from "../../tools/local/src/streams/poller.ts";
import { until } from "../support/app.ts";

const streamArn = "arn:aws:dynamodb:us-east-1:123456789012:table/Items/stream/x";

describe.for(await availableEngines())("the stream of a table on %s", (name) => {
  let engine: Engine;
  let dynamodb: DynamoDBClient;
  let streams: DynamoDBStreamsClient;
  let tableName: string;
  let engineStreamArn: string;
  const pollers: StreamPoller[] = [];

  beforeAll(async () => {
    engine = await startEngine({ engine: name });
    dynamodb = new DynamoDBClient({ ...engine.clientConfig });
    streams = new DynamoDBStreamsClient({ ...engine.clientConfig });
  });

  beforeEach(async () => {
    tableName = `items-${crypto.randomUUID()}`;
    engineStreamArn = String(await createTable(dynamodb, tableSpec(tableName)));
  });

  afterEach(async () => {
    for (const poller of pollers.splice(0)) await poller.stop();
  });

  afterAll(async () => {
    dynamodb?.destroy();
    streams?.destroy();
    await engine?.stop();
  });

  const put = (id: string, item: PutItemCommandInput["Item"] = {}): Promise<unknown> =>
    dynamodb.send(new PutItemCommand({ TableName: tableName, Item: { ...item, pk: { S: id } } }));
  const remove = (id: string): Promise<unknown> =>
    dynamodb.send(new DeleteItemCommand({ TableName: tableName, Key: { pk: { S: id } } }));

  /** Polls the stream and keeps what the function was given. */
  async function poll(
    rules: Partial<StreamMappingSpec> = {},
  ): Promise<{ batches: StreamEventRecord[][]; records: () => StreamEventRecord[] }> {
    const batches: StreamEventRecord[][] = [];
    const poller = new StreamPoller({
      mapping: { ...mapping, tableName, ...rules },
      client: streams,
      engineStreamArn,
      region: "us-east-1",
      pollMs: 20,
      discoverMs: 500,
      retryDelayMs: 20,
      onFailure: () => {},
      invoke: async ({ Records }) => {
        batches.push([...Records]);
        return { payload: null };
      },
    });
    pollers.push(poller);
    await poller.start();
    return { batches, records: () => batches.flat() };
  }

  test("writes come in order, in the shape that Lambda gives them", async () => {
    const { records } = await poll();
    await put("a", { count: { N: "1" }, raw: { B: Uint8Array.of(1, 2, 3) } });
    await put("a", {
      count: { N: "2" },
      tags: { SS: ["x"] },
      nested: { M: { deep: { L: [{ BOOL: true }] } } },
    });
    await remove("a");
    await until("three records", () => records().length === 3);
    const [inserted, modified, removed] = records();
    const sequence = records().map(({ dynamodb: { SequenceNumber } }) => BigInt(SequenceNumber));

    expect(records().map(({ eventName }) => eventName)).toEqual(["INSERT", "MODIFY", "REMOVE"]);
    expect(inserted).toMatchObject({
      eventSource: "aws:dynamodb",
      awsRegion: "us-east-1",
      eventSourceARN: streamArn,
      dynamodb: {
        Keys: { pk: { S: "a" } },
        NewImage: { pk: { S: "a" }, count: { N: "1" }, raw: { B: "AQID" } },
        StreamViewType: "NEW_AND_OLD_IMAGES",
      },
    });
    expect(inserted?.dynamodb.OldImage).toBeUndefined();
    expect(modified?.dynamodb.NewImage).toEqual({
      pk: { S: "a" },
      count: { N: "2" },
      tags: { SS: ["x"] },
      nested: { M: { deep: { L: [{ BOOL: true }] } } },
    });
    expect(removed?.dynamodb.NewImage).toBeUndefined();
    expect(removed?.dynamodb.OldImage).toMatchObject({ count: { N: "2" } });
    expect(sequence).toEqual(sequence.toSorted((left, right) => (left < right ? -1 : 1)));
    const seconds = Number(inserted?.dynamodb.ApproximateCreationDateTime);
    expect(Math.abs(Date.now() / 1000 - seconds)).toBeLessThan(120);
    expect(JSON.parse(JSON.stringify(records()))).toEqual(records());
  });

  test("a plain delete names nobody, not even of an item past its ttl", async () => {
    const { records } = await poll({ filters: [{ eventName: ["REMOVE"] }] });
    await put("late", { ttl: { N: String(Math.floor(Date.now() / 1000) - 60) } });
    await remove("late");
    await put("other");
    await remove("other");
    await until("two removals", () => records().length >= 2);
    for (const { userIdentity } of records()) expect(userIdentity).toBeUndefined();
  });

  test("from LATEST, only what is written after the start comes", async () => {
    await put("before");
    const { records } = await poll({ startingPosition: "LATEST" });
    await put("after");
    await until("the record", () => records().length > 0);
    expect(records().map(({ dynamodb: { Keys } }) => Keys?.pk?.S)).toEqual(["after"]);
  });

  test("from TRIM_HORIZON, what was written before the start comes too, in batches of the size", async () => {
    for (const id of ["1", "2", "3", "4", "5"]) await put(id);
    const { batches, records } = await poll({ batchSize: 2 });
    await until("all", () => records().length === 5);
    expect(batches.map(({ length }) => length)).toEqual([2, 2, 1]);
  });
});

describe.runIf((await availableEngines()).includes("dynamodb-local"))("ttl", () => {
  // An engine of its own: of nine tables in one DynamoDB Local 3.3, two were never swept.
  test("a removal by ttl names DynamoDB as the one who did it", async () => {
    await using engine = await startEngine({ engine: "dynamodb-local" });
    const dynamodb = new DynamoDBClient({ ...engine.clientConfig });
    const client = new DynamoDBStreamsClient({ ...engine.clientConfig });
    const engineStreamArn = await createTable(dynamodb, tableSpec("items"));
    const records: StreamEventRecord[] = [];
    const poller = new StreamPoller({
      mapping: { ...mapping, tableName: "items", filters: [{ eventName: ["REMOVE"] }] },
      client,
      engineStreamArn: String(engineStreamArn),
      region: "us-east-1",
      retryDelayMs: 20,
      onFailure: () => {},
      invoke: async ({ Records }) => {
        records.push(...Records);
        return { payload: null };
      },
    });
    await poller.start();
    const ttl = { N: String(Math.floor(Date.now() / 1000) - 60) };
    await dynamodb.send(new PutItemCommand({ TableName: "items", Item: { pk: { S: "expired" }, ttl } }));
    await until("the sweep", () => records.length > 0);
    await poller.stop();
    dynamodb.destroy();
    client.destroy();
    expect(records[0]).toMatchObject({
      eventName: "REMOVE",
      userIdentity: { type: "Service", principalId: "dynamodb.amazonaws.com" },
      dynamodb: { OldImage: { pk: { S: "expired" } } },
    });
  });
});

const mapping: StreamMappingSpec = {
  stack: "Test",
  logicalId: "Mapping",
  path: undefined,
  name: "Mapping",
  arn: "arn",
  streamArn,
  tableName: "",
  functionName: "fn",
  enabled: true,
  batchSize: 100,
  startingPosition: "TRIM_HORIZON",
  filters: [],
  retries: 3,
  reportsItemFailures: false,
  onFailureArn: undefined,
};

function tableSpec(name: string): TableSpec {
  return {
    stack: "Test",
    logicalId: "Items",
    path: undefined,
    name,
    arn: "arn",
    streamArn,
    properties: {
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
      StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
      TimeToLiveSpecification: { AttributeName: "ttl" },
    },
  };
}
