/**
 * A key's history: an item for each change of its lock. The change alone determines the item's sort key, so a change
 * that is reported twice is one item.
 */

import { checkKey, checkOptions, countTo, duration, type Rules, trueOrFalse } from "../base/check-values.ts";
import { parsedJson } from "../base/item-values.ts";
import { attributeNames, historySortKeyPrefix, leaseItemKey, timeToLive } from "../base/schema.ts";
import { type Item, pagesOf } from "../base/store.ts";
import { type Core, query } from "../core/core.ts";
import { fits, type Shape, timesSince, under } from "./audit.ts";
import type { LeaseChange } from "./lease-changes.ts";

/** Options of {@link LeaseOperator.history}. */
export interface HistoryOptions {
  /** Only changes of the last so many milliseconds. @default - all that are kept */
  readonly sinceMs?: number;
  /** Whether the last change comes first. @default false */
  readonly newestFirst?: boolean;
  /** The most changes. From 1 to 1,000,000. @default - all */
  readonly limit?: number;
}

const historyRules: Rules<HistoryOptions> = {
  sinceMs: duration(1),
  newestFirst: trueOrFalse,
  limit: countTo(1_000_000),
};

/** Returns the item of a change. */
export function historyItemOf(change: LeaseChange, retentionMs: number): Item {
  const { key, at, ...content } = change;
  const sortKey = `${historySortKeyPrefix}${new Date(at).toISOString()}#${change.fencingToken}#${change.what}`;
  return {
    ...leaseItemKey(key, sortKey),
    [attributeNames.data]: JSON.stringify(content),
    [attributeNames.timeToLive]: timeToLive(at, retentionMs),
  };
}

const changeShape: Shape = {
  ...{ what: "string", sortKey: "string", owner: "string", reason: "string?" },
  ...{ fencingToken: "number", acquiredAt: "number" },
};

/** Reads a change; undefined if another program has written the item. */
export function changeIn(item: Item): LeaseChange | undefined {
  const content = Object(parsedJson(String(item[attributeNames.data]))?.value) as LeaseChange;
  if (!fits(content, changeShape)) return undefined;
  const { what, sortKey, owner, fencingToken, acquiredAt, reason } = content;
  const [, at] = String(item[attributeNames.sortKey]).split("#");
  const key = String(item[attributeNames.partitionKey]);
  return { key, sortKey, owner, fencingToken, acquiredAt, what, at: Date.parse(String(at)), reason };
}

/** Reads a key's history. Throws InvalidOptionsError. */
export async function* historyOf(
  core: Core,
  key: string,
  options: HistoryOptions,
): AsyncGenerator<LeaseChange, void, undefined> {
  const { sinceMs, newestFirst = false, limit } = checkOptions(options, historyRules);
  const within = await timesSince(core, historySortKeyPrefix, { key: checkKey(key), sinceMs });
  const asked = {
    ...under({ key }, within),
    ...{ consistent: true, descending: newestFirst, ...(limit === undefined ? {} : { limit }) },
  };
  let left = limit ?? Number.POSITIVE_INFINITY;
  for await (const { items } of pagesOf((after) => query(core, { ...asked, ...after }))) {
    for (const item of items) {
      const change = changeIn(item);
      if (change === undefined) continue;
      yield change;
      left -= 1;
      if (left <= 0) return;
    }
  }
}
