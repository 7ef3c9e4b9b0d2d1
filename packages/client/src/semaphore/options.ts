import type { ClientInternals } from "../internals.ts";
import type { HoldOptions, WaitOptions } from "../options.ts";
import { type AcquisitionTerms, checkAcquireOptions } from "../options-check.ts";
import { mostPermits } from "../schema-semaphore.ts";
import { check, checkData, checkKnown, isWhole } from "../validation.ts";

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
}

/**
 * Options of one permit that is not waited for: a lease's, without `slot`.
 *
 * A run that must not be repeated is a matter of one lock: each permit would remember slots of its own.
 */
export type TryPermitOptions = Omit<HoldOptions, "slot">;

/** Options of one permit: a lease's, without `slot`. */
export type PermitOptions = Omit<WaitOptions, "slot">;

const tryPermitOptionNames: readonly (keyof TryPermitOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "lockAtLeastForMs",
  "reentrant",
];
const permitOptionNames: readonly (keyof PermitOptions)[] = [...tryPermitOptionNames, "waitMs", "retry"];

/** Validates a semaphore's options. */
export function checkSemaphoreOptions(options: SemaphoreOptions): Required<SemaphoreOptions> {
  checkKnown(options, ["permits", "strict"], "options");
  const { permits, strict = false } = options;
  const isInRange = isWhole(permits) && permits >= 1 && permits <= mostPermits;
  const allowed = `a whole number from 1 to ${mostPermits}; with none, nobody could ever get a permit`;
  check(isInRange, "permits", permits, allowed);
  check(typeof strict === "boolean", "strict", strict, "true or false");
  return { permits, strict };
}

/** Validates the options of one permit, the payload included. */
export function checkPermitOptions(
  options: PermitOptions,
  mayWait: boolean,
  { owner, leaseDurationMs, context }: ClientInternals,
): AcquisitionTerms {
  checkKnown(options, mayWait ? permitOptionNames : tryPermitOptionNames, "options");
  const { clockSkewMs, retentionMs } = context;
  // The client itself knows how short a lease may be, and refuses shorter ones with the first attempt.
  const times = { leaseDurationMs, clockSkewMs, retentionMs, shortestLeaseMs: 1 };
  const terms = checkAcquireOptions(options, mayWait, owner, times);
  checkData(terms.data);
  return terms;
}
