import type { CacheAnswer } from "../../../../functions/resource-cache/cache.ts";
import type { StockLevels } from "../../../../functions/resource-cache/stock-levels.ts";
import type { Grant } from "../../lease-history.ts";
import type { LoggedLeaseEvent } from "../../lease-log.ts";

/**
 * The requested values, in this order.
 *
 * - `cold`: the value was never computed, and all callers want it at once.
 * - `killed`: it is past its time, and its computing process dies.
 * - `bereaved`: the dead process's lease has not ended.
 * - `recovered`: it has.
 * - `afterwards`: the dead process's write has arrived.
 */
export type Round = "cold" | "killed" | "bereaved" | "recovered" | "afterwards";

/** One call, and what came of it. */
export interface Reading {
  readonly round: Round;
  readonly instance: string;
  readonly source: CacheAnswer<StockLevels>["source"] | "died" | "failed" | "timedOut";
  /** Absent where there was no answer. */
  readonly value?: StockLevels;
}

/** A call that was killed between its computation and the storing of it. */
export interface Killed {
  readonly instance: string;
  readonly fencingToken: number;
  /** Whether its write was refused when it arrived after all. */
  readonly wasRefused: boolean;
}

/** All that the audit looks at. */
export interface StockEvidence {
  readonly readings: readonly Reading[];
  /** What the warehouse had at first. */
  readonly before: StockLevels;
  /** What it had when the value was computed for the last time. */
  readonly after: StockLevels;
  /** The grants of the lease under which the value is computed, as the table made them; owners are names of instances. */
  readonly grants: readonly Grant[];
  /** What instances told of it. */
  readonly log: readonly LoggedLeaseEvent[];
  /** How often the movements were read: once for each computation. */
  readonly computations: number;
  readonly killed: Killed;
  /** Rounds that were answered only after what they were to show was over, and what that was. */
  readonly tardy: readonly string[];
}
