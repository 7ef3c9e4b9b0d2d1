import { check, checkOptions, duration, type Rules, text } from "../base/check-values.ts";
import { pagesOf } from "../base/pages.ts";
import type { ItemKey } from "../base/schema.ts";
import { attributeNames, auditSortKeyPrefix, limits } from "../base/schema.ts";
import type { Item, ScanPage } from "../base/store.ts";
import type { Core } from "../core/core.ts";
import { query, scan } from "../core/requests.ts";
import type { LeaseAddress } from "../statements/lock.ts";
import { namesIn } from "../statements/statement.ts";
import { type AuditEntry, auditEntryIn } from "./audit-entry.ts";

/** Options of {@link LeaseOperator.audit}. */
export interface AuditOptions {
  /** Reads only this key. @default - all keys */
  readonly key?: string;
  /** Reads only keys with this prefix; not together with `key`. @default - all keys */
  readonly prefix?: string;
  /** Only actions of the last so many milliseconds. @default - all that are kept */
  readonly sinceMs?: number;
}

const auditRules: Rules<AuditOptions> = {
  key: text(limits.keyBytes),
  prefix: text(limits.keyBytes),
  sinceMs: duration(1),
};

const { partitionKey, sortKey } = attributeNames;

/** Reads the traces of a key, or of all keys. Throws InvalidOptionsError. */
export async function* auditTrail(
  core: Core,
  options: AuditOptions,
): AsyncGenerator<AuditEntry, void, undefined> {
  const { key, prefix, sinceMs } = checkOptions(options, auditRules);
  check(key === undefined || prefix === undefined, "prefix", prefix, "nothing beside key");
  const range = timesSince(core, auditSortKeyPrefix, sinceMs);
  const read = (after: { readonly after?: ItemKey }): Promise<ScanPage> =>
    key === undefined
      ? scan(core, { ...everywhere(range, prefix), ...after })
      : query(core, { ...under({ key }, range), consistent: true, ...after });
  for await (const { items } of pagesOf(read)) yield* items.flatMap((item) => auditEntryIn(item) ?? []);
}

/** A range of sort keys that are a prefix and a time. */
export interface TimeRange {
  readonly from: string;
  readonly to: string;
}

/** The sort keys of the last so many milliseconds. */
export function timesSince(
  { clock }: Pick<Core, "clock">,
  prefix: string,
  sinceMs: number | undefined,
): TimeRange {
  const from = sinceMs === undefined ? "" : new Date(Math.max(0, clock.now() - sinceMs)).toISOString();
  return { from: prefix + from, to: `${prefix}~` };
}

/** The key condition for the items of a time range under a key. */
export function under(
  { key }: LeaseAddress,
  { from, to }: TimeRange,
): { readonly keyCondition: string; readonly names: Record<string, string>; readonly values: Item } {
  const keyCondition = `#${partitionKey} = :key AND #${sortKey} BETWEEN :from AND :to`;
  return { keyCondition, names: namesIn(keyCondition), values: { ":key": key, ":from": from, ":to": to } };
}

function everywhere(
  { from, to }: TimeRange,
  prefix: string | undefined,
): { readonly filter: string; readonly names: Record<string, string>; readonly values: Item } {
  const inTime = `#${sortKey} BETWEEN :from AND :to`;
  const filter = prefix === undefined ? inTime : `${inTime} AND begins_with(#${partitionKey}, :prefix)`;
  const values = { ":from": from, ":to": to, ...(prefix === undefined ? {} : { ":prefix": prefix }) };
  return { filter, names: namesIn(filter), values };
}
