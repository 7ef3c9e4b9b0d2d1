// The cost of reads: DynamoDB bills the bytes that it reads, not those that it returns.

import type { Item } from "@leasehold/client";

/**
 * On-demand prices in US dollars, and where and when they were read: the same numbers as in tools/bench/costs/prices.ts,
 * which a test compares.
 */
export const prices = {
  writeUnit: 0.625 / 1_000_000,
  readUnit: 0.125 / 1_000_000,
  region: "us-east-1",
  date: "2026-11-22",
  source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
} as const;

/** Months as AWS counts them, of 730 hours. */
export const secondsOfMonth: number = 730 * 3_600;

export interface ReadCost {
  readonly items: number;
  readonly bytes: number;
  /** Read capacity units, as DynamoDB counts them. */
  readonly units: number;
  /** Their on-demand price, in US dollars in us-east-1; other regions differ by a third. */
  readonly dollars: number;
}

const bytesPerUnit = 4_096;

/** The cost of eventually consistent reads of this many bytes: they cost half as much as consistent ones. */
export function readCost(items: number, bytes: number): ReadCost {
  const units = Math.max(1, Math.ceil(bytes / bytesPerUnit)) / 2;
  return { items, bytes, units, dollars: units * prices.readUnit };
}

/** The pause after a look, so that looks use no more units a second than this. */
export function pauseAfter(
  { units }: ReadCost,
  { everyMs, mostUnitsPerSecond }: { readonly everyMs: number; readonly mostUnitsPerSecond: number },
): number {
  return Math.max(everyMs, Math.ceil((units / mostUnitsPerSecond) * 1_000));
}

/** About how many bytes an item has: its names and its values. */
export function bytesOf(item: Item): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(item)) {
    // A number takes one byte for two digits, and one more.
    bytes += Buffer.byteLength(name) + (typeof value === "string" ? Buffer.byteLength(value) : 8);
  }
  return bytes;
}

/** `512 items read (64 RCU, $0.00002)`. */
export function costText({ items, units, dollars }: ReadCost): string {
  const counted = `${items.toLocaleString("en-US")} ${items === 1 ? "item" : "items"}`;
  return `${counted} read (${unitsText(units)} RCU, ${dollarsText(dollars)})`;
}

export function unitsText(units: number): string {
  return units.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** Dollars with one significant figure, or with cents: `$0.00002`, `$0.04`, `$12.50`. */
export function dollarsText(dollars: number): string {
  if (dollars >= 0.995) return `$${dollars.toFixed(2)}`;
  if (dollars < 0.000_001) return "less than $0.000001";
  return `$${Number(dollars.toPrecision(1)).toLocaleString("en-US", { maximumFractionDigits: 6 })}`;
}
