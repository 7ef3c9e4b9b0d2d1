import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { documentedOperations } from "../../tools/bench/operations/index.ts";
import { listedRequests } from "../../tools/bench/operations/metered.ts";
import { OperationSite } from "../../tools/bench/operations/promised.ts";
import { makeTable, type TestTable } from "../support/table.ts";

let table: TestTable;
let site: OperationSite;
beforeAll(async () => {
  table = await makeTable(inject("engine"));
  site = new OperationSite(table);
  await (await table.client().acquire(table.newKey())).release();
});
afterAll(() => table.close());

test.each(documentedOperations)("$of: $name takes $requests", async (operation) => {
  const seen = await site.measure(operation);
  const { requests, writeUnits = seen.writeUnits, readUnits = seen.readUnits } = operation;
  expect({ ...seen, sent: listedRequests(seen.sent), tookMs: [] }).toEqual({
    sent: requests,
    writeUnits,
    readUnits,
    tookMs: [],
  });
});
