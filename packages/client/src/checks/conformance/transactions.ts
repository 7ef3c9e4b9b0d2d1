/** Several writes in one transaction: all of them, or nothing. */
import assert from "node:assert/strict";
import { LeaseError } from "../../base/errors.ts";
import type { TransactionResult } from "../../base/store.ts";
import type { Write } from "../../statements/statement.ts";
import { type CheckTable, type ConformanceCheck, contentsOf, defineCheck } from "./check.ts";

/** DynamoDB's limit. */
const mostEntries = 100;

export const transactionChecks: readonly ConformanceCheck[] = [
  defineCheck("transactions", "a transaction writes, deletes and checks all of its items", async (table) => {
    await table.put("old", { value: "1" });
    await table.put("witness", { value: "1" });
    const holds = { when: '#value = "1"' };
    const result = await transactWrites(table, [
      fresh(table, "new", "2"),
      table.writeOf("old", holds).deleting(),
      table.writeOf("witness", holds),
    ]);
    assert.equal(result.applied, true);
    const values = await Promise.all(["new", "old", "witness"].map((sk) => table.contents(sk)));
    assert.deepEqual(values, [{ value: "2" }, undefined, { value: "1" }]);
  }),

  defineCheck(
    "transactions",
    "a transaction that is refused writes nothing and deletes nothing",
    async (table) => {
      await table.put("taken", { value: "t" });
      await table.put("kept", { value: "k" });
      const result = await transactWrites(table, [
        fresh(table, "a", "1"),
        table.writeOf("kept", {}).deleting(),
        fresh(table, "taken", "2"),
        fresh(table, "c", "3"),
      ]);
      assert.equal(result.applied, false);
      const values = await Promise.all(["a", "kept", "taken", "c"].map((sk) => table.contents(sk)));
      assert.deepEqual(values, [undefined, { value: "k" }, { value: "t" }, undefined]);
    },
  ),

  defineCheck(
    "transactions",
    "it shows each item that has refused, in the order of its entries",
    async (table) => {
      await table.put("first", { value: "1" });
      await table.put("last", { value: "2" });
      const refusals = await expectedRefusals(table, [
        fresh(table, "first", "x"),
        fresh(table, "free", "x"),
        table.writeOf("missing", { when: "attribute_exists(#value)" }),
        table.writeOf("last", { when: '#value = "1"' }).deleting(),
      ]);
      assert.deepEqual(refusals, [
        { item: { value: "1" } },
        undefined,
        { item: undefined },
        { item: { value: "2" } },
      ]);
    },
  ),

  defineCheck(
    "transactions",
    "a check alone that does not hold refuses the whole transaction",
    async (table) => {
      await table.put("witness", { value: "1" });
      const refusals = await expectedRefusals(table, [
        fresh(table, "new", "1"),
        table.writeOf("witness", { when: '#value = "2"' }),
      ]);
      assert.deepEqual(refusals, [undefined, { item: { value: "1" } }]);
      assert.equal(await table.item("new"), undefined);
    },
  ),

  defineCheck("transactions", "a count in a transaction sees the item as it was", async (table) => {
    await table.put("n", { n: 41 });
    const countUp = table.writeOf("n", { set: "#n = if_not_exists(#n, 0) + 1", when: "#n <= 41" });
    assert.equal((await transactWrites(table, [countUp])).applied, true);
    assert.equal((await transactWrites(table, [countUp])).applied, false);
    assert.deepEqual(await table.contents("n"), { n: 42 });
  }),

  defineCheck("limits", `a transaction takes ${mostEntries} entries`, async (table) => {
    const names = Array.from({ length: mostEntries }, (_, index) => `n${String(index).padStart(3, "0")}`);
    const writes = names.map((sk) => fresh(table, sk, sk));
    assert.equal((await transactWrites(table, writes)).applied, true);
    assert.deepEqual(await table.contents("n000"), { value: "n000" });
    assert.deepEqual(await table.contents("n099"), { value: "n099" });
  }),

  defineCheck(
    "limits",
    "a transaction that names an item twice is refused, and writes nothing",
    async (table) => {
      const writes = ["once", "twice", "twice"].map((sk, index) => fresh(table, sk, `${index}`));
      const result = await transactWrites(table, writes).catch((error: unknown) => {
        assert.ok(error instanceof LeaseError, "what a store rejects with is a LeaseError");
      });
      assert.notEqual(result?.applied, true, "it is refused, as a transaction or as an error");
      assert.deepEqual(await Promise.all([table.item("once"), table.item("twice")]), [undefined, undefined]);
    },
  ),
];

function transactWrites(table: CheckTable, writes: readonly Write[]): Promise<TransactionResult> {
  return table.store.transact(
    writes.map((write) => write.entry()),
    table.call,
  );
}

/** The refusals, without the keys. */
async function expectedRefusals(
  table: CheckTable,
  writes: readonly Write[],
): Promise<TransactionResult["refusals"]> {
  const { applied, refusals } = await transactWrites(table, writes);
  assert.equal(applied, false, "a condition does not hold");
  return refusals.map((refusal) => refusal && { item: refusal.item && contentsOf(refusal.item) });
}

/** A write of a new item. */
function fresh(table: CheckTable, sk: string, value: string): Write {
  return table.writeOf(sk, {
    set: "#value = :value",
    when: "attribute_not_exists(#value)",
    values: { ":value": value },
  });
}
