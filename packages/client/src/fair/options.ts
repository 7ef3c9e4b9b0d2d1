import { holdOptionNames, waitOptionNames } from "../options/check-options.ts";
import { check, checkKnown, checkSize, isWhole } from "../options/check-values.ts";
import type { AcquireOptions, PlaceInQueue, TryAcquireOptions, WaitOptions } from "../options/options.ts";
import { utf8Bytes } from "../schema.ts";
import { fairLimits } from "../schema-fair.ts";

/** What a fair caller asks for beside what every caller does, validated. */
export interface FairTerms {
  readonly maxWaiters: number;
  readonly onPlace: ((place: PlaceInQueue) => void) | undefined;
}

const tryAcquireOptionNames: readonly (keyof TryAcquireOptions)[] = [...holdOptionNames, "fair"];
const acquireOptionNames: readonly (keyof AcquireOptions)[] = [
  ...waitOptionNames,
  "fair",
  "maxWaiters",
  "onPlace",
];

const defaultMaxWaiters = 100;

/** Separates what only fair callers ask for from the rest; `fair` is undefined for a caller that is not. */
export function separateFairness(
  options: AcquireOptions,
  mayWait: boolean,
): { readonly fair: FairTerms | undefined; readonly others: WaitOptions } {
  const given = checkKnown(options, mayWait ? acquireOptionNames : tryAcquireOptionNames, "options");
  const { fair = false, maxWaiters, onPlace, ...others } = given;
  check(typeof fair === "boolean", "fair", fair, "true or false");
  if (fair) {
    check(others.retry === undefined, "retry", others.retry, "nothing with fair: it has a rhythm of its own");
    check(onPlace === undefined || typeof onPlace === "function", "onPlace", onPlace, "a function");
    return { fair: { maxWaiters: checkMaxWaiters(maxWaiters), onPlace }, others };
  }
  check(maxWaiters === undefined, "maxWaiters", maxWaiters, "nothing without fair: true");
  check(onPlace === undefined, "onPlace", onPlace, "nothing without fair: true");
  return { fair: undefined, others };
}

/** Validates how many may wait. */
export function checkMaxWaiters(maxWaiters: number = defaultMaxWaiters): number {
  const { mostWaiters } = fairLimits;
  const isInRange = isWhole(maxWaiters) && maxWaiters >= 1 && maxWaiters <= mostWaiters;
  check(isInRange, "maxWaiters", maxWaiters, `a whole number from 1 to ${mostWaiters}`);
  return maxWaiters;
}

/** The payload shares the item with the queue. */
export function checkDataBesideQueue(data: string | undefined): void {
  checkSize("data", data === undefined ? 0 : utf8Bytes(data), fairLimits.dataBytes, " with fair");
}
