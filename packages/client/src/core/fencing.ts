import type { ItemKey } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import { noLaterHolder } from "../statements/queries.ts";
import type { Write } from "../statements/statement.ts";
import { toAttributeValues, toTransactItem } from "../stores/sdk/encoding.ts";

/**
 * The form in which DynamoDB commands take values.
 *
 * - `native`: plain JavaScript values, for the commands of `@aws-sdk/lib-dynamodb`.
 * - `attributeValue`: `{ S: … }` and `{ N: … }`, for the commands of `@aws-sdk/client-dynamodb`.
 */
export type ValueFormat = "native" | "attributeValue";

/** Values in the form that the caller's commands take. Typed loosely because that form is chosen at run time. */
// biome-ignore lint/suspicious/noExplicitAny: one type has to fit the commands of both SDK packages.
export type CommandValues = Record<string, any>;

/** Options of {@link Lease.fence}. */
export interface FenceOptions {
  /** The attribute of your item that remembers the highest fencing token. @default "fence" */
  readonly attribute?: string;
  /** @default - the form that the commands of the client's `dynamodb` take; `attributeValue` without one */
  readonly format?: ValueFormat;
}

/** The parts of a write that only succeeds while no later holder of the lock has written the same item. */
export interface Fence {
  readonly ConditionExpression: string;
  readonly ExpressionAttributeNames: Record<string, string>;
  readonly ExpressionAttributeValues: CommandValues;
  /** For an UpdateItem: the `SET` that remembers the fencing token; append your own assignments after a comma. */
  readonly UpdateExpression: string;
  /** For a PutItem: what your item has to contain, in place of the `UpdateExpression`. */
  readonly attributes: CommandValues;
}

/** Options of {@link Lease.conditionCheck}. */
export type ConditionCheckOptions = Pick<FenceOptions, "format">;

/** What all entries of a transaction have. */
interface EntryOfTransaction {
  readonly TableName: string;
  readonly Key: CommandValues;
  readonly ConditionExpression: string;
  readonly ExpressionAttributeNames: Record<string, string>;
  readonly ExpressionAttributeValues?: CommandValues;
}

/** An entry of a transaction that fails unless this very lease, by token and fencing token, still holds the lock. */
export interface LeaseConditionCheck {
  readonly ConditionCheck: EntryOfTransaction & { readonly ExpressionAttributeValues: CommandValues };
}

/** An entry for the `TransactItems` of your own transaction: one member is there. */
export interface LeaseTransactItem {
  readonly ConditionCheck?: EntryOfTransaction;
  readonly Update?: EntryOfTransaction & { readonly UpdateExpression: string };
  readonly Delete?: EntryOfTransaction;
}

/** Builds the fragments of {@link Lease.fence}. */
export function fenceFragments(attribute: string, fencingToken: number, format: ValueFormat): Fence {
  const { condition, update, names, values } = noLaterHolder(attribute, fencingToken);
  return {
    ConditionExpression: condition,
    ExpressionAttributeNames: { ...names },
    ExpressionAttributeValues: inFormat(values, format),
    UpdateExpression: update,
    attributes: inFormat({ [attribute]: fencingToken }, format),
  };
}

/** Writes one of our writes as an entry of the user's own transaction, which the user may change. */
export function transactItem(tableName: string, write: Write, format: ValueFormat): LeaseTransactItem {
  const entry = write.entry();
  // The names are those of all such writes.
  const own = { ...entry, names: { ...entry.names } };
  return toTransactItem(tableName, own, (values) => inFormat(values, format), {}) as LeaseTransactItem;
}

function inFormat(values: Item | ItemKey, format: ValueFormat): CommandValues {
  return format === "native" ? { ...values } : toAttributeValues(values);
}
