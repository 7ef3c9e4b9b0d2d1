/** What an invocation keeps of its time for the release and the answer. */
const reserveMs = 2_000;

/** DynamoDB takes single-digit milliseconds; a lease below this is of no use to anybody. */
const shortestMs = 1_000;

/**
 * How long a lease has to be that lasts as long as the invocation: then it needs no renewal, and one that Lambda ends
 * leaves a lease that ends at the same time.
 */
export function leaseForInvocation(remainingMs: number): number {
  return Math.max(shortestMs, Math.floor(remainingMs));
}

/** Whether there is time to begin something else. */
export function hasTimeLeft(remainingMs: number): boolean {
  return remainingMs > reserveMs;
}

/** Cuts a wait to half of the time that is left: what comes after it needs time too. */
export function waitWithin(waitMs: number, remainingMs: number): number {
  return Math.min(waitMs, Math.max(0, Math.floor(remainingMs / 2)));
}

/** How long one piece of work may take so that there is time left for what comes after it. */
export function workWithin(remainingMs: number): number {
  return Math.max(shortestMs, Math.floor(remainingMs - reserveMs));
}

/** Aborts when there is no time left to begin something else. */
export function untilTimeIsUp(remainingMs: number): AbortSignal {
  if (!hasTimeLeft(remainingMs)) return AbortSignal.abort();
  return AbortSignal.timeout(Math.floor(remainingMs - reserveMs));
}
