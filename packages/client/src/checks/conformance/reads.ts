/** The results of reads: of one item, of the items under a key, and of the whole table. */
import assert from "node:assert/strict";
import { itemKeyOf, sortKeyOf } from "../../base/item-values.ts";
import type { ItemKey } from "../../base/schema.ts";
import { type Item, pagesOf, type QueryRequest, type ScanPage } from "../../base/store.ts";
import { type CheckTable, type ConformanceCheck, defineCheck } from "./check.ts";

/** Sort keys in the order of their bytes in UTF-8. JavaScript compares 🔒 as less than the private letter before it. */
const inOrder = ["n#", "n#1", "n#10", "n#2", "n#A", "n#a", "n#~", "n#é", "n#漢", "n#\uf8ff", "n#🔒"];
/** Written in another order. */
const shuffled = [
  ...inOrder.filter((_, index) => index % 2 === 0).reverse(),
  ...inOrder.filter((_, index) => index % 2 === 1),
];
/** The most pages of a walk over a table. */
const mostWalkedPages = 50;
/** Four items with a text of this length exceed DynamoDB's page of a megabyte. */
const largeText = "x".repeat(300_000);

export const readChecks: readonly ConformanceCheck[] = [
  defineCheck("reads", "an item that is not there is read as missing", async (table) => {
    assert.equal(await table.item("none"), undefined);
    await table.put("other", { n: 1 });
    assert.equal(await table.item("none"), undefined);
  }),

  defineCheck("reads", "a consistent read shows every earlier write", async (table) => {
    for (let n = 0; n < 20; n += 1) {
      await table.put("item", { n });
      assert.deepEqual(await table.contents("item"), { n });
    }
  }),

  defineCheck(
    "reads",
    "a query gives the items of its key alone, in the order of the bytes of their sort keys",
    async (table) => {
      await fill(table);
      await table.store.update(
        {
          key: { pk: `${table.pk}/2`, sk: "n#1" },
          update: "SET #n = :n",
          condition: "attribute_not_exists(#n)",
          names: { "#n": "n" },
          values: { ":n": 1 },
          returnsItem: false,
        },
        table.call,
      );
      const { items } = await table.store.query(queryOf(table), table.call);
      assert.deepEqual(
        items.map(itemKeyOf),
        inOrder.map((sk) => table.key(sk)),
      );
    },
  ),

  defineCheck("reads", "a query gives them backwards", async (table) => {
    await fill(table);
    const { items } = await table.store.query({ ...queryOf(table), descending: true }, table.call);
    assert.deepEqual(items.map(sortKeyOf), inOrder.toReversed());
  }),

  defineCheck("reads", "the pages of a query join, forwards and backwards", async (table) => {
    await fill(table);
    for (const descending of [false, true]) {
      const pages = await readAll((from) =>
        table.store.query({ ...queryOf(table), limit: 3, descending, ...from }, table.call),
      );
      assert.ok(
        pages.every(({ items }) => items.length <= 3),
        "a page keeps to its limit",
      );
      const found = pages.flatMap(({ items }) => items.map(sortKeyOf));
      assert.deepEqual(found, descending ? inOrder.toReversed() : inOrder);
    }
  }),

  defineCheck("reads", "a query goes on behind an item that has been deleted since", async (table) => {
    await fill(table);
    const holds = { condition: "attribute_exists(#n)", names: { "#n": "n" }, values: {} };
    await table.store.transact([{ key: table.key("n#2"), ...holds, action: "delete" }], table.call);
    const { items } = await table.store.query({ ...queryOf(table), after: table.key("n#2") }, table.call);
    assert.deepEqual(items.map(sortKeyOf), inOrder.slice(inOrder.indexOf("n#2") + 1));
  }),

  defineCheck("reads", "a query knows <, > and BETWEEN of sort keys", async (table) => {
    await fill(table);
    const found = async (bound: string, values: Item): Promise<readonly string[]> => {
      const request = {
        ...queryOf(table),
        keyCondition: `#pk = :pk AND #sk ${bound}`,
        values: { ":pk": table.pk, ...values },
      };
      return (await table.store.query(request, table.call)).items.map(sortKeyOf);
    };
    const [first, last] = ["n#10", "n#a"];
    const [from, to] = [inOrder.indexOf(first), inOrder.indexOf(last)];
    assert.deepEqual(
      await found("BETWEEN :a AND :b", { ":a": first, ":b": last }),
      inOrder.slice(from, to + 1),
    );
    assert.deepEqual(await found("< :a", { ":a": first }), inOrder.slice(0, from));
    assert.deepEqual(await found("> :b", { ":b": last }), [...inOrder.slice(to + 1), "other"]);
  }),

  defineCheck("reads", "a query of a key without items gives none", async (table) => {
    const { items, next } = await table.store.query(queryOf(table), table.call);
    assert.deepEqual([items.length, next], [0, undefined]);
  }),

  defineCheck(
    "reads",
    "pages that are full by their size join too, and a scan finds what passes its filter",
    async (table) => {
      const large = ["n#1", "n#2", "n#3", "n#4"];
      for (const sk of large) await table.put(sk, { large: largeText });
      await table.put("n#0", { small: 1 });
      const queried = await readAll((from) => table.store.query({ ...queryOf(table), ...from }, table.call));
      assert.deepEqual(
        queried.flatMap(({ items }) => items.map(sortKeyOf)),
        ["n#0", ...large],
      );
      const scan = {
        filter: "begins_with(#pk, :pk) AND attribute_exists(#large)",
        names: { "#pk": "pk", "#large": "large" },
        values: { ":pk": table.pk },
      };
      const scanned = await readAll(
        (from) => table.store.scan({ ...scan, ...from }, table.call),
        mostWalkedPages,
      );
      if (scanned.at(-1)?.next !== undefined)
        return `the table is larger than ${mostWalkedPages} pages: no scan`;
      assert.deepEqual(scanned.flatMap(({ items }) => items.map(sortKeyOf)).sort(), large);
      return undefined;
    },
  ),
];

async function fill(table: CheckTable): Promise<void> {
  for (const sk of shuffled) await table.put(sk, { n: 1 });
  await table.put("other", { n: 1 });
}

function queryOf({ pk }: CheckTable): QueryRequest {
  return {
    keyCondition: "#pk = :pk AND begins_with(#sk, :prefix)",
    names: { "#pk": "pk", "#sk": "sk" },
    values: { ":pk": pk, ":prefix": "n#" },
    consistent: true,
  };
}

/** Reads page after page; throws if a page leads to itself. */
async function readAll(
  read: (from: { readonly after?: ItemKey }) => Promise<ScanPage>,
  most = Number.POSITIVE_INFINITY,
): Promise<readonly ScanPage[]> {
  const pages: ScanPage[] = [];
  const ends = new Set<string>();
  for await (const page of pagesOf(read)) {
    pages.push(page);
    const end = JSON.stringify(page.next ?? null);
    assert.ok(!ends.has(end), "a page does not lead back to an earlier one");
    ends.add(end);
    if (pages.length >= most) break;
  }
  return pages;
}
