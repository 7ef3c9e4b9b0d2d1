/**
 * What is compared: a way to take a lock on DynamoDB and to give it back, and what it cannot do. And the tables that all
 * contenders share, with a place of its own on them for each.
 */
import {
  CreateTableCommand,
  type DynamoDBClient,
  type DynamoDBClientConfig,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { startProxy, type Target } from "../../../test/support/proxy.ts";
import { makeTable, sdkClient } from "../../../test/support/table.ts";

/** Where contenders work: on the engine, or on a proxy in front of it. */
export interface Place {
  /** One for each contender: with one set of connections. */
  readonly dynamodb: DynamoDBClient;
  /** The settings of that client, for what does not use the SDK. */
  readonly clientConfig: DynamoDBClientConfig;
  /** The lease table: `pk` and `sk`. */
  readonly leaseTable: string;
  /** A table with the one key `id`, as the others document it. */
  readonly plainTable: string;
}

/** How a contender holds its locks. */
export interface Holding {
  readonly leaseDurationMs: number;
  /** Renews each lock so often; undefined: never. */
  readonly heartbeatMs?: number;
}

/** A lock that is held. */
export interface HeldLock {
  release(): Promise<unknown>;
}

/** A process that is not this one. */
export interface OtherProcess {
  /** Since its start. */
  used(): Promise<{ readonly cpuUs: number; readonly requests: number }>;
  /** After a collection of garbage. */
  heapBytes(): Promise<number>;
}

/** A contender at work: as if it were alone in its process. */
export interface LockClient {
  /** @default - this process */
  readonly runsIn?: OtherProcess;
  /** Takes the lock, and waits for it in the contender's own way. */
  acquire(key: string): Promise<HeldLock>;
  /** Ends every wait and every heartbeat; the SDK client stays. */
  close(): Promise<void> | void;
}

/** What not every contender does. */
export type Ability = "takeOver" | "handOver" | "hold" | "bundle";

/** A lock that is compared, or the floor. */
export interface Contender {
  readonly id: string;
  /** Short, for tables: docs/benchmarks.md says what it is. */
  readonly name: string;
  /** Why the cell is empty where a contender has nothing to show. */
  readonly cannot: Partial<Record<Ability, string>>;
  open(place: Place, holding: Holding): LockClient;
}

/** The engine, or a proxy in front of it, with the tables that all contenders share. */
export interface Site extends Target, Pick<Place, "leaseTable" | "plainTable"> {}

/** Creates a lease table, and one with the key `id` alone. */
export async function createTables({ clientConfig }: Target): Promise<Site> {
  const { tableName: leaseTable, dynamodb, close } = await makeTable({ clientConfig });
  const plainTable = `plain-${crypto.randomUUID()}`;
  await dynamodb.send(
    new CreateTableCommand({
      TableName: plainTable,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    }),
  );
  await waitUntilTableExists({ client: dynamodb, minDelay: 1, maxWaitTime: 30 }, { TableName: plainTable });
  close();
  return { clientConfig, leaseTable, plainTable };
}

/** A place with connections of its own. */
export function placeAt(site: Site): Place {
  const { clientConfig, leaseTable, plainTable } = site;
  return { dynamodb: sdkClient(site), clientConfig, leaseTable, plainTable };
}

/** A place whose requests go through a proxy of its own. */
export interface ProxiedPlace extends Place {
  readonly proxy: Awaited<ReturnType<typeof startProxy>>;
}

/** Uses a place behind a proxy, and takes both away. */
export async function behindProxy<Result>(
  site: Site,
  use: (place: ProxiedPlace) => Promise<Result>,
): Promise<Result> {
  const proxy = await startProxy(site);
  const place = placeAt({ ...site, clientConfig: proxy.clientConfig });
  const result = await use({ ...place, proxy });
  place.dynamodb.destroy();
  await proxy.close();
  return result;
}

/** Runs `count` cycles, so many at a time. */
export async function inParallel(
  atATime: number,
  count: number,
  run: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      await run(index);
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}
