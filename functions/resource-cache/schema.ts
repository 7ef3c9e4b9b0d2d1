/**
 * The keys of the cache's own table, which is not the lease table: `pk` and `sk`, both strings.
 *
 *     pk                   sk         one item for each
 *     movements#warehouse  movement   movement of goods into the warehouse or out of it
 *     levels               warehouse  the stock levels that follow from them, with the time of their computation
 */

/** The environment variable with the table's name. */
export const tableVariable = "RESOURCE_CACHE_TABLE_NAME";

/** Locks of the cache begin with this; then comes the resource's name. */
export const cacheKeyPrefix = "resource-cache/";

/** The primary key of an item. */
export interface CacheItemKey {
  readonly pk: string;
  readonly sk: string;
}

/** The key of a cached resource. */
export function levelsKey(warehouse: string): CacheItemKey {
  return { pk: "levels", sk: warehouse };
}

/** The partition of what a resource is computed from. */
export function movementsPartition(warehouse: string): string {
  return `movements#${warehouse}`;
}

/** The attribute that remembers the highest fencing token. */
export const fenceAttribute = "fence";

/** The environment variable that says for how many milliseconds levels are good. @default 60000 */
export const freshForVariable = "RESOURCE_CACHE_FRESH_FOR_MS";
