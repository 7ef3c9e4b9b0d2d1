import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required, wholeNumber } from "../support/environment.ts";
import { durationIn, fieldsOf, nameIn } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { waitWithin } from "../support/working-time.ts";
import { type CacheAnswer, ResourceCache, rhythmOf, rhythms } from "./cache.ts";
import { freshForVariable, tableVariable } from "./schema.ts";
import { StockLevelBook, type StockLevels } from "./stock-levels.ts";

const parts = once(() => ({
  leases: leaseClient(documents()),
  entries: new StockLevelBook(documents(), required(tableVariable)),
  freshForMs: wholeNumber(freshForVariable, 60_000),
}));

/**
 * Gives a warehouse's stock levels, computed by one caller at a time.
 *
 *     { "warehouse": "north", "waitMs": 2000, "retry": "fullJitter" }
 *     → { "value": { "mug": 12 }, "computedAt": 1772359200000, "source": "cache" }
 *
 * Only the warehouse is needed; `retry` is one of untilExpiry, fixed, linear, exponential and fullJitter. What happens
 * when it dies between any two steps is said at {@link ResourceCache}.
 */
export const handler: Answering<CacheAnswer<StockLevels>> = answering((event, context) => {
  const fields = fieldsOf(event, ["warehouse", "waitMs", "retry"]);
  const warehouse = nameIn(fields, "warehouse");
  const waitMs = waitWithin(durationIn(fields, "waitMs", 2_000), context.getRemainingTimeInMillis());
  const retry = fields.retry === undefined ? rhythms.untilExpiry : rhythmOf(fields.retry);
  const { entries, ...rest } = parts();
  const compute = (name: string, signal: AbortSignal): Promise<StockLevels> => entries.compute(name, signal);
  return new ResourceCache({ ...rest, entries, compute, waitMs, retry, now: Date.now }).get(warehouse);
});
