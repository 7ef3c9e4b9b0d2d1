// What has happened to one key: holds and their ends, and what operators did, in one list.

import type { AuditEntry, LeaseChange, OperatorAction } from "@leasehold/client/operator";

/** One thing that has happened. */
export interface HistoryEntry {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly what: LeaseChange["what"] | OperatorAction;
  /** Whose lease it was. */
  readonly owner: string | undefined;
  /** For how long it was held, of what has ended. */
  readonly heldForMs: number | undefined;
  readonly fencingToken: number | undefined;
  /** Which operator did it, and why. */
  readonly by: string | undefined;
  readonly reason: string | undefined;
}

const actions: Readonly<Partial<Record<LeaseChange["what"], OperatorAction>>> = {
  broken: "break",
  stopping: "stop",
  paused: "pause",
  resumed: "resume",
};

/** The change of an action and its trace are one write, but their times may be those of two clocks. */
const sameMs = 10_000;

/** What ends the time of a holder, or a pause. */
export const holdEnds: readonly LeaseChange["what"][] = [
  ...(["released", "completed", "resumed", "broken", "takenOver", "expired", "gone"] as const),
];

/** Joins what the history shows and what operators did: an action that both tell of is one entry. The oldest first. */
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
