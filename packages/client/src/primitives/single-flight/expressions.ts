/**
 * The expressions of results that are computed in single flight.
 *
 *     storeResult       no later holder of the lock has stored one
 *     replaceResult     the one that was seen is still there
 *     resultAndHolder   a result, and the lease under which the next one is computed
 */
import { leaseItemKey, timeToLive } from "../../base/schema.ts";
import type { QueryRequest } from "../../base/store.ts";
import { notGrantedSince } from "../../statements/lock.ts";
import { type Part, say, type Values, Write } from "../../statements/statement.ts";
import { cacheSortKey } from "./schema.ts";

const stored: Part = { set: "#data = :data, #fence = :fence, #ttl = :ttl" };
const notStoredLater: Part = { when: "(attribute_not_exists(#fence) OR #fence <= :fence)" };
const stores = say(stored, notStoredLater);
const replaces = say(stored);

/** The content of a result's item. */
export interface StoredResult {
  readonly key: string;
  /** JSON text. */
  readonly text: string;
  /** Of the lease of its computation. */
  readonly fencingToken: number;
  /** The end of its use by any caller, in epoch milliseconds. */
  readonly endsAt: number;
}

/** Stores a result unless a later holder has stored one. The same holder may store again, so that a repeat is harmless. */
export function storeResult(result: StoredResult): Write {
  return new Write(leaseItemKey(result.key, cacheSortKey), stores, resultValues(result));
}

/**
 * Stores a result in the place of the entry that was seen, and of no other: not of the mark of an invalidation
 * either.
 *
 * A copy that arrives late changes nothing. A repeat is refused, and finds its own fencing token.
 */
export function replaceResult(result: StoredResult, seenFencingToken: number): Write {
  const write = new Write(leaseItemKey(result.key, cacheSortKey), replaces, resultValues(result));
  return notGrantedSince(write, seenFencingToken);
}

function resultValues({ text, fencingToken, endsAt }: StoredResult): Values {
  return { ":data": text, ":fence": fencingToken, ":ttl": timeToLive(endsAt, 0) };
}

/** Finds a result and the lease of the caller that computes the next one. */
export function resultAndHolder(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  return {
    keyCondition: "#pk = :key AND begins_with(#sk, :cache)",
    names: { "#pk": "pk", "#sk": "sk" },
    values: { ":key": key, ":cache": cacheSortKey },
  };
}
