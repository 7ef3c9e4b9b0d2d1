/**
 * The expressions of results that are computed in single flight.
 *
 *     storeResult       no later holder of the lock has stored one
 *     replaceResult     the one that was seen is still there
 *     resultAndHolder   a result, and the lease under which the next one is computed
 */
import { attributeNames, leaseItemKey, timeToLive } from "../schema.ts";
import type { Write } from "../store/write.ts";
import type { QueryRequest } from "../store.ts";
import { cacheSortKey } from "./schema.ts";

const { data, fence, partitionKey, sortKey } = attributeNames;
const ttl = attributeNames.timeToLive;

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
export function storeResult({ key, text, fencingToken, endsAt }: StoredResult): Write {
  return {
    key: leaseItemKey(key, cacheSortKey),
    set: { [data]: text, [fence]: fencingToken, [ttl]: timeToLive(endsAt, 0) },
    insist: [
      {
        anyOf: [
          [fence, "missing"],
          [fence, "<=", fencingToken],
        ],
      },
    ],
  };
}

/**
 * Stores a result in the place of the entry that was seen, and of no other: not of the mark of an invalidation
 * either.
 *
 * A copy that arrives late changes nothing. A repeat is refused, and finds its own fencing token.
 */
export function replaceResult(result: StoredResult, seenFencingToken: number): Write {
  return { ...storeResult(result), insist: [[fence, "=", seenFencingToken]] };
}

/** Finds a result and the lease of the caller that computes the next one. */
export function resultAndHolder(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  return {
    keyCondition: `#${partitionKey} = :key AND begins_with(#${sortKey}, :cache)`,
    names: { [`#${partitionKey}`]: partitionKey, [`#${sortKey}`]: sortKey },
    values: { ":key": key, ":cache": cacheSortKey },
  };
}
