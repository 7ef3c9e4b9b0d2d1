import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { eventually, patienceMs } from "../support/patience.ts";
import { anyRequest, op, startProxy } from "../support/proxy.ts";
import { failWith, throttleStatements } from "../support/proxy-behaviours.ts";
import { makeTable, sdkClient } from "../support/table.ts";

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const retrying = sdkClient(proxy);
const once = sdkClient(proxy, { maxAttempts: 1 });
const client = table.client({ dynamodb: retrying });
/** Leaves every repetition to the lease client. */
const strict = table.client({ dynamodb: once });
/** Goes past the proxy. */
const other = table.client();
const write = op("UpdateItem");
let key: string;

beforeEach(async () => {
  key = table.newKey();
  proxy.reset();
  // Connections are there, and the engine is warm, before any time is measured.
  await Promise.all([client.inspect(key), strict.inspect(key)]);
  proxy.reset();
});
afterAll(async () => {
  retrying.destroy();
  once.destroy();
  table.close();
  await proxy.close();
});

test.for([
  ["ThrottlingException", 400, "LEASE_THROTTLED"],
  ["RequestLimitExceeded", 400, "LEASE_THROTTLED"],
  ["ServiceUnavailable", 503, "LEASE_SERVICE_FAILED"],
  ["TransactionConflictException", 400, "LEASE_CONFLICT"],
] as const)("%s (%i) is told apart as %s", async ([name, status, code]) => {
  proxy.always(anyRequest, failWith(name, status));
  await expect(strict.acquire(key)).rejects.toMatchObject({ name: "LeaseServiceError", code });
});

describe.each([
  ["ProvisionedThroughputExceededException", 400, "LEASE_THROTTLED"],
  ["InternalServerError", 500, "LEASE_SERVICE_FAILED"],
] as const)("while the service answers %s (%i)", (name, status, code) => {
  test("an acquire that waits succeeds when that is over", async () => {
    proxy.next(write, failWith(name, status), 4);
    const lease = await strict.acquire(key, {
      waitMs: patienceMs,
      retry: { strategy: "fixed", delayMs: 50 },
    });
    expect(lease.held).toBe(true);
    expect(proxy.count("UpdateItem")).toBe(5);
  });

  test("an acquire that does not wait succeeds when that is over before the SDK gives up", async () => {
    proxy.next(write, failWith(name, status), 2);
    expect((await client.acquire(key)).held).toBe(true);
  });

  // The SDK repeats at random times, so one of its attempts may be without an answer when the time is over.
  test.for([
    ["the SDK repeats its requests", client, [code, "LEASE_NO_ANSWER"]],
    ["the SDK does not repeat its requests", strict, [code]],
  ] as const)("an acquire that waits says so when its time is over, where %s", async ([, waiter, codes]) => {
    proxy.always(anyRequest, failWith(name, status));
    const start = performance.now();
    const waiting = waiter.acquire(key, { waitMs: 500 });
    await expect(waiting).rejects.toMatchObject({
      name: "LeaseServiceError",
      code: expect.toBeOneOf(codes),
      retryable: true,
    });
    const tookMs = performance.now() - start;
    expect(tookMs).toBeGreaterThanOrEqual(499);
    expect(tookMs).toBeLessThan(patienceMs / 4);
  });
});

test("a heartbeat survives a burst that is shorter than the lease", async () => {
  const events: LeaseEvent[] = [];
  const beater = table.client({
    renewals: together(),
    dynamodb: once,
    onEvent: (event) => events.push(event),
  });
  const lease = await beater.acquire(key, { leaseDurationMs: 8_000, heartbeat: 200 });
  proxy.reset();
  proxy.next(write, failWith("ProvisionedThroughputExceededException"), 2);
  await proxy.arrival(write, 4);
  expect(lease.held).toBe(true);
  expect(await lease.release()).toBe(true);
  expect(events.filter(({ type }) => type === "lost")).toEqual([]);
});

test("heartbeats that travel together survive a burst that is shorter than the lease", async () => {
  const events: LeaseEvent[] = [];
  const beater = table.client({
    renewals: together(),
    dynamodb: once,
    onEvent: (event) => events.push(event),
  });
  proxy.next(anyRequest, failWith("ProvisionedThroughputExceededException"), 2);
  const leases = await table.leasesDueTogether(beater, [`${key}/0`, `${key}/1`], 200, 8_000);
  await eventually(() => expect(events.filter(({ type }) => type === "renewed").length).toBeGreaterThan(3));
  expect(events.filter(({ type }) => type === "lost")).toEqual([]);
  for (const lease of leases) expect(await lease.release()).toBe(true);
});

test("leases whose statements are throttled in a batch are tried again after a pause, not by single writes at once", async () => {
  const renewed: string[] = [];
  const beater = table.client({
    renewals: together(),
    dynamodb: once,
    onEvent: (event) => {
      if (event.type === "renewed") renewed.push(event.key);
    },
  });
  const keys = [0, 1, 2, 3].map((index) => `${key}/${index}`);
  const keysIn = (body: unknown): string[] =>
    keys.filter((name) => JSON.stringify(body).includes(`"${name}"`));
  proxy.next(op("BatchExecuteStatement"), throttleStatements(2));
  const leases = await table.leasesDueTogether(beater, keys, 200, 6_000);
  await eventually(() => expect(new Set(renewed)).toEqual(new Set(keys)));
  const [batch] = proxy.requests.filter(op("BatchExecuteStatement"));
  const throttled = keysIn(batch?.body.Statements.slice(0, 2));
  const repeated = proxy.requests.find(
    (request) => request !== batch && keysIn(request.body).some((name) => throttled.includes(name)),
  );
  // A fifth of what was left of the lease, less a tenth for jitter.
  expect((repeated?.at ?? 0) - (batch?.finishedAt ?? 0)).toBeGreaterThan(500);
  expect(leases.map((lease) => lease.held)).toEqual([true, true, true, true]);
  for (const lease of leases) expect(await lease.release()).toBe(true);
});

// A transaction that checks the lease (lease.conditionCheck()) makes writes to the lease at the same time fail so.
describe("while a transaction on the lease's item is under way", () => {
  const conflict = failWith("TransactionConflictException");

  test("a heartbeat goes on", async () => {
    const lease = await client.acquire(key, { leaseDurationMs: 8_000, heartbeat: 200 });
    proxy.reset();
    proxy.next(write, conflict);
    await eventually(() => expect(proxy.count("UpdateItem")).toBeGreaterThan(2));
    expect(lease.held).toBe(true);
    expect(await lease.release()).toBe(true);
  });

  test("a renewal that collides can be repeated", async () => {
    const lease = await strict.acquire(key);
    proxy.next(write, conflict);
    await expect(lease.renew()).rejects.toMatchObject({ name: "LeaseServiceError", retryable: true });
    await lease.renew();
    expect(await lease.release()).toBe(true);
  });

  test("an acquire that waits tries again", async () => {
    proxy.next(write, conflict);
    expect((await strict.acquire(key, { waitMs: 5_000 })).held).toBe(true);
  });
});

test.for(["ExpiredTokenException", "AccessDeniedException"])(
  "a heartbeat survives a moment of %s",
  async (name) => {
    const lease = await client.acquire(key, { leaseDurationMs: 8_000, heartbeat: 200 });
    proxy.reset();
    proxy.next(write, failWith(name));
    await eventually(() => expect(proxy.count("UpdateItem")).toBeGreaterThan(2));
    expect(lease.held).toBe(true);
    expect(await lease.release()).toBe(true);
  },
);

test("a waiter whose looks are throttled takes the lock as soon as it is free and they are not", async () => {
  const holder = await other.acquire(key);
  proxy.next(op("GetItem"), failWith("ProvisionedThroughputExceededException"), 3);
  const waiting = strict.acquire(key, { waitMs: patienceMs, retry: { strategy: "fixed", delayMs: 50 } });
  await proxy.arrival(op("GetItem"), 2);
  await holder.release();
  expect((await waiting).held).toBe(true);
});
