/** The tables that all contenders share, and a place of its own on them for each. */
import {
  CreateTableCommand,
  type DynamoDBClientConfig,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import type { Target } from "../../../test/support/proxy.ts";
import { makeTable, sdkClient } from "../../../test/support/table.ts";
import { type Contender, cpuUsOf, type Holding, type LockClient, type Place } from "./contender.ts";

/** Names of tables. */
export type Tables = Pick<Place, "leaseTable" | "plainTable">;

/** Creates a lease table, and one with the key `id` alone. */
export async function createTables(engine: Target): Promise<Tables> {
  const { tableName: leaseTable, dynamodb, close } = await makeTable(engine);
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
  return { leaseTable, plainTable };
}

/** A place with connections of its own. */
export function placeAt(target: Target, tables: Tables): Place {
  return {
    ...tables,
    dynamodb: sdkClient(target),
    clientConfig: target.clientConfig as DynamoDBClientConfig,
  };
}

/** Takes locks that are free, and gives them back. */
export class Cycles {
  readonly #contender: Contender;
  readonly #client: LockClient;
  #taken = 0;

  constructor(contender: Contender, place: Place, holding: Holding) {
    this.#contender = contender;
    this.#client = contender.open(place, holding);
  }

  /** Of its client's process. */
  async cpuUs(): Promise<number> {
    return await cpuUsOf(this.#client);
  }

  /** Takes the lock of this key, and gives it back. What one contender leaves in the table would stop another one. */
  async run(key: string): Promise<void> {
    this.#taken += 1;
    const { id, usesKeysOnce } = this.#contender;
    const lock = await this.#client.acquire(`${id}/${key}${usesKeysOnce ? `#${this.#taken}` : ""}`);
    await lock.release();
  }
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
