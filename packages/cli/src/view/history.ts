// The history of one key: holds and their ends, and operators' actions, in one list.

import type { AuditEntry, LeaseChange, OperatorAction } from "@leasehold/client/admin";

/** One entry of the history. */
export interface HistoryEntry {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly what: LeaseChange["what"] | OperatorAction;
  /** The owner of the lease. */
  readonly owner: string | undefined;
  /** How long it was held, for an ended hold. */
  readonly heldForMs: number | undefined;
  readonly fencingToken: number | undefined;
  /** The operator, and the reason. */
  readonly by: string | undefined;
  readonly reason: string | undefined;
}

const actions: Readonly<Partial<Record<LeaseChange["what"], OperatorAction>>> = {
  broken: "break",
  stopping: "stop",
  paused: "pause",
  resumed: "resume",
};

/** A change and the trace of its action are one write, but their times may come from two clocks. */
const sameMs = 10_000;

/** The changes that end a hold, or a pause. */
export const holdEnds: readonly LeaseChange["what"][] = [
  ...(["released", "completed", "resumed", "broken", "takenOver", "expired", "gone"] as const),
];

/** Joins the history and the operators' actions: an action in both is one entry. The oldest first. */
export function historyEntries(
  changes: readonly LeaseChange[],
  audit: readonly AuditEntry[],
): readonly HistoryEntry[] {
  const told = new Set<AuditEntry>();
  const entries = changes.map((change): HistoryEntry => {
    const trace = audit.find((entry) => !told.has(entry) && isTraceOf(entry, change));
    if (trace !== undefined) told.add(trace);
    const { what, at, owner, acquiredAt, fencingToken, reason } = change;
    return {
      ...{ at, what, owner, fencingToken },
      heldForMs: holdEnds.includes(what) ? Math.max(0, at - acquiredAt) : undefined,
      by: trace?.by,
      reason: trace?.reason ?? reason,
    };
  });
  const others = audit
    .filter((entry) => !told.has(entry))
    .map(({ at, action, holder, by, reason }): HistoryEntry => {
      const { owner, fencingToken } = holder ?? {};
      return { at, what: action, owner, heldForMs: undefined, fencingToken, by, reason };
    });
  return [...entries, ...others].sort((one, other) => one.at - other.at);
}

function isTraceOf(entry: AuditEntry, { what, at, sortKey, fencingToken }: LeaseChange): boolean {
  const isSameLease = entry.action === "pause" || entry.holder?.fencingToken === fencingToken;
  return (
    entry.action === actions[what] &&
    entry.sortKey === sortKey &&
    isSameLease &&
    Math.abs(entry.at - at) <= sameMs
  );
}
