// The changes of a table in a minute, from looks alone: nothing is written for this.

import type { TableEvent } from "./table-events.ts";
import type { TableSnapshot } from "./table-snapshot.ts";

/** Changes in the last minute; a shorter time is extrapolated to a minute. */
export interface TableRates {
  readonly acquired: number;
  readonly takenOver: number;
  readonly lost: number;
}

const windowMs = 60_000;
/** The shortest time between two acquisitions of one key. */
const shortestCycleMs = 2;

interface Count extends TableRates {
  readonly at: number;
}

/** Counts acquisitions by the growth of fencing tokens, including those between two looks. */
export class RateMeter {
  #counts: readonly Count[] = [];
  #since: number | undefined;

  /** Adds one more look, and the changes since the one before. */
  add(before: TableSnapshot | undefined, after: TableSnapshot, events: readonly TableEvent[]): void {
    const at = after.readAt;
    this.#since ??= at;
    if (before === undefined) return;
    const count = {
      at,
      acquired: acquisitions(before, after),
      takenOver: events.filter(({ what }) => what === "takenOver").length,
      lost: events.filter(({ what }) => what === "overdue" || what === "broken").length,
    };
    this.#counts = [...this.#counts, count].filter((one) => one.at > at - windowMs);
  }

  get rates(): TableRates {
    const latest = this.#counts.at(-1)?.at ?? 0;
    const spanMs = Math.min(windowMs, latest - (this.#since ?? latest));
    const scale = spanMs > 0 ? windowMs / spanMs : 0;
    const sum = (of: keyof TableRates): number =>
      Math.round(scale * this.#counts.reduce((total, count) => total + count[of], 0));
    return { acquired: sum("acquired"), takenOver: sum("takenOver"), lost: sum("lost") };
  }
}

/**
 * How many acquisitions there were between two looks. A fencing token grows by one with each. A pause and a group of
 * locks choose their tokens by the time, so an impossible growth counts as one acquisition.
 */
function acquisitions(before: TableSnapshot, after: TableSnapshot): number {
  const most = Math.max(1, (after.readAt - before.readAt) / shortestCycleMs);
  let total = 0;
  for (const [item, fencingToken] of after.fencingTokens) {
    const growth = fencingToken - (before.fencingTokens.get(item) ?? fencingToken - 1);
    if (growth > 0) total += growth > most ? 1 : growth;
  }
  return total;
}
