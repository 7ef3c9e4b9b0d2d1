// The past of a key: holds and their ends, operators' actions, and the past holders.

import type {
  AuditEntry,
  KeyDetails,
  LeaseChange,
  LeaseOperator,
  OperatorAction,
} from "@leasehold/client/admin";
import type { LeaseEnd } from "@leasehold/client/internal";
import type { Cell, Style } from "../terminal/table.ts";

export interface HistoryEntry {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly what: LeaseChange["what"] | OperatorAction;
  readonly owner: string | undefined;
  /** How long it was held, for an ended hold. */
  readonly heldForMs: number | undefined;
  readonly fencingToken: number | undefined;
  readonly by: string | undefined;
  readonly reason: string | undefined;
}

/** What is said of a change, or of an operator's action. */
interface Meaning {
  /** In words for people. @default - its own name */
  readonly word?: string;
  /** How a hold, or a pause, has ended with it. @default - it ends none */
  readonly end?: string;
  /** The action that makes it. */
  readonly action?: OperatorAction;
  /** Its colour on a terminal. */
  readonly style?: Style;
}

const meanings: Readonly<Partial<Record<HistoryEntry["what"], Meaning>>> = {
  released: { end: "released" },
  completed: { end: "completed" },
  broken: { word: "BROKEN", end: "BROKEN", action: "break", style: "red" },
  takenOver: { word: "TAKEN OVER", end: "TAKEN OVER", style: "yellow" },
  expired: { end: "EXPIRED", style: "red" },
  gone: { end: "gone" },
  stopping: { word: "asked to stop", action: "stop" },
  paused: { action: "pause" },
  resumed: { end: "resumed", action: "resume" },
  break: { word: "BROKEN", style: "red" },
  stop: { word: "asked to stop" },
  pause: { word: "paused" },
  resume: { word: "resumed" },
};

/** A change and the trace of its action are one write, but their times may come from two clocks. */
const sameMs = 10_000;

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
      heldForMs: meanings[what]?.end === undefined ? undefined : Math.max(0, at - acquiredAt),
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
    entry.action === meanings[what]?.action &&
    entry.sortKey === sortKey &&
    isSameLease &&
    Math.abs(entry.at - at) <= sameMs
  );
}

/** A holder whose hold has ended. */
export interface PastHolder {
  readonly owner: string;
  readonly heldForMs: number;
  /** How it ended, in words. */
  readonly ended: string;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

/** The holders whose holds have ended, in the order of the changes. */
export function endedHolds(changes: readonly LeaseChange[]): readonly PastHolder[] {
  return changes.flatMap(({ what, owner, at, acquiredAt }) => {
    const ended = meanings[what]?.end;
    return ended === undefined
      ? []
      : [{ owner, heldForMs: Math.max(0, at - acquiredAt), ended, endedAt: at }];
  });
}

/** Changes that show one holder; more holders if few of them were asked to stop. */
const changesPerHolder = 3;

/**
 * The last holders, the latest first: from the key's history if it is kept (1 request), otherwise the remembered one.
 */
export async function pastHolders(
  operator: LeaseOperator,
  details: KeyDetails,
  most: number,
): Promise<readonly PastHolder[]> {
  const options = { newestFirst: true, limit: most * changesPerHolder };
  const changes = await Array.fromAsync(operator.history(details.key, options));
  const found = endedHolds(changes).slice(0, most);
  return found.length > 0 ? found : rememberedHolder(details);
}

/** The holder that a lock's item remembers. */
export function rememberedHolder({ lastHolder }: KeyDetails): readonly PastHolder[] {
  if (lastHolder === undefined) return [];
  const { owner, acquiredAt, endedAt, end } = lastHolder;
  return [{ owner, heldForMs: endedAt - acquiredAt, ended: endText(end), endedAt }];
}

/** What has happened, in words for people and in its colour. */
export function whatCell({ what }: HistoryEntry): Exclude<Cell, string> {
  const { word = what, style } = meanings[what] ?? {};
  return { text: word, style };
}

/** How a hold ended, in words for people. */
export function endText(end: LeaseEnd): string {
  return meanings[end]?.end ?? end;
}

/** Who did it, and why. */
export function detailText({ by, reason, what }: HistoryEntry): string {
  const told = [by === undefined ? "" : `by ${by}`, reason === undefined ? "" : JSON.stringify(reason)];
  const text = told.filter((part) => part !== "").join(": ");
  if (text !== "") return text;
  return what === "completed" ? "its slot is done" : what === "expired" ? "not renewed" : "";
}
