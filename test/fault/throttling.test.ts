import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { afterAll, beforeEach, expect, inject, test } from "vitest";
import { eventually } from "../support/patience.ts";
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
  ["ProvisionedThroughputExceededException", 400, "LEASE_THROTTLED"],
  ["ThrottlingException", 400, "LEASE_THROTTLED"],
  ["RequestLimitExceeded", 400, "LEASE_THROTTLED"],
  ["ServiceUnavailable", 503, "LEASE_SERVICE_FAILED"],
  ["InternalServerError", 500, "LEASE_SERVICE_FAILED"],
  ["TransactionConflictException", 400, "LEASE_CONFLICT"],
] as const)("%s (%i) is told apart as %s", async ([name, status, code]) => {
  proxy.always(anyRequest, failWith(name, status));
  await expect(strict.acquire(key)).rejects.toMatchObject({ name: "LeaseServiceError", code });
});

test.for([
  ["ProvisionedThroughputExceededException", 400],
  ["InternalServerError", 500],
] as const)(
  "an acquire that does not wait succeeds when %s (%i) is over before the SDK gives up",
  async ([name, status]) => {
    proxy.next(write, failWith(name, status), 2);
    expect((await client.acquire(key)).held).toBe(true);
  },
);

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
test("a renewal that collides with a transaction on the lease's item can be repeated", async () => {
  const lease = await strict.acquire(key);
  proxy.next(write, failWith("TransactionConflictException"));
  await expect(lease.renew()).rejects.toMatchObject({ name: "LeaseServiceError", retryable: true });
  await lease.renew();
  expect(await lease.release()).toBe(true);
});
