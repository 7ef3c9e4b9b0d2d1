import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { documentedOperations, type OperationSite } from "../../bench/documented-operations.ts";
import { type Consumption, listedRequests, Meter } from "../../bench/metered.ts";
import { makeTable, type TestTable } from "../support/table.ts";

let table: TestTable;
let meter: Meter;
beforeAll(async () => {
  table = await makeTable(inject("engine"));
  meter = new Meter(table.dynamodb);
  await (await table.client().acquire(table.newKey())).release();
});
afterAll(() => table.close());

test.each(documentedOperations)(
  "$name takes $requests, $writeUnits write and $readUnits read units",
  async (operation) => {
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
      pause: (ms) => delay(ms),
    };
    await operation.perform(site);
    const { requests, writeUnits, readUnits } = operation;
    expect({ ...seen, sent: listedRequests(seen?.sent ?? []), tookMs: [] }).toEqual({
      sent: requests,
      writeUnits,
      readUnits,
      tookMs: [],
    });
  },
);
