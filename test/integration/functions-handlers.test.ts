// What the handlers of the systems read from their environment and their events. The app in test/e2e runs their bundles.
import { environmentNames } from "@leasehold/client/environment";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { handler as admitTickets } from "../../functions/admit-tickets/handler.ts";
import { handler as claimTasks } from "../../functions/claim-tasks/handler.ts";
import { handler as closeUnpaidOrders } from "../../functions/close-unpaid-orders/handler.ts";
import { handler as report } from "../../functions/close-unpaid-orders/report.ts";
import { handler as importOrders } from "../../functions/import-orders/handler.ts";
import { handler as resourceCache } from "../../functions/resource-cache/handler.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

const handlers = { admitTickets, claimTasks, closeUnpaidOrders, report, importOrders, resourceCache };
const minute = 60_000;
let system: SystemTables;

async function invoke(name: keyof typeof handlers, event: unknown): Promise<unknown> {
  const context = { functionName: name, awsRequestId: crypto.randomUUID() };
  const handler = handlers[name] as (event: unknown, context: object) => Promise<unknown>;
  return await handler(event, { ...context, getRemainingTimeInMillis: () => 30_000 });
}

beforeAll(async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  system = await makeSystemTables();
  const { clientConfig } = inject("engine");
  const { accessKeyId, secretAccessKey } = clientConfig.credentials as Record<string, string>;
  const environment = {
    AWS_REGION: String(clientConfig.region),
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: String(clientConfig.endpoint),
    [environmentNames.tableName]: system.leases.tableName,
    IMPORT_ORDERS_TABLE_NAME: system.tableName,
    RESOURCE_CACHE_TABLE_NAME: system.tableName,
    CLAIM_TASKS_TABLE_NAME: system.tableName,
    CLOSE_UNPAID_ORDERS_TABLE_NAME: system.tableName,
    CLOSE_UNPAID_ORDERS_SCHEDULE: "cron(0/1 * * * ? *)",
    CLOSE_UNPAID_ORDERS_AFTER_HOURS: "1",
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
});

afterAll(() => {
  vi.unstubAllEnvs();
  system?.close();
});

describe("the handlers", () => {
  test("leave an order open for the hours that are set, and keep the run for the report", async () => {
    const slot = Math.floor(Date.now() / minute - 3) * minute;
    for (const [orderId, age] of Object.entries({ young: 30, old: 90 })) {
      const dueAt = slot - age * minute;
      const sk = `${new Date(dueAt).toISOString()}#${orderId}`;
      await system.put({ pk: "orders#open", sk, orderId, lines: [{ product: "hat", quantity: 1 }], dueAt });
    }
    await system.put({ pk: "stock", sk: "hat", available: 0 });
    const scheduledTime = new Date(slot).toISOString();
    const trigger = { scheduledTime };
    expect(await invoke("closeUnpaidOrders", trigger)).toMatchObject({ result: "ran", closed: 1 });
    expect(await invoke("closeUnpaidOrders", trigger)).toMatchObject({ result: "doneBefore" });
    const closed = Object.keys(await system.items()).filter((key) => key.startsWith("orders#closed/"));
    expect(closed).toEqual(["orders#closed/old"]);
    const asked = { action: "runs", since: scheduledTime, state: "succeeded" };
    expect(await invoke("report", asked)).toMatchObject({
      counts: { succeeded: 1, failed: 0 },
      runs: [{ slot: scheduledTime, attempt: 1, progress: { closed: 1, parked: 0 } }],
    });
  });

  test("compute a resource again where a refresh is asked for, and wait as the event says", async () => {
    const south = (event: object): Promise<unknown> =>
      invoke("resourceCache", { warehouse: "south", ...event });
    const [few, many] = [{ value: { cup: 1 } }, { value: { cup: 4 }, source: "computed" }];
    await system.put({ pk: "movements#south", sk: "1", product: "cup", quantity: 1 });
    const retry = { strategy: "random", minDelayMs: 1, maxDelayMs: 2, maxRetries: 3 };
    expect(await south({ retry })).toMatchObject(few);
    await system.put({ pk: "movements#south", sk: "2", product: "cup", quantity: 3 });
    expect(await south({ retry: "random" })).toMatchObject(few);
    expect(await south({ refresh: true })).toMatchObject(many);
    await expect(south({ refresh: true, retry: { ...retry, maxDelayMs: 0 } })).rejects.toMatchObject({
      name: "InvalidOptionsError",
      message: expect.stringContaining("maxDelayMs"),
    });
  });

  test.each([
    ["importOrders", { kind: "everything" }],
    ["resourceCache", { warehouse: 7 }],
    ["resourceCache", { warehouse: "north", retry: "hope" }],
    ["closeUnpaidOrders", {}],
    ["report", { action: "missed", since: "yesterday" }],
    ["claimTasks", { set: "" }],
    ["claimTasks", { set: "s", add: 7 }],
    ["claimTasks", { set: "s", add: [null] }],
    ["claimTasks", { set: "s", add: [{ id: "a", payload: 1, due: 1 }] }],
    ["admitTickets", { action: "jump" }],
  ] as const)("%s refuses %j by name", async (name, event) => {
    await expect(invoke(name, event)).rejects.toMatchObject({ name: "InvalidOptionsError" });
  });
});
