import {
  BatchGetCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  QueryCommand,
} from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { type TransactItems, transact } from "../support/transactions.ts";
import {
  doneKey,
  gateKey,
  mostOrdersPerChunk,
  orderKey,
  pendingKey,
  pendingPartition,
  type TransferKind,
} from "./schema.ts";

/** An order as it comes in and goes out. */
export interface TransferredOrder {
  readonly orderId: string;
  readonly product: string;
  readonly quantity: number;
}

/**
 * The result of a chunk.
 *
 * - `transferred`: it is done.
 * - `alreadyDone`: it was done before, or there is no such chunk; nothing was changed.
 * - `fencedOff`: a later holder of the lock has written; nothing was changed.
 */
export type ChunkResult = "transferred" | "alreadyDone" | "fencedOff";

/** A chunk that cannot be transferred as it is. It stops the run, and is not passed over. */
export class UnusableChunkError extends Error {
  override readonly name = "UnusableChunkError";
  readonly chunk: string;

  constructor(chunk: string, problem: string) {
    super(`the chunk ${JSON.stringify(chunk)} ${problem}: correct it, or remove it; the run stops there`);
    this.chunk = chunk;
  }
}

/** The entries of a transaction that can be refused; then come the chunk's own. */
const gateEntry = 0;
const pendingEntry = 1;
const mostConflictingReads = 5;

/**
 * Moves orders in and out of a table, chunk by chunk.
 *
 * A chunk is one transaction that begins at the gate: an item which every write passes and which remembers the highest
 * fencing token. A holder whose lock was taken over is refused there, however late it wakes, also for chunks that its
 * successor has not come to yet. Dies between two chunks, and the next run goes on with what is pending; dies within
 * one, and the transaction has landed or not.
 */
export class OrderTransfer {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Gives the first chunk that waits, in the order of their names; undefined when there is none. */
  async nextChunk(kind: TransferKind): Promise<string | undefined> {
    const { Items } = await this.#documents.send(
      new QueryCommand({
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :pending",
        ExpressionAttributeValues: { ":pending": pendingPartition(kind) },
        ConsistentRead: true,
        Limit: 1,
      }),
    );
    return Items?.[0]?.sk as string | undefined;
  }

  /**
   * Transfers one chunk, once and for all, unless a later holder of the lock has written in the meantime. Rejects with
   * {@link UnusableChunkError} where it is not a chunk that can be transferred.
   */
  async transfer(
    kind: TransferKind,
    chunk: string,
    lease: Lease,
    remainingMs: () => number,
  ): Promise<ChunkResult> {
    const { Item } = await this.#documents.send(
      new GetCommand({ TableName: this.#tableName, Key: pendingKey(kind, chunk), ConsistentRead: true }),
    );
    if (Item === undefined) return "alreadyDone";
    const work =
      kind === "import"
        ? this.#importing(chunk, ordersOf(chunk, Item.orders), lease)
        : await this.#exporting(chunk, orderIdsOf(chunk, Item.orderIds), lease);
    const pending = {
      TableName: this.#tableName,
      Key: pendingKey(kind, chunk),
      ConditionExpression: "attribute_exists(pk)",
    };
    const refused = await transact(
      this.#documents,
      [this.#throughTheGate(lease), { Delete: pending }, ...work],
      { remainingMs },
    );
    if (refused.includes(gateEntry)) return "fencedOff";
    if (refused.includes(pendingEntry)) return "alreadyDone";
    return "transferred";
  }

  #throughTheGate(lease: Lease): TransactItems[number] {
    const { attributes: _forPuts, ...fence } = lease.fence({ format: "native" });
    return { Update: { TableName: this.#tableName, Key: gateKey, ...fence } };
  }

  #importing(chunk: string, orders: readonly TransferredOrder[], lease: Lease): TransactItems {
    const TableName = this.#tableName;
    return [
      {
        Put: { TableName, Item: { ...doneKey("import", chunk), ...signature(lease), orders: orders.length } },
      },
      ...orders.map((order) => ({
        Put: { TableName, Item: { ...orderKey(order.orderId), ...order, ...signature(lease) } },
      })),
    ];
  }

  async #exporting(chunk: string, orderIds: readonly string[], lease: Lease): Promise<TransactItems> {
    const orders = await this.#read(orderIds);
    const Item = { ...doneKey("export", chunk), ...signature(lease), orders };
    return [{ Put: { TableName: this.#tableName, Item } }];
  }

  async #read(orderIds: readonly string[]): Promise<readonly TransferredOrder[]> {
    const orders: TransferredOrder[] = [];
    let keys: Record<string, unknown>[] = orderIds.map((orderId) => ({ ...orderKey(orderId) }));
    for (let attempt = 1; keys.length > 0; attempt++) {
      if (attempt > mostConflictingReads)
        throw new Error(`${keys.length} orders could not be read: too busy`);
      const { Responses, UnprocessedKeys } = await this.#documents.send(
        new BatchGetCommand({ RequestItems: { [this.#tableName]: { Keys: keys, ConsistentRead: true } } }),
      );
      for (const item of Responses?.[this.#tableName] ?? []) {
        const { orderId, product, quantity } = item as TransferredOrder;
        orders.push({ orderId, product, quantity });
      }
      keys = UnprocessedKeys?.[this.#tableName]?.Keys ?? [];
    }
    return orders.sort((a, b) => (a.orderId < b.orderId ? -1 : 1));
  }
}

function signature({ owner, fencingToken }: Lease): { readonly by: string; readonly fencingToken: number } {
  return { by: owner, fencingToken };
}

function ordersOf(chunk: string, list: unknown): readonly TransferredOrder[] {
  const orders = listOf<TransferredOrder>(chunk, list);
  checkIds(
    chunk,
    orders.map((order) => (order as Partial<TransferredOrder> | null)?.orderId),
  );
  return orders;
}

function orderIdsOf(chunk: string, list: unknown): readonly string[] {
  const orderIds = listOf<string>(chunk, list);
  checkIds(chunk, orderIds);
  return orderIds;
}

function listOf<T>(chunk: string, list: unknown): readonly T[] {
  if (Array.isArray(list) && list.length <= mostOrdersPerChunk) return list;
  throw new UnusableChunkError(chunk, `has no list of at most ${mostOrdersPerChunk} orders`);
}

/** DynamoDB takes an item once in a transaction, and would not say which one came twice. */
function checkIds(chunk: string, orderIds: readonly unknown[]): void {
  const seen = new Set<string>();
  for (const [index, orderId] of orderIds.entries()) {
    if (typeof orderId !== "string" || orderId === "")
      throw new UnusableChunkError(chunk, `has no orderId at ${index}`);
    if (seen.has(orderId))
      throw new UnusableChunkError(chunk, `names the order ${JSON.stringify(orderId)} twice`);
    seen.add(orderId);
  }
}
