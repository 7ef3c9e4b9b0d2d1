// @module-tag long
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import type { LeaseEvent } from "@leasehold/client";
import type { InvokeResult } from "@leasehold/local";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  cacheKeyPrefix,
  freshForVariable,
  movementsPartition,
} from "../../../functions/resource-cache/schema.ts";
import { cacheSortKey } from "../../../packages/client/src/primitives/single-flight/entry.ts";
import { startTestApp, type TestApp, until } from "../../support/app.ts";
import type { Matcher } from "../../support/proxy.ts";
import { errorIn, type HeldRequest, hold } from "../../support/proxy-behaviours.ts";

const freshForMs = 3_000;
/** The system's own. */
const leaseDurationMs = 10_000;
let it: TestApp;

beforeAll(async () => {
  it = await startTestApp({ environment: { [freshForVariable]: String(freshForMs) } });
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

interface Call {
  readonly requestId: string;
  readonly result: Promise<InvokeResult>;
}

/** A warehouse with movements of its own. */
class Warehouse {
  readonly #name: string = `warehouse-${randomUUID()}`;
  #movements = 0;

  async receive(quantity: number): Promise<void> {
    this.#movements += 1;
    const Item = {
      pk: movementsPartition(this.#name),
      sk: `${this.#movements}`,
      product: "mug",
      quantity,
    };
    await it.documents.send(new PutCommand({ TableName: it.app.tableName("StockLevels/Movements"), Item }));
  }

  /** Calls, and waits for its answer elsewhere. */
  call(): Call {
    const requestId = randomUUID();
    const event = { warehouse: this.#name, waitMs: 14_000, retry: "fixed" };
    return { requestId, result: it.app.invoke("StockLevels/Levels", event, { requestId }) };
  }

  async ask(): Promise<{ readonly source: string; readonly value: unknown }> {
    const { payload, functionError } = await this.call().result;
    expect(functionError, JSON.stringify(payload)).toBeUndefined();
    return payload as { readonly source: string; readonly value: unknown };
  }

  readonly computes: Matcher = ({ operation, body }) =>
    operation === "Query" && JSON.stringify(body).includes(`"${movementsPartition(this.#name)}"`);

  readonly stores: Matcher = ({ operation, body }) =>
    operation === "UpdateItem" &&
    body.Key.pk.S === cacheKeyPrefix + this.#name &&
    body.Key.sk.S === cacheSortKey;
}

/** Waits for a request, and gives the one call whose process has the lock by then. */
async function standing(
  matches: Matcher,
  calls: () => readonly Call[],
): Promise<{ readonly call: Call; readonly environmentId: string; readonly request: HeldRequest }> {
  const request = hold();
  // Arrivals count from here.
  it.proxy.reset();
  it.proxy.next(matches, request);
  const all = calls();
  await it.proxy.arrival(matches);
  await until("the line about the lease", () => all.some(({ requestId }) => grantOf(requestId)));
  const call = all.find(({ requestId }) => grantOf(requestId) !== undefined) as Call;
  const { id: environmentId } = await it.environmentOf(call.requestId);
  it.app.freeze(environmentId);
  return { call, environmentId, request };
}

function grantOf(requestId: string): (LeaseEvent & { readonly type: "acquired" }) | undefined {
  return it.leaseEvents(requestId).find((event) => event.type === "acquired");
}

test("many miss at once and one computes; it is killed: one other computes when its lease is over, and the rest get that value", async () => {
  const warehouse = new Warehouse();
  await warehouse.receive(5);
  const calls = Array.from({ length: 4 }, () => warehouse.call());
  const { call, environmentId, request } = await standing(warehouse.computes, () => calls);
  await it.app.kill(environmentId);
  expect(await call.result).toMatchObject({ payload: { errorType: "Runtime.ExitError" } });

  const others = calls.filter((other) => other !== call);
  const answers = await Promise.all(others.map(({ result }) => result));
  const payloads = answers.map(
    ({ payload }) => payload as { readonly source: string; readonly value: object },
  );
  expect(payloads.map(({ value }) => value)).toEqual(Array(3).fill({ mug: 5 }));
  expect(payloads.map(({ source }) => source).sort()).toEqual(["computed", "otherCall", "otherCall"]);
  expect(it.proxy.requests.filter(warehouse.computes)).toHaveLength(2);

  const dead = grantOf(call.requestId);
  const [grant, ...rest] = others.flatMap(({ requestId }) => grantOf(requestId) ?? []);
  expect(rest).toEqual([]);
  expect(grant?.fencingToken).toBe(Number(dead?.fencingToken) + 1);
  // Both leases are equally long: the one begins when the other has ended. Each process rounds its expiry up by what it
  // does not know of the service's time, which is told in whole seconds.
  expect(grant?.expiresAt).toBeGreaterThanOrEqual(Number(dead?.expiresAt) + leaseDurationMs - 1_000);
  await request.letGo();
});

test("one is frozen with its store under way: the others get the old value at once, another computes when its lease is over, and the late store changes nothing", async () => {
  const warehouse = new Warehouse();
  await warehouse.receive(5);
  expect(await warehouse.ask()).toMatchObject({ source: "computed", value: { mug: 5 } });
  await delay(freshForMs);
  await warehouse.receive(2);
  const { call, environmentId, request } = await standing(warehouse.stores, () => [warehouse.call()]);
  await warehouse.receive(1);

  const askedAt = performance.now();
  const meanwhile = await Promise.all([1, 2, 3].map(() => warehouse.ask()));
  expect(meanwhile).toMatchObject(Array(3).fill({ source: "stale", value: { mug: 5 } }));
  expect(performance.now() - askedAt).toBeLessThan(13_000);

  let latest = meanwhile[0];
  await until("another computation", async () => {
    latest = await warehouse.ask();
    return latest.source !== "stale";
  });
  expect(latest).toMatchObject({ source: "computed", value: { mug: 8 } });
  expect(errorIn(await request.letGo())).toBe("ConditionalCheckFailedException");
  it.app.thaw(environmentId);
  // What it has computed is its own caller's all the same.
  expect(await call.result).toMatchObject({ payload: { source: "computed", value: { mug: 7 } } });
  expect(await warehouse.ask()).toMatchObject({ source: "cache", value: { mug: 8 } });
});
