/** The sort key of a result that was computed in single flight. */
export const cacheSortKey = "cache";

/**
 * The sort key of the lease under which a result is computed.
 *
 * It is not the key's own lease: the holder of that one may ask for a result of the same name. It begins with the
 * result's own sort key, so that one query reads both.
 */
export const flightSortKey = "cache#flight";
