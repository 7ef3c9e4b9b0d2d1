/**
 * The keys of the table that orders are imported into and exported from, which is not the lease table: `pk` and `sk`,
 * both strings.
 *
 *     pk              sk      one item for each
 *     pending#import  chunk   chunk of orders that waits to be imported: `orders`, at most 90
 *     pending#export  chunk   chunk that waits to be exported: `orderIds`, at most 90
 *     parked#import   chunk   chunk that cannot be imported, with the reason and its own item; parked#export alike
 *     done#import     chunk   chunk that was imported, with who did it under which fencing token
 *     done#export     chunk   chunk that was exported, with the orders as they were then
 *     orders          order   order
 *     gate            gate    the highest fencing token that has written here
 */

/** The environment variable with the table's name. */
export const tableVariable = "IMPORT_ORDERS_TABLE_NAME";

/** The lock that keeps imports and exports apart: an export of half an import is of no use to anybody. */
export const transferKey = "import-orders";

/** What the log line says that an alarm counts: a run has failed, or has lost its lock. */
export const runFailedMessage = "run failed";

/** What the log line says that an alarm counts: a chunk cannot be transferred, and is parked. */
export const chunkParkedMessage = "chunk parked";

/** What is done with orders. */
export type TransferKind = "import" | "export";

/** Both kinds, for checks. */
export const transferKinds: readonly TransferKind[] = ["import", "export"];

/** A transaction takes 100 entries; some are ours. */
export const mostOrdersPerChunk = 90;

/** The primary key of an item. */
export interface TransferItemKey {
  readonly pk: string;
  readonly sk: string;
}

/** The partition of the chunks that are waiting. */
export function pendingPartition(kind: TransferKind): string {
  return `pending#${kind}`;
}

/** The key of a chunk that waits. */
export function pendingKey(kind: TransferKind, chunk: string): TransferItemKey {
  return { pk: pendingPartition(kind), sk: chunk };
}

/** The key of a chunk that could not be transferred. */
export function parkedKey(kind: TransferKind, chunk: string): TransferItemKey {
  return { pk: `parked#${kind}`, sk: chunk };
}

/** The key of a chunk that is done. */
export function doneKey(kind: TransferKind, chunk: string): TransferItemKey {
  return { pk: `done#${kind}`, sk: chunk };
}

/** The key of an order. */
export function orderKey(orderId: string): TransferItemKey {
  return { pk: "orders", sk: orderId };
}

/** The item through which every write goes, so that it remembers the highest fencing token. */
export const gateKey: TransferItemKey = { pk: "gate", sk: "gate" };
