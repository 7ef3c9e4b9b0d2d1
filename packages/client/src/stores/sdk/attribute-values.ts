import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { ItemKey } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";

/** One value in DynamoDB's own form; a lease table holds no other kinds. */
export type PlainAttributeValue = { readonly S: string } | { readonly N: string };

/** Writes one plain value in DynamoDB's own form. */
export function toAttributeValue(value: string | number): PlainAttributeValue {
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
