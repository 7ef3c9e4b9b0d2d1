import { BatchWriteCommand, type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Order } from "./orders.ts";
import { openOrderKey, paidOrderKey, partitions, stockKey } from "./schema.ts";

/** What each product has left on the shelf. */
export type Stock = Readonly<Record<string, number>>;

/** An order that was closed unpaid. */
export interface ClosedOrder extends Order {
  readonly closedBy: string;
  readonly fencingToken: number;
  /** How often it was closed. */
  readonly closings: number;
}

/** All that a shop's table holds. */
export interface ShopState {
  readonly open: readonly Order[];
  readonly paid: readonly Order[];
  readonly closed: readonly ClosedOrder[];
  readonly stock: Stock;
}

/** BatchWriteItem takes no more. */
const itemsPerBatch = 25;

/** Fills an empty table. */
export async function seedShop(
  documents: DynamoDBDocumentClient,
  tableName: string,
  state: Omit<ShopState, "closed">,
): Promise<void> {
  const items = [
    ...state.open.map((order) => ({ ...order, ...openOrderKey(order) })),
    ...state.paid.map((order) => ({ ...order, ...paidOrderKey(order.orderId) })),
    ...Object.entries(state.stock).map(([product, available]) => ({ available, ...stockKey(product) })),
  ];
  let requests = items.map((Item) => ({ PutRequest: { Item } }));
  while (requests.length > 0) {
    const { UnprocessedItems } = await documents.send(
      new BatchWriteCommand({ RequestItems: { [tableName]: requests.slice(0, itemsPerBatch) } }),
    );
    const unprocessed = (UnprocessedItems?.[tableName] ?? []) as typeof requests;
    requests = [...unprocessed, ...requests.slice(itemsPerBatch)];
  }
}

/** Reads the whole table, partition by partition, consistently. */
export async function readShop(documents: DynamoDBDocumentClient, tableName: string): Promise<ShopState> {
  const read = async <T>(partition: string): Promise<T[]> => {
    const items: T[] = [];
    const pages = paginateQuery(
      { client: documents },
      {
        TableName: tableName,
        KeyConditionExpression: "pk = :partition",
        ExpressionAttributeValues: { ":partition": partition },
        ConsistentRead: true,
      },
    );
    for await (const { Items = [] } of pages) items.push(...(Items as T[]));
    return items;
  };
  const [open, paid, closed, stock] = await Promise.all([
    read<Order>(partitions.open),
    read<Order>(partitions.paid),
    read<ClosedOrder>(partitions.closed),
    read<{ sk: string; available: number }>(partitions.stock),
  ]);
  return { open, paid, closed, stock: Object.fromEntries(stock.map(({ sk, available }) => [sk, available])) };
}
