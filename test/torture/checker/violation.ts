import type { Hold, Operation } from "../history.ts";

/** A rule that a history breaks, and by what. */
export interface Violation {
  /** Such as `mutual exclusion`. */
  readonly rule: string;
  /** What happened, with the operations and their intervals. */
  readonly text: string;
}

/** Shows an interval in milliseconds, to the microsecond. */
function interval(from: number, to: number | undefined): string {
  const shown = (at: number): string => (at / 1_000).toFixed(3);
  return `[${shown(from)} .. ${to === undefined ? "?" : shown(to)}] ms`;
}

/** Tells of a hold: whose it is, and when it was held for certain. */
export function tellHold({
  process,
  id,
  kind,
  key,
  permits,
  fencingToken,
  attempt,
  from,
  until,
}: Hold): string {
  const size = kind === "permit" ? ` of ${permits}` : "";
  const number = attempt === 0 ? "" : `, attempt ${attempt}`;
  return `${process}#${id} holds ${key} (${kind}${size}, fencing token ${fencingToken}${number}) ${interval(from, until)}`;
}

/** Tells of an operation: what was asked, what was answered, and when. */
export function tellOperation({ process, id, action, key, outcome, details, from, to }: Operation): string {
  const shown = Object.entries(details).map(([name, value]) => `${name} ${value}`);
  const about = shown.length === 0 ? "" : ` (${shown.join(", ")})`;
  return `${process}#${id} ${action} ${key}${about}: ${outcome} ${interval(from, to)}`;
}
