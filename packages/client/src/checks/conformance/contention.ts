/** What must hold when many write the same items at the same time. */
import assert from "node:assert/strict";
import { LeaseError, LeaseServiceError } from "../../base/errors.ts";
import type { TransactionResult } from "../../base/store.ts";
import { type CheckTable, type ConformanceCheck, defineCheck } from "./check.ts";

const contendingWriters = 24;
const rounds = 3;

export const contentionChecks: readonly ConformanceCheck[] = [
  defineCheck(
    "contention",
    "of many that write on the same condition at the same time, one succeeds",
    async (table) => {
      await table.put("item", { version: 0 });
      for (let round = 0; round < rounds; round += 1) {
        const attempts = Array.from({ length: contendingWriters }, (_, index) =>
          table.write("item", {
            set: `#version = ${round + 1}, #writer = ${index}`,
            when: `#version = ${round}`,
          }),
        );
        const results = await Promise.all(attempts);
        const winners = results.flatMap(({ applied }, index) => (applied ? [index] : []));
        assert.equal(
          winners.length,
          1,
          `one of ${contendingWriters} writes on the version ${round} is applied`,
        );
        assert.deepEqual(await table.contents("item"), { version: round + 1, writer: winners[0] });
      }
    },
  ),

  defineCheck(
    "contention",
    "many counts at the same time count each one, and each sees a number of its own",
    async (table) => {
      const seen = await Promise.all(
        Array.from({ length: contendingWriters }, () =>
          table.writeAndSee("item", { set: "#n = if_not_exists(#n, 0) + 1" }),
        ),
      );
      assert.ok(seen.every(({ applied }) => applied));
      const numbers = seen.map(({ item }) => Number(item?.n)).sort((one, other) => one - other);
      assert.deepEqual(
        numbers,
        Array.from({ length: contendingWriters }, (_, index) => index + 1),
      );
      assert.deepEqual(await table.contents("item"), { n: contendingWriters });
    },
  ),

  defineCheck(
    "contention",
    "of many transactions on the same items one succeeds, and no other leaves a trace",
    async (table) => {
      await table.put("a", { version: 0 });
      await table.put("b", { version: 0 });
      const attempts = Array.from({ length: contendingWriters }, (_, writer) => writeBoth(table, writer));
      const results = await Promise.all(attempts);
      const winners = results.flatMap((result, index) => (result?.applied ? [index] : []));
      const [a, b] = [await table.contents("a"), await table.contents("b")];
      assert.deepEqual(a, b, "both items are of one transaction, or of none");
      assert.ok(winners.length <= 1, `at most one of ${contendingWriters} transactions is applied`);
      assert.equal(a?.version, winners.length, "the items show what the results say");
      assert.equal(a?.writer, winners[0]);
    },
  ),

  defineCheck(
    "contention",
    "a read at the same time as a transaction's end shows all of its writes afterwards",
    async (table) => {
      for (let n = 1; n <= rounds; n += 1) {
        const entries = ["a", "b"].map((sk) => table.writeOf(sk, { set: `#n = ${n}` }).entry());
        assert.equal((await table.store.transact(entries, table.call)).applied, true);
        assert.deepEqual([await table.contents("a"), await table.contents("b")], [{ n }, { n }]);
      }
    },
  ),
];

/** One of the transactions; undefined if it met another one and gave up. */
async function writeBoth(table: CheckTable, writer: number): Promise<TransactionResult | undefined> {
  const write = { set: `#version = 1, #writer = ${writer}`, when: "#version = 0" };
  const entries = ["a", "b"].map((sk) => table.writeOf(sk, write).entry());
  try {
    return await table.store.transact(entries, table.call);
  } catch (error) {
    assert.ok(error instanceof LeaseError, "what a store rejects with is a LeaseError");
    if (error instanceof LeaseServiceError && error.retryable) return undefined;
    throw error;
  }
}
