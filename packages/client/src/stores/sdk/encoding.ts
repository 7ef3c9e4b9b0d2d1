import type {
  AttributeValue,
  BatchStatementRequest,
  TransactionCanceledException,
  TransactWriteItem,
  Update,
} from "@aws-sdk/client-dynamodb";
import type { DynamoDBSender } from "../../base/options.ts";
import { attributeNames, type ItemKey } from "../../base/schema.ts";
import type { Item, TransactionEntry, TransactionResult, UpdateRequest } from "../../base/store.ts";

/** One value in DynamoDB's own form; a lease table holds no other kinds. */
export type PlainAttributeValue = { readonly S: string } | { readonly N: string };

/** Writes one plain value in DynamoDB's own form. */
function toAttributeValue(value: string | number): PlainAttributeValue {
  return typeof value === "string" ? { S: value } : { N: String(value) };
}

/** Writes plain values in DynamoDB's own form. */
export function toAttributeValues(values: Item | ItemKey): Record<string, PlainAttributeValue> {
  const attributes: Record<string, PlainAttributeValue> = {};
  for (const name in values) attributes[name] = toAttributeValue((values as Item)[name] as string | number);
  return attributes;
}

/** The values that an expression refers to; undefined for none, because DynamoDB refuses an empty map. */
export function expressionValues(values: Item): Record<string, PlainAttributeValue> | undefined {
  return Object.keys(values).length === 0 ? undefined : toAttributeValues(values);
}

/**
 * Reads strings and numbers from DynamoDB's own form; a lease table holds no other kinds.
 *
 * A value of another kind, which another program or a person has written, becomes NaN. So it counts as present, as in a
 * condition on the item, and every reader refuses it.
 */
export function fromAttributeValues(
  attributes: Record<string, AttributeValue> | undefined,
): Item | undefined {
  if (attributes === undefined) return undefined;
  const item: Record<string, string | number> = {};
  for (const name in attributes) {
    const { S: text, N: digits } = attributes[name] as { readonly S?: string; readonly N?: string };
    item[name] = text ?? Number(digits);
  }
  return item;
}

/**
 * Writes a conditional update as a PartiQL statement, so that one BatchExecuteStatement can carry several.
 *
 * It supports updates that only SET plain values: both languages use the same words there, and differ only in the
 * spelling of names, values and commas.
 */
export function toStatement(tableName: string, request: UpdateRequest): BatchStatementRequest {
  const parameters: Item[string][] = [];
  const bind = (value: Item[string]): string => {
    parameters.push(value);
    return "?";
  };
  const spell = (expression: string): string =>
    expression.replaceAll(/[#:]\w+/g, (placeholder) => {
      if (placeholder.startsWith("#")) return `"${request.names[placeholder]}"`;
      return bind(request.values[placeholder] as Item[string]);
    });

  const assignments = spell(request.update).replaceAll(", ", " SET ");
  const { partitionKey, sortKey } = attributeNames;
  const key = `"${partitionKey}" = ${bind(request.key.pk)} AND "${sortKey}" = ${bind(request.key.sk)}`;
  const statement = `UPDATE "${tableName}" ${assignments} WHERE ${key} AND ${spell(request.condition)} RETURNING ALL NEW *`;
  return {
    Statement: statement,
    Parameters: parameters.map(toAttributeValue),
  };
}

/** Writes an entry of a transaction as a command takes it: values in the form of `spell`, and `more` beside them. */
export function toTransactItem(
  tableName: string,
  { key, condition, names, values, action }: TransactionEntry,
  spell: (values: Item | ItemKey) => Record<string, AttributeValue>,
  more: Pick<Update, "ReturnValuesOnConditionCheckFailure">,
): TransactWriteItem {
  const common = {
    TableName: tableName,
    Key: spell(key),
    ConditionExpression: condition,
    ExpressionAttributeNames: names,
    // DynamoDB refuses an empty map.
    ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: spell(values) }),
    ...more,
  };
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
  const { CancellationReasons: reasons = [] } = error as TransactionCanceledException;
  const isRefused = (code: string | undefined): boolean => code === "ConditionalCheckFailed";
  if (!reasons.some(({ Code }) => isRefused(Code))) return undefined;
  return reasons.map(({ Code, Item }) => (isRefused(Code) ? { item: fromAttributeValues(Item) } : undefined));
}

/** Whether the commands of a user's client take plain values. */
export function isDocumentClient(dynamodb: DynamoDBSender): boolean {
  // Only the document client's class has a static method that makes it from another client. It also marks that client's
  // config.
  return typeof (dynamodb.constructor as Partial<{ from: unknown }>).from === "function";
}
