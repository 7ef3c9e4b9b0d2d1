import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { once, required, wholeNumber } from "../support/environment.ts";
import { durationIn, fieldsOf, flagIn, nameIn } from "../support/input.ts";
import { leaseClient, warn } from "../support/leases.ts";
import { waitWithin, workWithin } from "../support/working-time.ts";
import { type CacheAnswer, type CacheTrouble, cached, resourceFlights, rhythmOf, rhythms } from "./cache.ts";
import {
  cacheKeyPrefix,
  freshForVariable,
  recentForVariable,
  refreshAheadVariable,
  tableVariable,
} from "./schema.ts";
import { type StockLevels, StockMovements } from "./stock-levels.ts";

const parts = once(() => {
  const times = {
    freshForMs: wholeNumber(freshForVariable, 60_000),
    inProcessForMs: wholeNumber(recentForVariable, 0, 0),
    refreshAheadMs: wholeNumber(refreshAheadVariable, 0, 0),
  };
  return {
    flights: resourceFlights(leaseClient(documents()), times, onTrouble),
    movements: new StockMovements(documents(), required(tableVariable)),
  };
});

/**
 * Gives a warehouse's stock levels, computed by one caller at a time.
 *
 *     { "warehouse": "north", "waitMs": 2000, "retry": "fullJitter" }
 *     → { "value": { "mug": 12 }, "computedAt": 1772359200000, "source": "cache" }
 *
 * Only the warehouse is needed. `retry` is one of untilExpiry, fixed, linear, exponential, fullJitter and random (150 to
 * 250 ms, five times), or the client's own option: `{ "strategy": "random", "minDelayMs": 50, "maxDelayMs": 100, "maxRetries": 3 }`.
 * `refresh` computes again although a value is in the cache.
 *
 * Dies before it has the lock: nothing has happened. Dies between the lock and the storing of the value: the lease ends
 * after 10 s and the next caller computes; until then callers get the value of at most a day ago, or wait. Dies between
 * storing and release: callers find the value, and the lock frees itself. Dies after the release: the value is there.
 * Frozen for longer than its lease: what it computed is not stored over its successor's; it is given to its own caller.
 * Runs out of time: the computation is cut off, and the lock let go, 2 s before Lambda would end it. Frozen after its
 * answer with a refresh ahead under way: another instance refreshes when the lease is over; this one stores nothing.
 */
export const handler: Answering<CacheAnswer<StockLevels>> = answering((event, context) => {
  const fields = fieldsOf(event, ["warehouse", "waitMs", "retry", "refresh"]);
  const warehouse = nameIn(fields, "warehouse");
  const remainingMs = context.getRemainingTimeInMillis();
  const waitMs = waitWithin(durationIn(fields, "waitMs", 2_000), remainingMs);
  const retry = fields.retry === undefined ? rhythms.untilExpiry : rhythmOf(fields.retry);
  const { flights, movements } = parts();
  return cached({
    flights,
    key: cacheKeyPrefix + warehouse,
    compute: (signal) => movements.levels(warehouse, signal),
    waitMs,
    retry,
    forceRefresh: flagIn(fields, "refresh"),
    // The wait may come first.
    computeTimeoutMs: workWithin(remainingMs - waitMs),
  });
});

/** The caller has a value all the same, new or old: only the log tells. */
function onTrouble(event: CacheTrouble): void {
  const { key, error } = event;
  const why = error instanceof Error ? { error: `${error.name}: ${error.message}` } : {};
  if (event.type === "cacheFailed")
    warn(`cache ${event.operation} failed`, { reason: event.reason, key, ...why });
  else
    warn(event.type === "served" ? "an old value in place of an error" : "refresh ahead failed", {
      key,
      ...why,
    });
}
