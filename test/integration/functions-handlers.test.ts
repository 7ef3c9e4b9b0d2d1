import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import type { LeaseHandle } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { park } from "@leasehold/client/internal";
import { leaseItemKey, waiterSortKeyPrefix } from "@leasehold/client/schema";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import type { MissedAnswer } from "../../functions/close-unpaid-orders/report.ts";
import { wakeHandlerBundle } from "../../packages/cdk/src/workflow/wake-handler-bundle.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

type Handler = (event: unknown, context: object) => Promise<unknown>;

const names = [
  "leases/acquire",
  "leases/renew",
  "leases/release",
  "leases/expired",
  "import-orders/handler",
  "resource-cache/handler",
  "close-unpaid-orders/handler",
  "close-unpaid-orders/report",
  "claim-tasks/handler",
  "claim-tasks/restart",
  "admit-tickets/handler",
] as const;

let system: SystemTables;
let bundles: string;
let services: Server;
/** What the stand-ins for Step Functions and EventBridge were asked. */
const asked: { readonly target: string; readonly body: Record<string, unknown> }[] = [];
const handlers = new Map<string, Handler>();

/** Calls a handler out of its bundle, as Lambda would: JSON in, JSON out. */
async function invoke(name: (typeof names)[number] | "leases/wake", event: unknown): Promise<unknown> {
  const context = {
    functionName: name,
    awsRequestId: crypto.randomUUID(),
    getRemainingTimeInMillis: () => 30_000,
  };
  const answer = await handlers.get(name)?.(event, context);
  return answer === undefined ? undefined : JSON.parse(JSON.stringify(answer));
}

/** The handler of a CommonJS bundle, which finds the SDK as it would find that of Lambda's runtime. */
function shipped(bundle: string): Handler {
  const module = { exports: {} as { handler?: Handler } };
  new Function("require", "module", "exports", bundle)(
    createRequire(import.meta.url),
    module,
    module.exports,
  );
  if (module.exports.handler === undefined) throw new Error("the bundle exports no handler");
  return module.exports.handler;
}

beforeAll(async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  system = await makeSystemTables();
  services = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    request.on("end", () => {
      const target = String(request.headers["x-amz-target"]);
      const body = JSON.parse(text);
      asked.push({ target, body });
      const isGone = body.taskToken === "timed out";
      response.writeHead(isGone ? 400 : 200, { "content-type": "application/x-amz-json-1.0" });
      const entries = { FailedEntryCount: 0, Entries: [{ EventId: "1" }] };
      response.end(JSON.stringify(isGone ? { __type: "TaskTimedOut", message: "gone" } : entries));
    });
  });
  await new Promise<void>((resolve) => services.listen(0, "127.0.0.1", resolve));
  const elsewhere = `http://127.0.0.1:${(services.address() as AddressInfo).port}`;

  const { clientConfig } = inject("engine");
  const { accessKeyId, secretAccessKey } = clientConfig.credentials as Record<string, string>;
  const own = system.tableName;
  const environment = {
    AWS_REGION: String(clientConfig.region),
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: String(clientConfig.endpoint),
    AWS_ENDPOINT_URL_SFN: elsewhere,
    AWS_ENDPOINT_URL_EVENTBRIDGE: elsewhere,
    [environmentNames.tableName]: system.leases.tableName,
    [environmentNames.keyPrefix]: "jobs/",
    IMPORT_ORDERS_TABLE_NAME: own,
    RESOURCE_CACHE_TABLE_NAME: own,
    CLAIM_TASKS_TABLE_NAME: own,
    CLOSE_UNPAID_ORDERS_TABLE_NAME: own,
    CLOSE_UNPAID_ORDERS_SCHEDULE: "cron(0/1 * * * ? *)",
    CLOSE_UNPAID_ORDERS_AFTER_HOURS: "1",
    RESOURCE_CACHE_RECENT_FOR_MS: "60000",
    ADMIT_TICKETS_MOST_WAITING: "1",
    ADMIT_TICKETS_AGENTS: '{"loans":2}',
    ADMIT_TICKETS_USUAL_SERVICE_MS: "600000",
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);

  bundles = await mkdtemp(join(tmpdir(), "leasehold-functions-"));
  handlers.set("leases/wake", shipped(wakeHandlerBundle));
  await build({
    entryPoints: names.map((name) => ({ in: `functions/${name}.ts`, out: name })),
    outdir: bundles,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    // As it is deployed: short names, and the class names with them.
    minify: true,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    // Whoever sets conditions has to repeat "module", or the SDK comes in its larger form.
    conditions: ["leasehold-source", "module"],
    logLevel: "error",
  });
  for (const name of names) {
    const module = await import(pathToFileURL(join(bundles, `${name}.mjs`)).href);
    handlers.set(name, module.handler);
  }
});

afterAll(async () => {
  vi.unstubAllEnvs();
  services?.close();
  system?.close();
  if (bundles !== undefined) await rm(bundles, { recursive: true, force: true });
});

describe("the bundled handlers", () => {
  test("acquire, renew and release a lease, and name their errors", async () => {
    const lease = (await invoke("leases/acquire", { key: "jobs/a", owner: "A" })) as LeaseHandle;
    await expect(invoke("leases/acquire", { key: "jobs/a", owner: "B" })).rejects.toMatchObject({
      name: "LeaseUnavailableError",
      message: expect.stringMatching(/held by "A".*\n\{"code":"LEASE_UNAVAILABLE"/),
    });
    const renewed = (await invoke("leases/renew", { lease })) as LeaseHandle;
    // Each process tells what another may believe by the service's time as its own answers have told it, to a second.
    expect(renewed.expiresAt).toBeGreaterThan(lease.expiresAt - 1_000);
    expect(await invoke("leases/release", { lease: renewed })).toEqual({ released: true });
    await expect(invoke("leases/renew", { lease })).rejects.toMatchObject({ name: "LeaseLostError" });
    await expect(invoke("leases/acquire", { key: "payroll" })).rejects.toMatchObject({
      name: "KeyNotAllowedError",
    });
    await expect(invoke("leases/acquire", {})).rejects.toMatchObject({ name: "InvalidOptionsError" });
    expect(await system.leases.client().inspect("payroll")).toBeUndefined();
  });

  test("report an expired lease to EventBridge", async () => {
    const lease = await system.leases.deadLease("jobs/dead");
    const { key, owner, token, fencingToken } = lease;
    const OldImage = marshall({
      ...leaseItemKey(key),
      token,
      owner,
      fence: fencingToken,
      version: 1,
      acquiredAt: 1,
      expiresAt: 2,
      leaseDurationMs: 1,
    });
    const removal = {
      eventName: "REMOVE",
      userIdentity: { type: "Service", principalId: "dynamodb.amazonaws.com" },
      dynamodb: { OldImage, SequenceNumber: "1" },
    };
    expect(await invoke("leases/expired", { Records: [removal] })).toEqual({ batchItemFailures: [] });
    const put = asked.find(({ target }) => target.endsWith("PutEvents"));
    expect(put?.body).toMatchObject({ Entries: [{ Source: "leasehold", DetailType: "Lease Expired" }] });
    expect(JSON.stringify(put?.body)).not.toContain(token);
  });

  test("wake the longest-waiting workflow that is still there", async () => {
    const key = "jobs/woken";
    const waiting = ["timed out", "alive", "later"];
    for (const [place, taskToken] of waiting.entries()) {
      const {
        update,
        names: placeholders,
        values,
      } = park(
        { pk: key, sk: String(place) },
        { taskToken, expiresAt: Date.now(), retentionMs: 60_000 },
      ).request();
      await system.leases.dynamodb.send(
        new UpdateItemCommand({
          TableName: system.leases.tableName,
          Key: marshall({ pk: key, sk: `${waiterSortKeyPrefix}${place}` }),
          UpdateExpression: update,
          ExpressionAttributeNames: { ...placeholders },
          ExpressionAttributeValues: marshall(values),
        }),
      );
    }
    const item = { ...leaseItemKey(key), fence: 1 };
    const held = { token: "t", version: 1, owner: "o", acquiredAt: 1, expiresAt: 2, leaseDurationMs: 1 };
    const release = {
      eventName: "MODIFY",
      dynamodb: {
        OldImage: marshall({ ...item, ...held }),
        NewImage: marshall(item),
        SequenceNumber: "1",
      },
    };
    expect(await invoke("leases/wake", { Records: [release] })).toEqual({ batchItemFailures: [] });
    const woken = asked.filter(({ target }) => target.endsWith("SendTaskSuccess"));
    expect(woken.map(({ body }) => body)).toEqual([
      { taskToken: "timed out", output: JSON.stringify({ key }) },
      { taskToken: "alive", output: JSON.stringify({ key }) },
    ]);
    // Somebody has it now: a record that comes again wakes nobody.
    await system.leases.client().acquire(key);
    await invoke("leases/wake", { Records: [release] });
    expect(asked.filter(({ target }) => target.endsWith("SendTaskSuccess"))).toHaveLength(2);
  });

  test("leave an order open for the hours that are set", async () => {
    // Before the slots of the next test: a later one that is done keeps out the earlier ones.
    const slot = Math.floor(Date.now() / 60_000 - 3) * 60_000;
    const ages = { young: 30, old: 90 };
    for (const [orderId, minutes] of Object.entries(ages)) {
      const dueAt = slot - minutes * 60_000;
      const sk = `${new Date(dueAt).toISOString()}#${orderId}`;
      await system.put({ pk: "orders#open", sk, orderId, lines: [{ product: "hat", quantity: 1 }], dueAt });
    }
    await system.put({ pk: "stock", sk: "hat", available: 0 });
    const scheduledTime = new Date(slot).toISOString();
    expect(await invoke("close-unpaid-orders/handler", { scheduledTime })).toMatchObject({ closed: 1 });
    const items = Object.keys(await system.items());
    expect(items.filter((key) => key.startsWith("orders#closed/"))).toContain("orders#closed/old");
    expect(items).not.toContain("orders#closed/young");
  });

  test("run each of the five systems", async () => {
    await system.put(
      { pk: "pending#import", sk: "1", orders: [{ orderId: "o", product: "mug", quantity: 2 }] },
      { pk: "movements#north", sk: "1", product: "mug", quantity: 5 },
      { pk: "movements#north", sk: "2", product: "mug", quantity: -2 },
      {
        pk: "orders#open",
        sk: "2026-03-01T09:30:00.000Z#o-1",
        orderId: "o-1",
        lines: [{ product: "mug", quantity: 1 }],
        dueAt: 1772357400000,
      },
      { pk: "stock", sk: "mug", available: 0 },
    );
    expect(await invoke("import-orders/handler", { kind: "import" })).toMatchObject({
      result: "ran",
      chunks: 1,
    });
    const levels = { value: { mug: 3 } };
    expect(await invoke("resource-cache/handler", { warehouse: "north" })).toMatchObject({
      ...levels,
      source: "computed",
    });
    expect(await invoke("resource-cache/handler", { warehouse: "north" })).toMatchObject({
      ...levels,
      source: "process",
    });
    const scheduledTime = new Date(Math.floor(Date.now() / 60_000 - 2) * 60_000).toISOString();
    expect(await invoke("close-unpaid-orders/handler", { job: "j", scheduledTime })).toMatchObject({
      result: "ran",
      closed: 1,
    });
    expect(await invoke("close-unpaid-orders/handler", { job: "j", scheduledTime })).toMatchObject({
      result: "doneBefore",
    });
    const since = scheduledTime;
    expect(
      await invoke("close-unpaid-orders/report", { action: "runs", since, state: "succeeded" }),
    ).toMatchObject({
      counts: { succeeded: 1, failed: 0 },
      runs: [{ slot: scheduledTime, attempt: 1, progress: { closed: 1, parked: 0 } }],
    });
    expect(await invoke("close-unpaid-orders/report", { action: "backfill", since })).toMatchObject({
      failed: [],
      left: [],
      complete: true,
    });
    const { missed } = (await invoke("close-unpaid-orders/report", {
      action: "missed",
      since,
    })) as MissedAnswer;
    expect(missed.map(({ slot }) => slot)).not.toContain(scheduledTime);
    const add = [{ id: "t", payload: 7 }];
    expect(await invoke("claim-tasks/handler", { set: "s", add })).toEqual({ added: 1, known: 0 });
    expect(await invoke("claim-tasks/handler", { set: "s", add })).toEqual({ added: 0, known: 1 });
    expect(await invoke("claim-tasks/handler", { set: "s" })).toEqual({
      succeeded: 0,
      failed: 0,
      parked: 1,
      putBack: 0,
      lost: 0,
      isUnfinished: false,
    });
    expect((await system.items())["sets/s"]).toMatchObject({ addedAt: expect.any(Number) });
    await invoke("claim-tasks/handler", { set: "s", add: [{ id: "u", payload: 8 }] });
    expect(await invoke("claim-tasks/restart", {})).toEqual({
      sets: 1,
      drained: 0,
      succeeded: 0,
      failed: 0,
      parked: 1,
      putBack: 0,
      lost: 0,
      isUnfinished: false,
    });
    const enter = { action: "enter", department: "savings", ticket: "L1" };
    expect(await invoke("admit-tickets/handler", enter)).toMatchObject({ state: "serving", ticket: "L1" });
    const items = await system.items();
    expect(items["stock/mug"]).toMatchObject({ available: 1 });
    expect(items["orders#closed/o-1"]).toMatchObject({ closings: 1 });
  });

  test("compute a resource again where a refresh is asked for, and wait as the event says", async () => {
    const south = (event: object): Promise<unknown> =>
      invoke("resource-cache/handler", { warehouse: "south", ...event });
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

  test("admit tickets to several agents, appointments first, and tell a refused one when there is room", async () => {
    const enter = (ticket: string, appointment = false): Promise<unknown> =>
      invoke("admit-tickets/handler", { action: "enter", department: "loans", ticket, appointment });
    const served = (await Promise.all([enter("A"), enter("B")])) as { agent: number }[];
    expect(served.map(({ agent }) => agent).sort()).toEqual([1, 2]);
    expect(await enter("C")).toMatchObject({ state: "waiting", position: 1 });
    expect(await enter("P", true)).toMatchObject({ state: "waiting", position: 1 });
    expect(await enter("D")).toMatchObject({
      state: "refused",
      mostWaiting: 1,
      estimatedWaitMs: expect.closeTo(600_000, -5),
    });
    const next = { action: "next", department: "loans", agent: 2 };
    const [, second] = served
      .map(({ agent }, index) => ({ agent, ticket: "AB"[index] }))
      .sort((a, b) => a.agent - b.agent);
    expect(await invoke("admit-tickets/handler", { ...next, ticket: second?.ticket })).toMatchObject({
      serving: "P",
      waiting: 1,
    });
  });

  test.each([
    ["import-orders/handler", { kind: "everything" }],
    ["resource-cache/handler", { warehouse: 7 }],
    ["resource-cache/handler", { warehouse: "north", retry: "hope" }],
    ["close-unpaid-orders/handler", {}],
    ["close-unpaid-orders/report", {}],
    ["close-unpaid-orders/report", { action: "missed", since: "yesterday" }],
    ["claim-tasks/handler", { set: "" }],
    ["claim-tasks/handler", { set: "s", add: 7 }],
    ["claim-tasks/handler", { set: "s", add: null }],
    ["claim-tasks/handler", { set: "s", add: [null] }],
    ["claim-tasks/handler", { set: "s", add: [{ id: "a", payload: 1, due: 1 }] }],
    ["admit-tickets/handler", { action: "jump" }],
  ] as const)("%s refuses %j by name", async (name, event) => {
    await expect(invoke(name, event)).rejects.toMatchObject({ name: "InvalidOptionsError" });
  });
});
