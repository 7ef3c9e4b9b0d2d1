/**
 * The one expression that a semaphore adds: its permits are leases, and are acquired, renewed and released by the
 * expressions of every lease, at another sort key.
 */
import { attributeNames } from "./schema.ts";
import { permitSortKeyPrefix } from "./schema-semaphore.ts";
import type { QueryRequest } from "./store.ts";

const { partitionKey, sortKey } = attributeNames;

/** Finds the permits of a semaphore in the order of their numbers: held ones and tombstones, whatever its size. */
export function permitsOf(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  return {
    keyCondition: `#${partitionKey} = :key AND begins_with(#${sortKey}, :permits)`,
    names: { [`#${partitionKey}`]: partitionKey, [`#${sortKey}`]: sortKey },
    values: { ":key": key, ":permits": permitSortKeyPrefix },
  };
}
