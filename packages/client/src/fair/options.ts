import type { ClientInternals } from "../internals.ts";
import type { AcquireOptions } from "../options.ts";
import { type AcquisitionTerms, checkAcquireOptions } from "../options-check.ts";
import { utf8Bytes } from "../schema.ts";
import { fairLimits } from "../schema-fair.ts";
import { check, checkData, checkKnown, isWhole } from "../validation.ts";

/** Options of a {@link FairLock}. */
export interface FairLockOptions {
  /**
   * How many may wait, in all processes together. From 1 to 500. Every write of the lock is billed for the places of
   * those who wait, about ten of them for each kilobyte. Callers with different numbers: each goes by its own.
   * @default 100
   */
  readonly maxWaiters?: number;
}

/** Where a waiter stands. */
export interface PlaceInQueue {
  /** 1 for the one whose turn comes next. */
  readonly place: number;
  /**
   * In how many milliseconds its turn comes, about: by what holds have lasted lately. Undefined before the first
   * release.
   */
  readonly aboutMs: number | undefined;
}

/**
 * Options of one acquisition: a lease's, without `slot` and `retry`. A fair lock has a rhythm of waiting of its own.
 */
export interface FairAcquireOptions extends Omit<AcquireOptions, "slot" | "retry"> {
  /**
   * Called when the caller has joined the queue, and whenever its place is seen to have changed. What it throws ends
   * the wait.
   * @default - nobody is told
   */
  readonly onPlace?: (place: PlaceInQueue) => void;
}

const acquireOptionNames: readonly (keyof FairAcquireOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "lockAtLeastForMs",
  "reentrant",
  "waitMs",
  "onPlace",
];

const defaultMaxWaiters = 100;

/** Validates a fair lock's options. */
export function checkFairLockOptions(options: FairLockOptions): Required<FairLockOptions> {
  checkKnown(options, ["maxWaiters"], "options");
  const { maxWaiters = defaultMaxWaiters } = options;
  const { mostWaiters } = fairLimits;
  const isInRange = isWhole(maxWaiters) && maxWaiters >= 1 && maxWaiters <= mostWaiters;
  check(isInRange, "maxWaiters", maxWaiters, `a whole number from 1 to ${mostWaiters}`);
  return { maxWaiters };
}

/** One acquisition's options, validated and complete. */
export interface FairTerms extends Omit<AcquisitionTerms, "data"> {
  /** JSON text. */
  readonly data: string | undefined;
  readonly onPlace: ((place: PlaceInQueue) => void) | undefined;
}

/** Validates the options of one acquisition, the payload included. */
export function checkFairOptions(
  options: FairAcquireOptions,
  { owner, leaseDurationMs, context }: ClientInternals,
): FairTerms {
  checkKnown(options, acquireOptionNames, "options");
  const { onPlace, ...others } = options;
  check(onPlace === undefined || typeof onPlace === "function", "onPlace", onPlace, "a function");
  const { clockSkewMs, retentionMs } = context;
  const terms = checkAcquireOptions(others, true, owner, {
    leaseDurationMs,
    clockSkewMs,
    retentionMs,
    shortestLeaseMs: 1,
  });
  const data = checkData(terms.data);
  const bytes = data === undefined ? 0 : utf8Bytes(data);
  const { dataBytes } = fairLimits;
  check(bytes <= dataBytes, "data", `${bytes} bytes of JSON`, `at most ${dataBytes} bytes of JSON`);
  return { ...terms, data, onPlace };
}
