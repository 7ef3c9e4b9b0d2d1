import type { Clock } from "@leasehold/client";

/** What has become of a promise so far, and when, on the clock's monotonic time. */
export interface Followed<T> {
  value?: T;
  error?: unknown;
  at?: number;
}

/** Follows a promise without waiting for it. */
export function follow<T>(promise: Promise<T>, clock: Clock): Followed<T> {
  const followed: Followed<T> = {};
  promise.then(
    (value) => Object.assign(followed, { value, at: clock.monotonic() }),
    (error: unknown) => Object.assign(followed, { error, at: clock.monotonic() }),
  );
  return followed;
}
