import type { Clock, Randomness } from "./clock.ts";

/**
 * How long to wait between two looks at a lock that another caller holds.
 *
 * - `untilExpiry`, the default: sleeps until the holder's lease could be taken over. It looks earlier now and then
 *   (after about 0.25 s, then twice that, up to 5 s, with jitter) for an early release. When a look has shown that
 *   the lock changed hands, the next one comes at the expected end of the next hold.
 * - `fixed`: `delayMs` each time.
 * - `linear`: `delayMs`, then twice, then three times that.
 * - `exponential`: `delayMs`, then twice that, then four times that.
 * - `fullJitter`: a random time between 0 and what `exponential` would wait.
 * - `random`: a random time from `minDelayMs` to `maxDelayMs`.
 *
 * `maxDelayMs` limits `linear`, `exponential` and `fullJitter`. @default 30000
 *
 * `maxRetries` ends the wait after this many pauses, even before `waitMs` is over: from 1 to 1000000. The caller gets
 * the same error as at the end of `waitMs`. With `waitMs: 0` there is no wait. @default - no limit
 */
export type RetryStrategy =
  | { readonly strategy: "untilExpiry" }
  | { readonly strategy: "fixed"; readonly delayMs: number; readonly maxRetries?: number }
  | {
      readonly strategy: "random";
      readonly minDelayMs: number;
      readonly maxDelayMs: number;
      readonly maxRetries?: number;
    }
  | {
      readonly strategy: "linear" | "exponential" | "fullJitter";
      readonly delayMs: number;
      readonly maxDelayMs?: number;
      readonly maxRetries?: number;
    };

/** The state that a strategy depends on. */
export interface RetryState {
  /** 1 for the first wait. */
  readonly attempt: number;
  /** When the lock could be taken over if nothing changes. */
  readonly claimableInMs: number;
  /** When to look for an early release, by how long holds have lasted; undefined while that is not known. */
  readonly releaseInMs?: number | undefined;
  /** A number from 0 to 1. */
  readonly fraction: number;
  /** How many callers share their looks: one look serves them all, so it may come that much sooner. @default 1 */
  readonly crowd?: number;
}

const defaultMaxDelayMs = 30_000;
const firstProbeMs = 250;
const slowestProbeMs = 5_000;
/** The waiters of one lock wake at the same time. Spread over this time, they do not all send a request at once. */
export const wakeSpreadMs = 50;

/**
 * Returns a function that returns one caller's next pause between its tries and looks, in milliseconds; Infinity when
 * no pause is left. `claimableAt`: when the lock can be had, on the monotonic clock. `holds`: what is known of how long
 * holders keep it. `crowdNow`: how many callers share their looks.
 */
export function retryPauses(
  { clock, randomness }: { readonly clock: Clock; readonly randomness: Randomness },
  retry: RetryStrategy,
  holds?: { nextLookMs(now: number, fraction: number, crowd: number): number | undefined },
  crowdNow: () => number = () => 1,
): (claimableAt?: number) => number {
  let attempt = 0;
  return (claimableAt = Number.POSITIVE_INFINITY) => {
    attempt += 1;
    if (retry.strategy !== "untilExpiry" && attempt > (retry.maxRetries ?? Number.POSITIVE_INFINITY))
      return Number.POSITIVE_INFINITY;
    const fraction = randomness.fraction();
    const crowd = crowdNow();
    return retryDelayMs(retry, {
      attempt,
      claimableInMs: Math.max(0, claimableAt - clock.monotonic()),
      releaseInMs: holds?.nextLookMs(clock.now(), fraction, crowd),
      fraction,
      crowd,
    });
  };
}

/** Returns the pause before the next look, in milliseconds. */
export function retryDelayMs(retry: RetryStrategy, state: RetryState): number {
  if (retry.strategy === "untilExpiry") {
    const probe = Math.min(firstProbeMs * 2 ** (state.attempt - 1), slowestProbeMs) * (0.5 + state.fraction);
    return Math.min(
      state.releaseInMs ?? probe / (state.crowd ?? 1),
      state.claimableInMs + wakeSpreadMs * state.fraction,
    );
  }
  if (retry.strategy === "fixed") return retry.delayMs;
  if (retry.strategy === "random")
    return retry.minDelayMs + (retry.maxDelayMs - retry.minDelayMs) * state.fraction;
  const factor = retry.strategy === "linear" ? state.attempt : 2 ** (state.attempt - 1);
  const delay = Math.min(retry.delayMs * factor, retry.maxDelayMs ?? defaultMaxDelayMs);
  return retry.strategy === "fullJitter" ? delay * state.fraction : delay;
}

/** How long a failed task or computation waits before its next attempt. */
export interface BackoffOptions {
  /** The wait after the first attempt, in milliseconds; it doubles with each attempt. 0 for none. @default 10000 */
  readonly delayMs?: number;
  /** The longest wait, in milliseconds; no shorter than `delayMs`. @default 900000 (15 minutes), or `delayMs` */
  readonly maxDelayMs?: number;
}

/**
 * Returns the wait after an attempt, in whole milliseconds: at least half of the full wait, and a random part of the
 * rest. So tasks that have failed together do not return together.
 */
export function backoffMs(
  { delayMs, maxDelayMs }: Required<BackoffOptions>,
  attempt: number,
  randomness: Randomness,
): number {
  const longest = Math.min(delayMs * 2 ** (attempt - 1), maxDelayMs);
  return Math.round(longest * (0.5 + randomness.fraction() / 2));
}
