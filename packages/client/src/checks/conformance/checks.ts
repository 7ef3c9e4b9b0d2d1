import { callChecks } from "./calls.ts";
import type { ConformanceCheck } from "./check.ts";
import { conditionChecks } from "./conditions.ts";
import { contentionChecks } from "./contention.ts";
import { leaseChecks } from "./leases.ts";
import { limitChecks } from "./limits.ts";
import { readChecks } from "./reads.ts";
import { transactionChecks } from "./transactions.ts";
import { writeChecks } from "./writes.ts";

/**
 * All checks of a store of leases, whatever the store is. They are independent of each other, and of any test runner:
 *
 * ```ts
 * for (const { name, run } of conformanceChecks) {
 *   test(name, async (t) => {
 *     const reason = await run(store);
 *     if (reason !== undefined) t.skip(reason);
 *   });
 * }
 * ```
 */
export const conformanceChecks: readonly ConformanceCheck[] = [
  ...writeChecks,
  ...conditionChecks,
  ...transactionChecks,
  ...readChecks,
  ...limitChecks,
  ...contentionChecks,
  ...callChecks,
  ...leaseChecks,
];
