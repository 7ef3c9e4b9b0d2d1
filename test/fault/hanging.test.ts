import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createLeaseTable,
  LeaseClient,
  LeaseError,
  type LeaseEvent,
  LeaseServiceError,
} from "@leasehold/client";
import { afterAll, beforeEach, expect, inject, test, vi } from "vitest";
import { anyRequest, op, startProxy } from "../support/proxy.ts";
import { delayAnswer, errorIn, hang, hold } from "../support/proxy-behaviours.ts";
import { bentClock, makeTable, sdkClient } from "../support/table.ts";

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
/** As a user may bring it: it waits for ever. */
const patient = sdkClient(proxy, { requestHandler: { connectionTimeout: 0, requestTimeout: 0 } });
const client = table.client({ dynamodb: patient });
/** Goes past the proxy. */
const other = table.client();
const write = op("UpdateItem");
/** What a machine under load may add to a time that has an upper bound. */
const slackMs = 1_500;
let key: string;

beforeEach(async () => {
  key = table.newKey();
  proxy.reset();
  // A connection is there, and the engine is warm, before any time is measured.
  await client.inspect(key);
  proxy.reset();
});
afterAll(async () => {
  await proxy.close();
  patient.destroy();
  table.close();
});

test("a renewal that hangs does not keep the signal from aborting at the holder's own deadline", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 1_000 });
  proxy.always(write, hang());
  // The lease's end and the end of patience fall together: either may be what the caller hears of.
  const refusal = expect(lease.renew()).rejects.toBeInstanceOf(LeaseError);
  const deadline = performance.now() + lease.remainingMs();
  await once(lease.signal, "abort");
  expect(performance.now()).toBeGreaterThanOrEqual(deadline - 1);
  expect(performance.now()).toBeLessThan(deadline + slackMs);
  expect(lease.signal.reason).toMatchObject({ name: "LeaseLostError", reason: "expired" });
  expect(lease.held).toBe(false);
  await refusal;
});

test("a heartbeat that hangs does not keep the signal from aborting at the holder's own deadline", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 1_000, heartbeat: 200 });
  proxy.always(anyRequest, hang());
  await once(lease.signal, "abort");
  expect(lease.signal.reason).toMatchObject({ name: "LeaseLostError", reason: "expired" });
  expect(proxy.count("UpdateItem")).toBeGreaterThan(1);
});

test("a heartbeat whose first renewal hangs renews all the same", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 3_000, heartbeat: 200 });
  proxy.next(write, hang());
  await proxy.arrival(write, 3);
  expect(lease.held).toBe(true);
  expect(await lease.release()).toBe(true);
});

test("a heartbeat survives a renew() of its user's that hangs", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 3_000, heartbeat: 500 });
  proxy.next(write, hang());
  const hung = lease.renew().catch((error: unknown) => error);
  await sleep(lease.remainingMs() + 500);
  expect(lease.held).toBe(true);
  expect(await lease.release()).toBe(true);
  await hung;
});

test("a heartbeat whose batch hangs renews all the same", async () => {
  let renewed = 0;
  const onEvent = ({ type }: LeaseEvent): void => {
    if (type === "renewed") renewed += 1;
  };
  const beater = table.client({ dynamodb: patient, onEvent });
  proxy.next(op("BatchExecuteStatement"), hang());
  const leases = await table.leasesDueTogether(beater, [`${key}/0`, `${key}/1`], 200, 3_000);
  await vi.waitFor(() => expect(renewed).toBeGreaterThanOrEqual(4), { timeout: 10_000 });
  for (const lease of leases) {
    expect(lease.held).toBe(true);
    expect(await lease.release()).toBe(true);
  }
});

test("a release waits for a renewal that is slow, and follows it", async () => {
  const lease = await client.acquire(key);
  proxy.reset();
  proxy.next(write, delayAnswer(400));
  const refusal = expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
  const renewing = await proxy.arrival(write);
  expect(await lease.release()).toBe(true);
  await refusal;
  const releasing = await proxy.arrival(write, 2);
  expect(releasing.at).toBeGreaterThanOrEqual(renewing.finishedAt ?? Number.NaN);
  expect(await other.tryAcquire(key)).toBeDefined();
});

test("a release cuts off a renewal that hangs after a second, and frees the lock", async () => {
  const lease = await client.acquire(key);
  proxy.reset();
  const late = hold();
  proxy.next(write, late);
  let hasRenewalEnded = false;
  const renewal = lease.renew().finally(() => {
    hasRenewalEnded = true;
  });
  const cutOff = expect(renewal).rejects.toBeInstanceOf(LeaseError);
  await proxy.arrival(write);
  let hadRenewalEnded: boolean | undefined;
  proxy.next(write, async (exchange) => {
    hadRenewalEnded = hasRenewalEnded;
    exchange.reply(await exchange.forward());
  });
  const start = performance.now();
  expect(await lease.release()).toBe(true);
  const tookMs = performance.now() - start;
  expect(tookMs).toBeGreaterThanOrEqual(990);
  expect(tookMs).toBeLessThan(1_000 + slackMs);
  expect(hadRenewalEnded).toBe(true);
  await cutOff;

  expect(await other.inspect(key)).toBeUndefined();
  // Even if the renewal gets through now, it does not take the lock back.
  expect(errorIn(await late.letGo())).toBe("ConditionalCheckFailedException");
  expect(await other.tryAcquire(key)).toBeDefined();
});

test("a release in the midst of a batch that hangs frees its lock and costs no other lease", async () => {
  const beater = table.client({ dynamodb: patient });
  proxy.next(op("BatchExecuteStatement"), hang());
  const [first, second] = await table.leasesDueTogether(beater, [`${key}/0`, `${key}/1`], 300);
  await proxy.arrival(op("BatchExecuteStatement"));
  expect(await first?.release()).toBe(true);
  expect(await other.tryAcquire(`${key}/0`)).toBeDefined();
  expect(second?.held).toBe(true);
  expect(await second?.release()).toBe(true);
});

test("an acquire that hangs ends as a LeaseServiceError within the lease's duration", async () => {
  proxy.always(write, hang());
  const start = performance.now();
  const failure = await client.acquire(key, { leaseDurationMs: 1_200 }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(LeaseServiceError);
  expect(failure).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
  expect(performance.now() - start).toBeLessThan(1_200 + slackMs);
});

test("an acquire that waits ends as a LeaseServiceError when its time is over, if every request hangs", async () => {
  proxy.always(anyRequest, hang());
  const start = performance.now();
  await expect(client.acquire(key, { waitMs: 500 })).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  expect(performance.now() - start).toBeLessThan(1_000 + slackMs);
});

test("an acquire that waits survives a request that hangs", async () => {
  proxy.next(write, hang());
  const lease = await client.acquire(key, { leaseDurationMs: 1_000, waitMs: 10_000 });
  expect(lease.held).toBe(true);
});

test("a waiter whose look at the lock hangs still gives up when its time is over", async () => {
  await other.acquire(key);
  proxy.always(op("GetItem"), hang());
  const start = performance.now();
  const waiting = client.acquire(key, { waitMs: 500, retry: { strategy: "fixed", delayMs: 50 } });
  await expect(waiting).rejects.toMatchObject({ name: "LeaseUnavailableError" });
  expect(performance.now() - start).toBeLessThan(1_000 + slackMs);
});

/** Timers that fire twenty times too early, so that ten seconds of patience take half a second. */
const hasty = bentClock({ haste: 20 });

test("every call is bounded in time, though the user's own client has no timeouts", async () => {
  const hurried = table.client({ dynamodb: patient, clock: hasty });
  const lease = await hurried.acquire(key);
  proxy.always(anyRequest, hang());
  const noAnswer = { code: "LEASE_NO_ANSWER" };
  await Promise.all([
    expect(hurried.inspect(key)).rejects.toMatchObject(noAnswer),
    expect(hurried.acquire(table.newKey())).rejects.toMatchObject(noAnswer),
    expect(hurried.forceRelease(table.newKey(), { token: "anyone" })).rejects.toMatchObject(noAnswer),
    expect(hurried.requestRevocation(table.newKey(), { token: "anyone" })).rejects.toMatchObject(noAnswer),
    expect(hurried.list().next()).rejects.toMatchObject(noAnswer),
    expect(lease.renew()).rejects.toMatchObject(noAnswer),
  ]);
  await expect(lease.release()).rejects.toMatchObject(noAnswer);
});

test("createLeaseTable gives up when its time is over, though no answer comes", async () => {
  proxy.always(anyRequest, hang());
  const start = performance.now();
  const creating = createLeaseTable({
    tableName: `leases-${crypto.randomUUID()}`,
    dynamodb: patient,
    waitMs: 500,
  });
  await expect(creating).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  expect(performance.now() - start).toBeLessThan(500 + slackMs);
}, 5_000);

test("the client that is used where the user brings none asks again when an answer takes seconds", async () => {
  const { region, credentials, endpoint } = proxy.clientConfig as Record<string, string> & {
    credentials: Record<string, string>;
  };
  vi.stubEnv("AWS_ENDPOINT_URL_DYNAMODB", endpoint ?? "");
  vi.stubEnv("AWS_REGION", region ?? "");
  vi.stubEnv("AWS_ACCESS_KEY_ID", credentials.accessKeyId ?? "");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", credentials.secretAccessKey ?? "");
  try {
    const own = new LeaseClient({ tableName: table.tableName });
    proxy.next(write, hang());
    const lease = await own.acquire(key);
    expect(proxy.count("UpdateItem")).toBe(2);
    expect(await lease.release()).toBe(true);
  } finally {
    vi.unstubAllEnvs();
  }
});
