import type { ClientInternals } from "../client-internals.ts";
import { type AcquisitionTerms, checkAcquireOptions } from "../options/check-options.ts";
import { checkData, checkKnown } from "../options/check-values.ts";
import type { HoldOptions, WaitOptions } from "../options/options.ts";

/** Options of a read lock that is not waited for: a lease's, without `slot` and `lockAtLeastForMs`. */
export type TryReadOptions = Omit<HoldOptions, "slot" | "lockAtLeastForMs">;
/** Options of a read lock: a lease's, without `slot` and `lockAtLeastForMs`. */
export type ReadOptions = Omit<WaitOptions, "slot" | "lockAtLeastForMs">;
/** Options of a write lock that is not waited for: a lease's, without `slot` and `lockAtLeastForMs`. */
export type TryWriteOptions = TryReadOptions;
/** Options of a write lock: a lease's, without `slot` and `lockAtLeastForMs`. */
export type WriteOptions = ReadOptions;

const tryOptionNames: readonly (keyof TryReadOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "reentrant",
];
const optionNames: readonly (keyof ReadOptions)[] = [...tryOptionNames, "waitMs", "retry"];

/** Validates the options of one read or write lock, the payload included. */
export function checkLockOptions(
  options: ReadOptions,
  mayWait: boolean,
  { owner, times }: ClientInternals,
): AcquisitionTerms {
  const given = checkKnown(options, mayWait ? optionNames : tryOptionNames, "options");
  const terms = checkAcquireOptions(given, mayWait, owner, times);
  checkData(terms.data);
  return terms;
}
