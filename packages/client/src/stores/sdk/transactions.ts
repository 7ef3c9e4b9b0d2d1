import type { TransactionCanceledException, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { TransactionEntry, TransactionResult } from "../../base/store.ts";
import { expressionValues, fromAttributeValues, toAttributeValues } from "./attribute-values.ts";

/** Converts an entry to DynamoDB's form; a refusal brings the item that refused. */
export function toTransactItem(tableName: string, entry: TransactionEntry): TransactWriteItem {
  const { key, condition, names, values, action } = entry;
  const common = {
    TableName: tableName,
    Key: toAttributeValues(key),
    ConditionExpression: condition,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: expressionValues(values),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  } as const;
  if (action === "check") return { ConditionCheck: common };
  if (action === "delete") return { Delete: common };
  return { Update: { ...common, UpdateExpression: action.update } };
}

/**
 * Reads why a transaction was cancelled: the refused entries, and the items that refused them.
 *
 * Returns undefined if no condition refused it: it met another write of the same item, or the service's limits.
 */
export function refusalsOf(error: unknown): TransactionResult["refusals"] | undefined {
  const { name, CancellationReasons: reasons = [] } = error as TransactionCanceledException;
  if (name !== "TransactionCanceledException") return undefined;
  const isRefused = (code: string | undefined): boolean => code === "ConditionalCheckFailed";
  if (!reasons.some(({ Code }) => isRefused(Code))) return undefined;
  return reasons.map(({ Code, Item }) => (isRefused(Code) ? { item: fromAttributeValues(Item) } : undefined));
}
