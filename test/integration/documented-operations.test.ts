import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { documentedOperations } from "../../tools/bench/operations/index.ts";
import { type Consumption, listedRequests, Meter } from "../../tools/bench/operations/metered.ts";
import type { OperationSite } from "../../tools/bench/operations/promised.ts";
import { StoppedProcess } from "../../tools/bench/operations/stopped-process.ts";
import { makeTable, type TestTable } from "../support/table.ts";

let table: TestTable;
let meter: Meter;
beforeAll(async () => {
  table = await makeTable(inject("engine"));
  meter = new Meter(table.dynamodb);
  await (await table.client().acquire(table.newKey())).release();
});
afterAll(() => table.close());

test.each(documentedOperations)("$of: $name takes $requests", async (operation) => {
  let seen: Consumption | undefined;
  const site: OperationSite = {
    client: (options) => table.client(options),
    newKey: () => table.newKey(),
    counted: async (perform) => {
      meter.take();
      const result = await perform();
      seen = meter.take();
      return result;
    },
    stopped: (agoMs = 0) => new StoppedProcess(table.tableName, table.dynamodb, agoMs),
  };
  await operation.perform(site);
  const { requests, writeUnits = seen?.writeUnits, readUnits = seen?.readUnits } = operation;
  expect({ ...seen, sent: listedRequests(seen?.sent ?? []), tookMs: [] }).toEqual({
    sent: requests,
    writeUnits,
    readUnits,
    tookMs: [],
  });
});
