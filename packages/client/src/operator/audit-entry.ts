/**
 * The trace that an operator's action leaves: an item of its own under the key, written in the same transaction as the
 * action. So there is no action without its trace, and no trace of what was not done.
 */
import type { LeaseRecord } from "../record.ts";
import { attributeNames, auditSortKeyPrefix, leaseItemKey, timeToLive } from "../schema.ts";
import { parsedJson } from "../store/item-values.ts";
import type { Write } from "../store/write.ts";
import type { Item } from "../store.ts";

/** What an operator can do. */
export type OperatorAction = "stop" | "break" | "pause" | "resume";

/** What an operator has done, to which lease, and why. It holds no token and no payload. */
export interface AuditEntry {
  readonly key: string;
  /** Which lease under the key. */
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

/** Leaves a trace. Refused where the very same trace is there: then an earlier copy of its transaction has landed. */
export function leaveTrace(entry: AuditEntry, id: string, retentionMs: number): Write {
  const { key, at, ...content } = entry;
  return {
    key: leaseItemKey(key, `${auditSortKeyPrefix}${new Date(at).toISOString()}#${id}`),
    set: {
      [attributeNames.data]: JSON.stringify(content),
      [attributeNames.timeToLive]: timeToLive(at, retentionMs),
    },
    insist: [[attributeNames.timeToLive, "missing"]],
  };
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
