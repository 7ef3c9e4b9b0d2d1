/**
 * Where a semaphore's permits are kept. Permit `i` is a lease like any other, at a place of its own under the
 * semaphore's key: `permit#000`, `permit#001` and so on. Those who wait fairly do so at the turnstile.
 */

/** Sort keys of permits begin with this; then comes the permit's number, counted from 0. */
export const permitSortKeyPrefix = "permit#";

/** Sort key of the turnstile: a lease with a queue, whose holder alone looks for a permit. */
export const turnPlace = "turn";

const permitDigits = 3;

/** The most permits that a semaphore can have: all of them are read with one query, which has to stay small. */
export const mostPermits: number = 10 ** permitDigits;

/** Gives the sort key of a permit. */
export function permitPlace(permit: number): string {
  return permitSortKeyPrefix + String(permit).padStart(permitDigits, "0");
}

/** Gives the number of the permit that a sort key belongs to; undefined for a sort key that is no permit's. */
export function permitNumber(place: string): number | undefined {
  if (!place.startsWith(permitSortKeyPrefix)) return undefined;
  const digits = place.slice(permitSortKeyPrefix.length);
  return digits.length === permitDigits && /^\d+$/.test(digits) ? Number(digits) : undefined;
}
