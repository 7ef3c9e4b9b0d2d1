import { checkStore } from "../../base/check-options.ts";
import {
  aFunction,
  check,
  checkOptions,
  checkSignal,
  type Rules,
  text,
  withMethods,
} from "../../base/check-values.ts";
import { systemClock } from "../../base/clock.ts";
import { LeaseError, saying } from "../../base/errors.ts";
import { mayPass } from "../../base/operational.ts";
import type { ItemKey } from "../../base/schema.ts";
import type { LeaseStore } from "../../base/store.ts";
import { type ConformanceCheck, defaultKeyPrefix, withTable } from "./check.ts";
import { conformanceChecks } from "./checks.ts";
import { type ConformanceCost, type ConformanceMeasurements, Meter, measure } from "./measurements.ts";

/** The result of one check. */
export interface ConformanceResult extends Pick<ConformanceCheck, "group" | "name"> {
  readonly outcome: "ok" | "failed" | "skipped";
  /** Why it failed, or was skipped. */
  readonly reason?: string;
  readonly tookMs: number;
}

/** Options of {@link runConformance}. */
export interface ConformanceRunOptions {
  /** The store to check. */
  readonly store: LeaseStore;
  /**
   * The prefix of all written keys; a random text follows. At most 1024 bytes.
   * @default "leasehold-conformance/"
   */
  readonly keyPrefix?: string;
  /** The checks to run. @default - all of {@link conformanceChecks} */
  readonly checks?: readonly ConformanceCheck[];
  /** Ends the run between two checks; what was written is removed. */
  readonly signal?: AbortSignal;
  /** Gets each result as soon as it is known. */
  readonly onResult?: (result: ConformanceResult) => void;
}

/** The result of a run. */
export interface ConformanceReport {
  /** In the order of the checks. */
  readonly results: readonly ConformanceResult[];
  /** Whether no check has failed. */
  readonly conforms: boolean;
  /** Undefined if a check has failed: measurements of a wrong store mean nothing. */
  readonly measured: ConformanceMeasurements | undefined;
  readonly cost: ConformanceCost;
  /** Keys of items that could not be removed. */
  readonly leftBehind: readonly ItemKey[];
}

const aCheck = withMethods<ConformanceCheck>("run");

const conformanceRules: Rules<ConformanceRunOptions> = {
  store: checkStore,
  keyPrefix: text(1_024),
  checks: (option, value) => {
    check(Array.isArray(value), option, value, "an array of checks");
    return value.map((each, index) => aCheck(`${option}.${index}`, each));
  },
  signal: checkSignal,
  onResult: aFunction,
};

/**
 * Makes all checks on a store, one after the other, measures it, and removes what it has written.
 *
 * ```ts
 * const report = await runConformance({ store: lightStore({ tableName: "leases" }) });
 * for (const { name, outcome, reason } of report.results) console.log(outcome, name, reason ?? "");
 * ```
 *
 * It first writes one item and removes it. If that fails, it rejects with the store's error, such as a missing table or
 * permission. It skips a check whose calls are denied, and repeats a check once if its failure may pass. Rejects with
 * InvalidOptionsError, and with the signal's reason once it aborts.
 *
 * On DynamoDB it takes about 1,100 calls, 8,000 write units and 1,000 read units: about half a cent.
 */
export async function runConformance(options: ConformanceRunOptions): Promise<ConformanceReport> {
  const {
    store,
    keyPrefix = defaultKeyPrefix,
    checks = conformanceChecks,
    signal,
    onResult,
  } = checkOptions(options, conformanceRules, "options", ["store"]);
  const meter = new Meter(store);
  const metered = meter.store;
  const leftBehind: ItemKey[] = [];
  const onLeftBehind = (keys: readonly ItemKey[]): void => {
    leftBehind.push(...keys);
  };
  await withTable(metered, { keyPrefix, onLeftBehind }, (table) => table.put("first", { n: 1 }));
  const results: ConformanceResult[] = [];
  for (const each of checks) {
    signal?.throwIfAborted();
    const startedAt = systemClock.monotonic();
    const outcome = await checkOutcomeOf(() => each.run(metered, { keyPrefix, onLeftBehind }));
    const { group, name } = each;
    const result = { group, name, ...outcome, tookMs: systemClock.monotonic() - startedAt };
    results.push(result);
    onResult?.(result);
  }
  const conforms = results.every(({ outcome }) => outcome !== "failed");
  const figures = conforms
    ? await withTable(metered, { keyPrefix, onLeftBehind }, (table) => measure(table, signal))
    : undefined;
  const measured = figures && { ...figures, clockOffset: meter.clockOffset };
  return { results, conforms, measured, cost: meter.cost, leftBehind };
}

type CheckOutcome = Pick<ConformanceResult, "outcome" | "reason">;

async function checkOutcomeOf(run: () => Promise<string | undefined>): Promise<CheckOutcome> {
  try {
    // A throttling service can still conform.
    const reason = await run().catch((error: unknown) => (mayPass(error) ? run() : Promise.reject(error)));
    return reason === undefined ? { outcome: "ok" } : { outcome: "skipped", reason };
  } catch (error) {
    const isDenied = error instanceof LeaseError && error.code === "LEASE_ACCESS_DENIED";
    return { outcome: isDenied ? "skipped" : "failed", reason: saying(error) };
  }
}
