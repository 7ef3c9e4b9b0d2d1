/**
 * Reads the values of an item's attributes. If another program must have written a value, it throws LeaseItemError and
 * never guesses.
 */
import { describe, LeaseItemError } from "./errors.ts";
import { attributeNames, type ItemKey } from "./schema.ts";
import type { Item } from "./store.ts";

/** The latest time that a Date can have. A later time comes from another program. */
export const latestTime = 8_640_000_000_000_000;

/** Reads a required text. Throws LeaseItemError. */
export function textIn(item: Item, attribute: string): string {
  const value = item[attribute];
  return typeof value === "string" ? value : refuse(item, attribute, textType);
}

/** Reads a text that may be absent. Throws LeaseItemError. */
export function optionalTextIn(item: Item, attribute: string): string | undefined {
  return item[attribute] === undefined ? undefined : textIn(item, attribute);
}

/** Reads a required whole number. Throws LeaseItemError. */
export function wholeIn(item: Item, attribute: string, most: number = Number.MAX_SAFE_INTEGER): number {
  const value = item[attribute];
  return isWhole(value, most) ? value : refuse(item, attribute, `a whole number (N) from 0 to ${most}`);
}

/** Tells whether a value is a whole number from 0 to `most`, and exact. */
export function isWhole(value: unknown, most: number = Number.MAX_SAFE_INTEGER): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
}

/** Reads a whole number that may be absent. Throws LeaseItemError. */
export function optionalWholeIn(
  item: Item,
  attribute: string,
  most: number = Number.MAX_SAFE_INTEGER,
): number | undefined {
  return item[attribute] === undefined ? undefined : wholeIn(item, attribute, most);
}

/** Reads a required time, in epoch milliseconds. Throws LeaseItemError. */
export function timeIn(item: Item, attribute: string): number {
  return wholeIn(item, attribute, latestTime);
}

/** Reads a time that may be absent, in epoch milliseconds. Throws LeaseItemError. */
export function optionalTimeIn(item: Item, attribute: string): number | undefined {
  return optionalWholeIn(item, attribute, latestTime);
}

/** Reads an optional text that is one of several words. Throws LeaseItemError. */
export function optionalWordIn<Word extends string>(
  item: Item,
  attribute: string,
  words: readonly Word[],
): Word | undefined {
  const value = item[attribute];
  if (value === undefined) return undefined;
  return words.find((word) => word === value) ?? refuse(item, attribute, words.join(", "));
}

/** Reads JSON text; undefined when it is absent. Throws LeaseItemError. */
export function jsonIn(item: Item, attribute: string): unknown {
  const json = optionalTextIn(item, attribute);
  if (json === undefined) return undefined;
  const parsed = parsedJson(json);
  if (parsed !== undefined) return parsed.value;
  // Without the text: a payload may be secret.
  throw new LeaseItemError(addressOf(item), attribute, "is a text that is not JSON", "JSON text");
}

/** Reads JSON; undefined for a text that is not JSON. */
export function parsedJson(json: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(json) };
  } catch {
    // Ignored: JSON.parse throws only because the text is not JSON.
    return undefined;
  }
}

const textType = "a string (S)";

function refuse(item: Item, attribute: string, allowed: string): never {
  throw new LeaseItemError(addressOf(item), attribute, findingOf(attribute, item[attribute]), allowed);
}

function findingOf(attribute: string, value: unknown): string {
  if (value === undefined) return "is missing";
  if (Number.isNaN(value)) return "is neither a string nor a number";
  // A token is not shown: its bearer could end the lease.
  return `is ${attribute === attributeNames.token ? `a ${typeof value}` : describe(value)}`;
}

/** The key of an item. */
export function itemKeyOf(item: Item): ItemKey {
  return { pk: String(item[attributeNames.partitionKey]), sk: sortKeyOf(item) };
}

/** The sort key of an item. */
export function sortKeyOf(item: Item): string {
  return String(item[attributeNames.sortKey]);
}

/** The key of an item, for messages. */
export function addressOf(item: Item): { readonly key: string; readonly sortKey: string } {
  return {
    key: String(item[attributeNames.partitionKey]),
    sortKey: String(item[attributeNames.sortKey]),
  };
}

/** Reads an item. Reports an unreadable item, and returns undefined. */
export function unlessUnreadable<T>(
  read: () => T,
  onUnreadable: (error: LeaseItemError) => void,
): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LeaseItemError)) throw error;
    onUnreadable(error);
    return undefined;
  }
}
