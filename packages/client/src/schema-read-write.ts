/**
 * Where a read-write lock is kept: the writer's lease at `rw#write` under the lock's key, and each reader's at a place
 * of its own, `rw#read#0000`, `rw#read#0001` and so on, which the next reader uses again.
 */

/** Sort keys of everything that belongs to a read-write lock begin with this. */
export const readWriteSortKeyPrefix = "rw#";

/** The sort key of the writer's lease, which is the gate: readers pass it only while nobody holds it. */
export const writerPlace = "rw#write";

const readerSortKeyPrefix = "rw#read#";
const readerDigits = 4;

/** The most readers at a time. A writer reads all their places with one query, which has to stay small. */
export const mostReaders = 4096;

/** Gives the sort key of a reader's lease. */
export function readerPlace(number: number): string {
  return readerSortKeyPrefix + String(number).padStart(readerDigits, "0");
}

/** Tells whether a sort key is that of a reader's lease. */
export function isReaderPlace(place: string): boolean {
  return place.startsWith(readerSortKeyPrefix);
}
