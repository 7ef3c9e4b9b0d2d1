import type { ClientInternals } from "../client-internals.ts";
import { type FairTerms, separateFairness } from "../fair/options.ts";
import { type AcquisitionTerms, checkAcquireOptions } from "../options/check-options.ts";
import { check, checkData, checkKnown, isWhole } from "../options/check-values.ts";
import type { AcquireOptions, HoldOptions, WaitOptions } from "../options/options.ts";
import { mostPermits } from "../schema-semaphore.ts";

/** Options of a {@link Semaphore}. */
export interface SemaphoreOptions {
  /** How many may hold a permit at once. From 1 to 1000. Callers with different numbers: see {@link Semaphore}. */
  readonly permits: number;
  /**
   * Whether permits beyond `permits`, given when there were more of them, count from this object's very first
   * permit. It then looks before it takes: 1 read more, until a look has found none of them held. Without it, only a
   * refusal makes it look.
   * @default false
   */
  readonly strict?: boolean;
  /**
   * Lets callers in as they came: whoever finds others waiting, or gets no permit at once, waits in a queue. Costs 1
   * read before each acquisition. Callers of objects that are not fair are let in past the queue. @default false
   */
  readonly fair?: boolean;
  /**
   * With `fair`: how many may wait, in all processes together, before QueueFullError refuses more. From 1 to 500.
   * Objects with different numbers: each goes by its own. @default 100
   */
  readonly maxWaiters?: number;
}

/**
 * Options of one permit that is not waited for: a lease's, without `slot`.
 *
 * A run that must not be repeated is a matter of one lock: each permit would remember slots of its own.
 */
export type TryPermitOptions = Omit<HoldOptions, "slot">;

/**
 * Options of one permit: a lease's, without `slot`; `onPlace` only of a fair semaphore's, and `retry` only of another's,
 * for a fair one has a rhythm of its own.
 */
export type PermitOptions = Omit<WaitOptions, "slot"> & Pick<AcquireOptions, "onPlace">;

const tryPermitOptionNames: readonly (keyof TryPermitOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "lockAtLeastForMs",
  "reentrant",
];
const permitOptionNames: readonly (keyof PermitOptions)[] = [
  ...tryPermitOptionNames,
  "waitMs",
  "retry",
  "onPlace",
];

/** A semaphore's options, validated. */
export interface SemaphoreTerms extends Required<Pick<SemaphoreOptions, "permits" | "strict">> {
  /** How many may wait in turn; undefined where callers are not let in as they came. */
  readonly maxWaiters: number | undefined;
}

/** Validates a semaphore's options. */
export function checkSemaphoreOptions(options: SemaphoreOptions): SemaphoreTerms {
  const given = checkKnown(options, ["permits", "strict", "fair", "maxWaiters"], "options");
  const { permits, strict = false, ...fairness } = given;
  const isInRange = isWhole(permits) && permits >= 1 && permits <= mostPermits;
  const allowed = `a whole number from 1 to ${mostPermits}; with none, nobody could ever get a permit`;
  check(isInRange, "permits", permits, allowed);
  check(typeof strict === "boolean", "strict", strict, "true or false");
  return { permits, strict, maxWaiters: separateFairness(fairness, true).fair?.maxWaiters };
}

/** The options of one permit, validated; `fair` is undefined where callers are not let in as they came. */
export interface PermitTerms {
  readonly terms: AcquisitionTerms;
  readonly fair: FairTerms | undefined;
}

/** Validates the options of one permit, the payload included. */
export function checkPermitOptions(
  options: PermitOptions,
  mayWait: boolean,
  maxWaiters: number | undefined,
  { owner, times }: ClientInternals,
): PermitTerms {
  const given = checkKnown(options, mayWait ? permitOptionNames : tryPermitOptionNames, "options");
  const fairness = maxWaiters === undefined ? { fair: false } : { fair: true, maxWaiters };
  const { fair, others } = separateFairness({ ...given, ...fairness }, true);
  const terms = checkAcquireOptions(others, mayWait, owner, times);
  checkData(terms.data);
  return { terms, fair };
}
