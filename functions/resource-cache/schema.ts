/**
 * The keys of the system's own table, which is not the lease table: `pk` and `sk`, both strings.
 *
 *     pk                   sk         one item for each
 *     movements#warehouse  movement   movement of goods into the warehouse or out of it
 *
 * The stock levels that follow from them are cached in the lease table, beside the lock under which they are computed.
 */

/** The environment variable with the table's name. */
export const tableVariable = "RESOURCE_CACHE_TABLE_NAME";

/** Keys of the cache begin with this; then comes the resource's name. */
export const cacheKeyPrefix = "resource-cache/";

/** The partition of what a resource is computed from. */
export function movementsPartition(warehouse: string): string {
  return `movements#${warehouse}`;
}

/**
 * The environment variable that says for how many milliseconds a process gives its own copy again before it looks in the
 * table; 0 for never. @default 0
 */
export const recentForVariable = "RESOURCE_CACHE_RECENT_FOR_MS";

/**
 * The environment variable that says how many milliseconds before the end of their time levels are added up again in the
 * background; 0 for never. @default 0
 */
export const refreshAheadVariable = "RESOURCE_CACHE_REFRESH_AHEAD_MS";

/** The environment variable that says for how many milliseconds levels are good. @default 60000 */
export const freshForVariable = "RESOURCE_CACHE_FRESH_FOR_MS";
