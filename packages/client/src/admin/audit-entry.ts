/**
 * The trace of an operator's action: an item of its own under the key, written in the same transaction as the action.
 * So no action is without its trace, and no trace is without its action.
 */

import { parsedJson } from "../base/item-values.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { attributeNames, auditSortKeyPrefix, leaseItemKey, timeToLive } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import type { Core } from "../core/core.ts";
import { type Part, say, Write } from "../statements/statement.ts";

/** The actions of an operator: on leases, on a slot of a job (`skip`), and on tasks (`requeue`, `cancel`). */
export type OperatorAction = "stop" | "break" | "pause" | "resume" | "skip" | "requeue" | "cancel";

/** How long traces are kept by default. */
export const usualAuditRetentionMs: number = 30 * 24 * 60 * 60 * 1000;

/** One action of an operator: what, to which lease, and why. It holds no token and no payload. */
export interface AuditEntry {
  readonly key: string;
  /**
   * The sort key of the lease under the key; for `skip`, `requeue` and `cancel`, that of the run's or the task's item.
   */
  readonly sortKey: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly action: OperatorAction;
  readonly by: string;
  readonly reason: string | undefined;
  /** The holder of the lease; for a pause, the dead holder that it took the lock over from, if any. */
  readonly holder: Pick<LeaseRecord, "owner" | "acquiredAt" | "fencingToken"> | undefined;
  /** When a pause ends by itself, in epoch milliseconds; undefined for other actions. */
  readonly until: number | undefined;
}

const traceKept: Part = { set: "#ttl = :ttl", when: "attribute_not_exists(#ttl)" };
const leavesTrace = say(traceKept, { set: "#data = :data" });

/** Writes a trace. Refused if the same trace is there: then an earlier copy of its transaction has landed. */
export function leaveTrace(entry: AuditEntry, id: string, retentionMs: number): Write {
  const { key, at, ...content } = entry;
  const values = { ":ttl": timeToLive(at, retentionMs), ":data": JSON.stringify(content) };
  return new Write(
    leaseItemKey(key, `${auditSortKeyPrefix}${new Date(at).toISOString()}#${id}`),
    leavesTrace,
    values,
  );
}

/** Occupies the place of a trace with an empty item: no copy of that trace can land any more. */
export function occupyTrace(trace: Write): Write {
  return new Write(trace.key, say(traceKept), { ":ttl": trace.values[":ttl"] as number });
}

/** Writes the trace of an action on an item that nobody holds. */
export function traceNow(
  { clock, randomness }: Pick<Core, "clock" | "randomness">,
  what: Pick<AuditEntry, "key" | "sortKey" | "action" | "by" | "reason">,
): Write {
  const entry: AuditEntry = { ...what, at: clock.now(), holder: undefined, until: undefined };
  return leaveTrace(entry, randomness.token().slice(-12), usualAuditRetentionMs);
}

/** Reads a trace; undefined if another program has written the item. */
export function auditEntryIn(item: Item): AuditEntry | undefined {
  const content = Object(parsedJson(String(item[attributeNames.data]))?.value) as AuditEntry;
  const [, time] = String(item[attributeNames.sortKey]).split("#");
  if (typeof content.action !== "string" || typeof content.by !== "string") return undefined;
  const { sortKey, action, by, reason, holder, until } = content;
  const key = String(item[attributeNames.partitionKey]);
  return { key, sortKey, at: Date.parse(String(time)), action, by, reason, holder, until };
}
