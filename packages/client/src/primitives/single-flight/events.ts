import { publishOn } from "../../base/events.ts";

/** Where a caller's value came from. */
export type ValueSource =
  /** It was in the memory of this process (`inProcessForMs`). Nothing was sent. */
  | "process"
  /** It was in the cache. */
  | "cache"
  /** This process has computed it. */
  | "computation"
  /** Another process computed it while this one waited. */
  | "otherProcess"
  /**
   * It is past its time. Another caller is computing a newer one, or none could: the event `served` has the error.
   */
  | "stale";

/** One caller has its value. */
export interface ServedEvent {
  readonly type: "served";
  readonly key: string;
  readonly source: ValueSource;
  readonly waitedMs: number;
  /** The error that the caller would have got without a stale value (`staleOnError`); absent otherwise. */
  readonly error?: unknown;
}

/** An attempt at a computation has ended in this process. */
export interface ComputedEvent {
  readonly type: "computed";
  readonly key: string;
  readonly fencingToken: number;
  /** 1 for the first (`maxAttempts`). Each one has an event. */
  readonly attempt: number;
  readonly tookMs: number;
  /** The error of the attempt; absent when it succeeded. */
  readonly error?: unknown;
}

/** The cache threw, hung or refused. After a failed write other callers compute again. */
export interface CacheFailedEvent {
  readonly type: "cacheFailed";
  readonly key: string;
  readonly operation: "read" | "write";
  /**
   * - `threw`: it threw `error`, or did not answer in time.
   * - `refused`: the result was not stored, because a later holder's is there, or the key has been invalidated since.
   * - `leaseLost`: nothing was sent, because the lease had ended before the result was there.
   */
  readonly reason: "threw" | "refused" | "leaseLost";
  readonly error?: unknown;
}

/**
 * A refresh in the background (`refreshAheadMs`) has failed: its computation, which has its own event too, or its lock.
 * The value is given until its end. Then callers compute, and get the error.
 */
export interface RefreshFailedEvent {
  readonly type: "refreshFailed";
  readonly key: string;
  readonly error: unknown;
}

/** All events of a SingleFlight. Errors are the computation's and the cache's own. */
export type SingleFlightEvent = ServedEvent | ComputedEvent | CacheFailedEvent | RefreshFailedEvent;

/** Receives every event of one SingleFlight. */
export type SingleFlightListener = (event: SingleFlightEvent) => void;

/** The diagnostics channel of all of them. */
export const singleFlightChannel = "leasehold:single-flight";

/** Publishes an event on the diagnostics channel and to the listeners; see `publishOn` for one that throws. */
export function publishFlightEvent(
  event: SingleFlightEvent,
  listeners: SingleFlightListener | readonly SingleFlightListener[] | undefined,
): void {
  publishOn(singleFlightChannel, event, listeners);
}
