import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { inject } from "vitest";
import { makeTable, type TestTable } from "../support/table.ts";

/** A lease table and a table of a system's own, which nobody else uses. */
export interface SystemTables {
  readonly leases: TestTable;
  readonly documents: DynamoDBDocumentClient;
  readonly tableName: string;
  put(...items: Record<string, unknown>[]): Promise<void>;
  /** All items of the system's table, by `pk/sk`. */
  items(): Promise<Record<string, Record<string, unknown>>>;
  close(): void;
}

/** Makes both; every system's own table has the key `pk` and `sk`, both strings. */
export async function makeSystemTables(): Promise<SystemTables> {
  const dynamodb = new DynamoDBClient(inject("engine").clientConfig);
  const documents = DynamoDBDocumentClient.from(dynamodb);
  const tableName = `system-${crypto.randomUUID()}`;
  const leases = await makeTable(inject("engine"));
  await createLeaseTable({ tableName, dynamodb });
  return {
    leases,
    documents,
    tableName,
    put: async (...items) => {
      for (const Item of items) await documents.send(new PutCommand({ TableName: tableName, Item }));
    },
    items: async () => {
      const { Items = [] } = await documents.send(
        new ScanCommand({ TableName: tableName, ConsistentRead: true }),
      );
      return Object.fromEntries(Items.map((item) => [`${item.pk}/${item.sk}`, item]));
    },
    close: () => {
      leases.close();
      dynamodb.destroy();
    },
  };
}
