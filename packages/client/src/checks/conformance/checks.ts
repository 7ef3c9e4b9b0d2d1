import assert from "node:assert/strict";
import { LeaseError } from "../../base/errors.ts";
import { limits } from "../../base/schema.ts";
import { callChecks } from "./calls.ts";
import { type CheckTable, type ConformanceCheck, defineCheck } from "./check.ts";
import { conditionChecks } from "./conditions.ts";
import { contentionChecks } from "./contention.ts";
import { leaseChecks } from "./leases.ts";
import { readChecks } from "./reads.ts";
import { transactionChecks } from "./transactions.ts";
import { writeOf } from "./write.ts";
import { writeChecks } from "./writes.ts";

/** Larger than an item in DynamoDB may be, with its names. */
const tooLarge = "x".repeat(400 * 1024);

/** The least sizes of keys and items that must be possible, and the refusal of larger ones. */
const limitChecks: readonly ConformanceCheck[] = [
  defineCheck("limits", `an item holds a payload of ${limits.dataBytes} bytes`, async (table) => {
    const data = "ü".repeat(limits.dataBytes / 2);
    await table.put("large", { data });
    assert.equal((await table.contents("large"))?.data === data, true, "the payload is kept exactly");
  }),

  defineCheck(
    "limits",
    "an item that is too large is refused as an error and changes nothing, or it is kept",
    async (table) => {
      await table.put("item", { data: "small" });
      const kept = await writes(table, "item", tooLarge);
      const data = (await table.contents("item"))?.data;
      assert.equal(data === (kept ? tooLarge : "small"), true, `the item is ${kept ? "kept" : "as it was"}`);
    },
  ),

  defineCheck("limits", "keys may be as long as DynamoDB's", async (table) => {
    const pk = table.pk + "k".repeat(limits.keyBytes - Buffer.byteLength(table.pk));
    const key = { pk, sk: "ü".repeat(limits.sortKeyBytes / 2) };
    const write = writeOf(key, { set: "#n = 1", when: "attribute_not_exists(#n)" });
    assert.equal((await table.store.update(write.request(), table.call)).applied, true);
    assert.deepEqual({ ...(await table.store.get({ key, consistent: true }, table.call)) }, { ...key, n: 1 });
  }),
];

/** Whether a write is applied; false if it is refused with an error of this package. */
async function writes(table: CheckTable, sk: string, data: string): Promise<boolean> {
  try {
    const write = { set: "#data = :data", when: "attribute_exists(#data)", values: { ":data": data } };
    return (await table.write(sk, write)).applied;
  } catch (error) {
    assert.ok(error instanceof LeaseError, "what a store rejects with is a LeaseError");
    return false;
  }
}

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
