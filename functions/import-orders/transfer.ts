import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  QueryCommand,
} from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { warn } from "../support/leases.ts";
import { putBack, type TransactItems, transact } from "../support/transactions.ts";
import {
  chunkParkedMessage,
  doneKey,
  gateKey,
  mostOrdersPerChunk,
  orderKey,
  parkedKey,
  pendingKey,
  pendingPartition,
  type TransferItemKey,
  type TransferKind,
  transferKey,
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
 * - `parked`: it cannot be transferred as it is. It is kept apart with the reason, and does not block other chunks.
 * - `alreadyDone`: it was done before, or there is no such chunk; nothing was changed.
 * - `fencedOff`: a later holder of the lock has written; nothing was changed.
 */
export type ChunkResult = "transferred" | "parked" | "alreadyDone" | "fencedOff";

/** A parked chunk's item: it contains the chunk's own item unchanged. */
interface ParkedChunk extends TransferItemKey {
  /** Why it cannot be transferred. */
  readonly problem: string;
  /** The owner that found it, and its fencing token of the lock. */
  readonly by: string;
  readonly fencingToken: number;
  readonly item: Readonly<Record<string, unknown>>;
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
   * Transfers one chunk, once and for all, unless a later holder of the lock has written in the meantime. A chunk that
   * cannot be transferred is parked under the same fence: otherwise it would come first in every run.
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
    const problem = kind === "import" ? problemOfOrders(Item.orders) : problemOfIds(Item.orderIds);
    if (problem !== undefined) return await this.#park(kind, chunk, Item, problem, lease, remainingMs);
    try {
      const work =
        kind === "import"
          ? this.#importing(chunk, Item.orders as readonly TransferredOrder[], lease)
          : await this.#exporting(chunk, Item.orderIds as readonly string[], lease);
      return (await this.#move(kind, chunk, lease, work, remainingMs)) ?? "transferred";
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return await this.#park(kind, chunk, Item, `DynamoDB refuses it: ${error.message}`, lease, remainingMs);
    }
  }

  /** Puts a parked chunk back among those that wait, as it was: 2 requests. Tells whether it was there. */
  async putBack(kind: TransferKind, chunk: string, remainingMs: () => number): Promise<boolean> {
    return await putBack(this.#documents, this.#tableName, parkedKey(kind, chunk), { remainingMs });
  }

  async #park(
    kind: TransferKind,
    chunk: string,
    item: ParkedChunk["item"],
    problem: string,
    lease: Lease,
    remainingMs: () => number,
  ): Promise<ChunkResult> {
    const Item: ParkedChunk = { ...parkedKey(kind, chunk), ...signature(lease), problem, item };
    const put = { Put: { TableName: this.#tableName, Item } };
    const gone = await this.#move(kind, chunk, lease, [put], remainingMs);
    if (gone !== undefined) return gone;
    warn(chunkParkedMessage, { job: transferKey, kind, chunk, problem });
    return "parked";
  }

  /** Takes a chunk from those that wait, through the gate, together with what becomes of it; gives what refused that. */
  async #move(
    kind: TransferKind,
    chunk: string,
    lease: Lease,
    work: TransactItems,
    remainingMs: () => number,
  ): Promise<"fencedOff" | "alreadyDone" | undefined> {
    const pending = {
      TableName: this.#tableName,
      Key: pendingKey(kind, chunk),
      ConditionExpression: "attribute_exists(pk)",
    };
    const entries = [this.#throughTheGate(lease), { Delete: pending }, ...work];
    const refused = await transact(this.#documents, entries, { remainingMs });
    if (refused.includes(gateEntry)) return "fencedOff";
    return refused.includes(pendingEntry) ? "alreadyDone" : undefined;
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
        // Its own fields first: none of them is the key of another item.
        Put: { TableName, Item: { ...order, ...orderKey(order.orderId), ...signature(lease) } },
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
    // An order may lack one of them: an import takes every order with an id.
    const asked = { ProjectionExpression: "orderId, product, quantity", ConsistentRead: true };
    let keys: Record<string, unknown>[] = orderIds.map((orderId) => ({ ...orderKey(orderId) }));
    for (let attempt = 1; keys.length > 0; attempt++) {
      if (attempt > mostConflictingReads)
        throw new Error(`${keys.length} orders could not be read: too busy`);
      const { Responses, UnprocessedKeys } = await this.#documents.send(
        new BatchGetCommand({ RequestItems: { [this.#tableName]: { ...asked, Keys: keys } } }),
      );
      orders.push(...((Responses?.[this.#tableName] ?? []) as TransferredOrder[]));
      keys = UnprocessedKeys?.[this.#tableName]?.Keys ?? [];
    }
    return orders.sort((a, b) => (a.orderId < b.orderId ? -1 : 1));
  }
}

function signature({ owner, fencingToken }: Lease): { readonly by: string; readonly fencingToken: number } {
  return { by: owner, fencingToken };
}

/** Whether DynamoDB will refuse these entries again: a key or an item among them is too large, or an item has no text as its key. */
function isUnwritable(error: unknown): error is Error {
  if (error instanceof TransactionCanceledException) {
    return error.CancellationReasons?.some(({ Code }) => Code === "ValidationError") === true;
  }
  return error instanceof Error && error.name === "ValidationException";
}

function problemOfOrders(list: unknown): string | undefined {
  const ids = Array.isArray(list)
    ? list.map((order) => (order as Partial<TransferredOrder> | null)?.orderId)
    : list;
  return problemOfIds(ids);
}

/** DynamoDB takes an item once in a transaction, and would not say which one came twice. */
function problemOfIds(list: unknown): string | undefined {
  if (!Array.isArray(list) || list.length > mostOrdersPerChunk)
    return `it has no list of at most ${mostOrdersPerChunk} orders`;
  const seen = new Set<unknown>();
  for (const [index, orderId] of list.entries()) {
    if (typeof orderId !== "string" || orderId === "") return `it has no orderId at ${index}`;
    if (seen.has(orderId)) return `it names the order ${JSON.stringify(orderId)} twice`;
    seen.add(orderId);
  }
  return undefined;
}
