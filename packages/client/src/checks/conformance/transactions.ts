/** Several writes in one transaction: all of them, or nothing. */
import assert from "node:assert/strict";
import { LeaseError } from "../../base/errors.ts";
import type { TransactionResult } from "../../base/store.ts";
import { always, type CheckTable, type ConformanceCheck, contentsOf, defineCheck } from "./check.ts";
import { type ItemWrite, renderEntry } from "./write.ts";

/** DynamoDB's limit. */
const mostEntries = 100;

export const transactionChecks: readonly ConformanceCheck[] = [
  defineCheck("transactions", "a transaction writes, deletes and checks all of its items", async (table) => {
    await table.put("old", { value: "1" });
    await table.put("witness", { value: "1" });
    const holds = { set: {}, insist: [["value", "=", "1"]] } as const;
    const result = await transactWrites(table, [
      ["new", fresh("2")],
      ["old", { ...holds, deletes: true }],
      ["witness", holds],
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
        ["a", fresh("1")],
        ["kept", { set: {}, insist: always, deletes: true }],
        ["taken", fresh("2")],
        ["c", fresh("3")],
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
        ["first", fresh("x")],
        ["free", fresh("x")],
        ["missing", { set: {}, insist: [["value", "exists"]] }],
        ["last", { set: {}, insist: [["value", "=", "1"]], deletes: true }],
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
        ["new", fresh("1")],
        ["witness", { set: {}, insist: [["value", "=", "2"]] }],
      ]);
      assert.deepEqual(refusals, [undefined, { item: { value: "1" } }]);
      assert.equal(await table.item("new"), undefined);
    },
  ),

  defineCheck("transactions", "a count in a transaction sees the item as it was", async (table) => {
    await table.put("n", { n: 41 });
    const countUp: Omit<ItemWrite, "key"> = {
      set: { n: { of: "n", from: 0, by: 1 } },
      insist: [["n", "<=", 41]],
    };
    assert.equal((await transactWrites(table, [["n", countUp]])).applied, true);
    assert.equal((await transactWrites(table, [["n", countUp]])).applied, false);
    assert.deepEqual(await table.contents("n"), { n: 42 });
  }),

  defineCheck("limits", `a transaction takes ${mostEntries} entries`, async (table) => {
    const names = Array.from({ length: mostEntries }, (_, index) => `n${String(index).padStart(3, "0")}`);
    assert.equal(
      (
        await transactWrites(
          table,
          names.map((sk) => [sk, fresh(sk)]),
        )
      ).applied,
      true,
    );
    assert.deepEqual(await table.contents("n000"), { value: "n000" });
    assert.deepEqual(await table.contents("n099"), { value: "n099" });
  }),

  defineCheck(
    "limits",
    "a transaction that names an item twice is refused, and writes nothing",
    async (table) => {
      const entries = [
        ["once", fresh("1")],
        ["twice", fresh("2")],
        ["twice", fresh("3")],
      ] as const;
      const result = await transactWrites(table, entries).catch((error: unknown) => {
        assert.ok(error instanceof LeaseError, "what a store rejects with is a LeaseError");
      });
      assert.notEqual(result?.applied, true, "it is refused, as a transaction or as an error");
      assert.deepEqual(await Promise.all([table.item("once"), table.item("twice")]), [undefined, undefined]);
    },
  ),
];

type Entries = readonly (readonly [sk: string, write: Omit<ItemWrite, "key">])[];

function transactWrites(table: CheckTable, entries: Entries): Promise<TransactionResult> {
  return table.store.transact(
    entries.map(([sk, write]) => renderEntry({ key: table.key(sk), ...write })),
    table.call,
  );
}

/** The refusals, without the keys. */
async function expectedRefusals(table: CheckTable, entries: Entries): Promise<TransactionResult["refusals"]> {
  const { applied, refusals } = await transactWrites(table, entries);
  assert.equal(applied, false, "a condition does not hold");
  return refusals.map((refusal) => refusal && { item: refusal.item && contentsOf(refusal.item) });
}

/** A write of a new item. */
function fresh(value: string): Omit<ItemWrite, "key"> {
  return { set: { value }, insist: [["value", "missing"]] };
}
