/** A single conditional write, and several that are sent together. */
import assert from "node:assert/strict";
import { LeaseError } from "../../base/errors.ts";
import type { UpdateResult } from "../../base/store.ts";
import { type CheckTable, type ConformanceCheck, contentsOf, defineCheck } from "./check.ts";
import type { ItemWrite } from "./write.ts";

/** Two batches and a part of one. */
const manyWrites = 60;

export const writeChecks: readonly ConformanceCheck[] = [
  defineCheck("writes", "a write makes an item where there is none, with its key", async (table) => {
    const write = { set: '#text = "a", #count = 1', when: "attribute_not_exists(#text)" };
    const result = await table.write("new", write);
    assert.equal(result.applied, true);
    assert.deepEqual({ ...(await table.item("new")) }, { ...table.key("new"), text: "a", count: 1 });
  }),

  defineCheck(
    "writes",
    "a write that was asked for the item shows it as it stands afterwards",
    async (table) => {
      await table.put("item", { kept: "k", changed: 1 });
      const write = { set: "#changed = 2", when: '#kept = "k"' };
      const { item = {} } = await table.writeAndSee("item", write);
      assert.deepEqual(contentsOf(item), { kept: "k", changed: 2 });
    },
  ),

  defineCheck("writes", "a write that is refused changes nothing", async (table) => {
    await table.put("item", { value: "old" });
    const write = { set: '#value = "new", #more = 1', when: '#value = "other"' };
    assert.equal((await table.write("item", write)).applied, false, "its condition does not hold");
    assert.deepEqual(await table.contents("item"), { value: "old" });
  }),

  defineCheck("writes", "a write that is refused shows the item that has refused it", async (table) => {
    await table.put("item", { owner: "a", until: 12 });
    const refused = await table.write("item", { set: '#owner = "b"', when: "attribute_not_exists(#owner)" });
    assert.equal(refused.applied, false, "its condition does not hold");
    assert.deepEqual(refused.item && contentsOf(refused.item), { owner: "a", until: 12 });
  }),

  defineCheck(
    "writes",
    "a write that is refused for want of an item shows none, and makes none",
    async (table) => {
      const refused = await table.write("none", { set: '#owner = "b"', when: "attribute_exists(#owner)" });
      assert.deepEqual([refused.applied, refused.item], [false, undefined]);
      assert.equal(await table.item("none"), undefined);
    },
  ),

  defineCheck("writes", "every right side sees the item as it was before the write", async (table) => {
    await table.put("item", { a: 1, b: 2, gone: 3 });
    await table.write("item", { set: "#a = #b, #b = #a, #copy = #gone", remove: "#gone" });
    assert.deepEqual(await table.contents("item"), { a: 2, b: 1, copy: 3 });
  }),

  defineCheck(
    "writes",
    "a count goes on from what the item holds, and begins where it holds nothing",
    async (table) => {
      const countUp = { set: "#n = if_not_exists(#n, 1767225600000) + 1" };
      await table.write("item", countUp);
      assert.deepEqual(await table.contents("item"), { n: 1_767_225_600_001 });
      await table.write("item", countUp);
      assert.deepEqual(await table.contents("item"), { n: 1_767_225_600_002 });
      await table.write("item", { set: '#other = if_not_exists(#missing, "a")' });
      assert.deepEqual(await table.contents("item"), { n: 1_767_225_600_002, other: "a" });
    },
  ),

  defineCheck("writes", "numbers are kept exactly", async (table) => {
    const most = Number.MAX_SAFE_INTEGER;
    const numbers = { zero: 0, most, least: -most, time: 1_767_225_600_123, part: 0.1, large: 1e100 };
    await table.put("item", numbers);
    assert.deepEqual(await table.contents("item"), numbers);
    const write = { set: "#most = if_not_exists(#most, 0) + -1", when: `#most = ${most}` };
    const last = await table.writeAndSee("item", write);
    assert.equal(last.item?.most, most - 1, "a number is counted exactly");
  }),

  defineCheck("writes", "texts are kept exactly, in values and in keys", async (table) => {
    const texts = { empty: "", control: "a\u0000b\n\t", letters: "äß漢字", emoji: "🔒", json: '{"a":[1]}' };
    await table.put("item", texts);
    assert.deepEqual(await table.contents("item"), texts);
    const odd = ["with space", "ü/🔒", `"';--`, "\u0000\n", "#a:b"];
    for (const sk of odd) await table.put(sk, { sk2: sk });
    assert.deepEqual(await Promise.all(odd.map(async (sk) => (await table.contents(sk))?.sk2)), odd);
  }),

  defineCheck("writes", "an attribute may have any name", async (table) => {
    const names = { "with space": 1, "a.b": 2, size: 3, ünï: 4, "#x": 5 };
    await table.put("item", names);
    assert.deepEqual(await table.contents("item"), names);
  }),

  defineCheck(
    "writes",
    "of writes that are sent together each has its own result, in their order",
    async (table) => {
      const indexes = Array.from({ length: manyWrites }, (_, index) => index);
      const isDue = (index: number): boolean => index % 3 !== 0;
      await Promise.all(indexes.filter(isDue).map((index) => table.put(`n${index}`, { n: index })));
      const requests = indexes.map((index) =>
        table.writeOf(`n${index}`, oneOfMany(index)).returning().request(),
      );
      const results = await table.store.updateMany(requests, table.call);
      assert.equal(results.length, manyWrites, "each write has a result");
      for (const [index, result] of results.entries()) {
        // An error does not show the outcome of the write.
        if (result instanceof LeaseError) continue;
        await checkTogether(table, index, isDue(index), result);
      }
    },
  ),
];

function oneOfMany(index: number): ItemWrite {
  return { set: `#n = ${index + 1_000}`, when: `#n = ${index}` };
}

/** Makes the write by `update` if only that can settle it. */
async function checkTogether(
  table: CheckTable,
  index: number,
  isDue: boolean,
  together: UpdateResult | undefined,
): Promise<void> {
  const sk = `n${index}`;
  const result = together ?? (await table.writeAndSee(sk, oneOfMany(index)));
  const place = `the write ${index} of ${manyWrites}`;
  assert.equal(result.applied, isDue, `${place} is ${isDue ? "applied" : "refused"}`);
  const expected = isDue ? { n: index + 1_000 } : undefined;
  assert.deepEqual(result.item && contentsOf(result.item), expected, `${place} shows its own item`);
  assert.deepEqual(await table.contents(sk), expected, `${place} does what its result says`);
}
