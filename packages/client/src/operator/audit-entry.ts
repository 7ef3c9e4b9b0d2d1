/**
 * The trace that an operator's action leaves: an item of its own under the key, written in the same transaction as the
 * action. So there is no action without its trace, and no trace of what was not done.
 */

import type { ProtocolContext } from "../protocol/context.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, auditSortKeyPrefix, leaseItemKey, timeToLive } from "../schema.ts";
import { type Part, say, Write } from "../statements/statement.ts";
import { parsedJson } from "../store/item-values.ts";
import type { Item } from "../store.ts";

/** What an operator can do: to leases, to a slot of a job (`skip`), and to tasks (`requeue`, `cancel`). */
export type OperatorAction = "stop" | "break" | "pause" | "resume" | "skip" | "requeue" | "cancel";

/** For how long traces are kept unless the caller says so. */
export const usualAuditRetentionMs: number = 30 * 24 * 60 * 60 * 1000;

/** What an operator has done, to which lease, and why. It holds no token and no payload. */
export interface AuditEntry {
  readonly key: string;
  /** Which lease under the key; of `skip`, `requeue` and `cancel`, the item of the run or of the task. */
  readonly sortKey: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly action: OperatorAction;
  readonly by: string;
  readonly reason: string | undefined;
  /** Whose lease it was; of a pause, the dead holder that it was taken over from, if there was one. */
  readonly holder: Pick<LeaseRecord, "owner" | "acquiredAt" | "fencingToken"> | undefined;
  /** When a pause ends by itself, in epoch milliseconds; undefined for other actions. */
  readonly until: number | undefined;
}

const traceKept: Part = { set: "#ttl = :ttl", when: "attribute_not_exists(#ttl)" };
const leavesTrace = say(traceKept, { set: "#data = :data" });

/** Leaves a trace. Refused where the very same trace is there: then an earlier copy of its transaction has landed. */
export function leaveTrace(entry: AuditEntry, id: string, retentionMs: number): Write {
  const { key, at, ...content } = entry;
  const values = { ":ttl": timeToLive(at, retentionMs), ":data": JSON.stringify(content) };
  return new Write(
    leaseItemKey(key, `${auditSortKeyPrefix}${new Date(at).toISOString()}#${id}`),
    leavesTrace,
    values,
  );
}

/** Takes the place of a trace, with nothing in it: no copy of that trace lands any more. */
export function occupyTrace(trace: Write): Write {
  return new Write(trace.key, say(traceKept), { ":ttl": trace.values[":ttl"] as number });
}

/** Leaves a trace of what was done to an item that nobody holds. */
export function traceNow(
  { clock, randomness }: Pick<ProtocolContext, "clock" | "randomness">,
  what: Pick<AuditEntry, "key" | "sortKey" | "action" | "by" | "reason">,
): Write {
  const entry: AuditEntry = { ...what, at: clock.now(), holder: undefined, until: undefined };
  return leaveTrace(entry, randomness.token().slice(-12), usualAuditRetentionMs);
}

/** Reads a trace; undefined for what another program has written in its place. */
export function auditEntryIn(item: Item): AuditEntry | undefined {
  const content = Object(parsedJson(String(item[attributeNames.data]))?.value) as AuditEntry;
  const [, time] = String(item[attributeNames.sortKey]).split("#");
  if (typeof content.action !== "string" || typeof content.by !== "string") return undefined;
  const { sortKey, action, by, reason, holder, until } = content;
  const key = String(item[attributeNames.partitionKey]);
  return { key, sortKey, at: Date.parse(String(time)), action, by, reason, holder, until };
}
