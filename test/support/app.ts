import { DeleteItemCommand, ScanCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { attributeNames, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import type { Engine } from "@leasehold/engine";
import { type LocalApp, type LocalAppEvent, type LocalAppOptions, startApp } from "@leasehold/local";
import { inject } from "vitest";
import { sharedAssembly } from "./assembly.ts";
import { engineAt } from "./engine-at.ts";
import { patienceMs } from "./patience.ts";
import { type Proxy as EngineProxy, startProxy } from "./proxy.ts";
import { sdkClient } from "./table.ts";

/** What the app calls its lease table. */
export const leaseTable = "Leases/Resource";

/** An item as plain values. */
export type PlainItem = Readonly<Record<string, unknown>>;

/** The app of this repository, with tables of its own, and everything to look into it and to disturb it. */
export interface TestApp extends AsyncDisposable {
  readonly app: LocalApp;
  /** All that the app says to DynamoDB goes through here; what the test says does not. */
  readonly proxy: EngineProxy;
  /** A lease client for the app's lease table: somebody else. */
  readonly leases: LeaseClient;
  readonly documents: DynamoDBDocumentClient;
  /** Everything that has happened in the app. */
  readonly events: readonly LocalAppEvent[];
  /** All items of a table, in the order of their keys. */
  items(tableId: string): Promise<PlainItem[]>;
  /** A lock's item as it stands, with its history of slots and tokens. */
  leaseItem(key: string): Promise<PlainItem | undefined>;
  /** Sets the time from which DynamoDB may collect a lock's item. */
  collectFrom(key: string, epochSeconds: number): Promise<void>;
  /** Deletes a lock's item, as a person might. */
  deleteItem(key: string): Promise<void>;
  /** Resolves when an execution has entered a state so many times. */
  entered(executionArn: string, stateName: string, times?: number): Promise<void>;
  /** The values of a metric, for one value of the dimension `Job`, or without one. */
  metric(name: string, job?: string): number[];
}

/** Starts the app, whose schedules the tests fire. The engine is the one of the run, unless a test has its own. */
export async function startTestApp(
  options: Partial<LocalAppOptions> = {},
  engine: Pick<Engine, "clientConfig"> = inject("engine"),
): Promise<TestApp> {
  const cleanups = new AsyncDisposableStack();
  try {
    const { assemblyDir = await sharedAssembly() } = options;
    const proxy = cleanups.adopt(await startProxy(engine), (started) => started.close());
    const dynamodb = cleanups.adopt(sdkClient(engine), (client) => client.destroy());
    const events: LocalAppEvent[] = [];
    const app = cleanups.use(
      await startApp({
        engine: engineAt(proxy.clientConfig, inject("engine")),
        tableSuffix: `-${crypto.randomUUID().slice(0, 8)}`,
        streamRetryDelayMs: 20,
        asyncRetryDelayMs: 20,
        onEvent: (event) => events.push(event),
        ...options,
        assemblyDir,
      }),
    );
    const tableName = app.tableName(leaseTable);
    const keyOf = (key: string) => marshall(leaseItemKey(key));
    const items = async (tableId: string): Promise<PlainItem[]> => {
      const scan = new ScanCommand({ TableName: app.tableName(tableId), ConsistentRead: true });
      const { Items = [] } = await dynamodb.send(scan);
      // Conformance checks write numbers that unmarshall would refuse: acceptance runs them on the app's table.
      return Items.map((item) => unmarshall(item, { wrapNumbers: Number })).sort((a, b) =>
        placeOf(a) < placeOf(b) ? -1 : 1,
      );
    };
    return {
      app,
      proxy,
      events,
      leases: new LeaseClient({ tableName, dynamodb, owner: "somebody else" }),
      documents: DynamoDBDocumentClient.from(dynamodb),
      items,
      leaseItem: async (key) =>
        (await items(tableName)).find(({ pk, sk }) => pk === key && sk === leaseSortKey),
      collectFrom: async (key, epochSeconds) => {
        await dynamodb.send(
          new UpdateItemCommand({
            TableName: tableName,
            Key: keyOf(key),
            UpdateExpression: "SET #ttl = :ttl",
            ExpressionAttributeNames: { "#ttl": attributeNames.timeToLive },
            ExpressionAttributeValues: { ":ttl": { N: String(epochSeconds) } },
          }),
        );
      },
      deleteItem: async (key) => {
        await dynamodb.send(new DeleteItemCommand({ TableName: tableName, Key: keyOf(key) }));
      },
      entered: (executionArn, stateName, times = 1) =>
        until(`${times} × ${stateName}`, () => {
          const { entered } = app.history(executionArn);
          return entered.filter((state) => state.stateName === stateName).length >= times;
        }),
      metric: (name, job) =>
        events.flatMap((event) => {
          if (event.type !== "metric" || event.metric.name !== name) return [];
          return event.metric.dimensions.Job === job ? [event.metric.value] : [];
        }),
      [Symbol.asyncDispose]: () => cleanups.disposeAsync(),
    };
  } catch (error) {
    await cleanups.disposeAsync();
    throw error;
  }
}

/** Waits until a condition holds; rejects when patience is over, with what it waited for. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function placeOf({ pk, sk }: PlainItem): string {
  return JSON.stringify([pk, sk]);
}
