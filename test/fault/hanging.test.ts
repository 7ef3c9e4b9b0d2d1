import {
  createLeaseTable,
  LeaseClient,
  LeaseError,
  type LeaseEvent,
  LeaseServiceError,
} from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { afterAll, beforeEach, expect, inject, test, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { makeEnginePlace } from "../support/engine-place.ts";
import { eventually } from "../support/patience.ts";
import { anyRequest, type Matcher, op, startProxy } from "../support/proxy.ts";
import { errorIn, hang, hold } from "../support/proxy-behaviours.ts";
import { DefaultClient, environmentOf, makeTable, sdkClient } from "../support/table.ts";

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
/** As a user may bring it: it waits for ever. */
const config = { requestHandler: { connectionTimeout: 0, requestTimeout: 0 } };
const patient = sdkClient(proxy, config);
/** The connection is real; the time is the test's. */
const engine = await makeEnginePlace(proxy, config);
/** Goes past the proxy. */
const other = new LeaseClient({ tableName: engine.tableName, dynamodb: table.dynamodb });
const write = op("UpdateItem");
let clock: ManualClock;
let client: LeaseClient;
let key: string;

beforeEach(() => {
  key = table.newKey();
  clock = new ManualClock(Date.now());
  client = new LeaseClient({ ...engine.place(clock), clock });
  proxy.reset();
});
afterAll(async () => {
  await proxy.close();
  engine.close();
  patient.destroy();
  table.close();
});

/** Whether a promise has settled, now that all that can has. */
function watch(promise: Promise<unknown>): () => boolean {
  let hasSettled = false;
  const settle = (): void => {
    hasSettled = true;
  };
  promise.then(settle, settle);
  return () => hasSettled;
}

test("a renewal that hangs does not keep the signal from aborting at the holder's own deadline", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 10_000 });
  const { signal } = lease;
  proxy.always(write, hang());
  // The lease's end and the end of patience may fall together: either may be what the caller hears of.
  const refusal = expect(lease.renew()).rejects.toBeInstanceOf(LeaseError);
  await proxy.arrival(write, 2);
  await clock.advance(Math.ceil(lease.remainingMs()) - 1);
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.reason).toMatchObject({ name: "LeaseLostError", reason: "expired" });
  expect(lease.held).toBe(false);
  await refusal;
});

test("a heartbeat that hangs does not keep the signal from aborting at the holder's own deadline", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 10_000, heartbeat: 2_000 });
  const { signal } = lease;
  proxy.always(anyRequest, hang());
  await clock.advance(2_000);
  await proxy.arrival(write, 2);
  await clock.advance(Math.ceil(lease.remainingMs()) - 1);
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.reason).toMatchObject({ name: "LeaseLostError", reason: "expired" });
});

test("a heartbeat whose first renewal hangs renews all the same", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 10_000, heartbeat: 2_000 });
  proxy.next(write, hang());
  await clock.advance(2_000);
  await proxy.arrival(write, 2);
  // Given up after half of the time that is left, and repeated after a fifth of what is left then.
  await clock.advance(4_000);
  await clock.advance(1_000);
  await eventually(() => expect(lease.remainingMs()).toBeGreaterThan(5_000));
  expect(await lease.release()).toBe(true);
});

test("a heartbeat survives a renew() of its user's that hangs", async () => {
  const lease = await client.acquire(key, { leaseDurationMs: 10_000, heartbeat: 3_000 });
  proxy.next(write, hang());
  const hung = lease.renew().catch((error: unknown) => error);
  await proxy.arrival(write, 2);
  await clock.advance(5_000);
  expect(await hung).toMatchObject({ code: "LEASE_NO_ANSWER" });
  await clock.advance(2_000);
  await eventually(() => expect(lease.remainingMs()).toBeGreaterThan(5_000));
  expect(await lease.release()).toBe(true);
});

test("a heartbeat whose batch hangs renews all the same", async () => {
  let renewed = 0;
  const onEvent = ({ type }: LeaseEvent): void => {
    if (type === "renewed") renewed += 1;
  };
  const beater = table.client({ renewals: together(), dynamodb: patient, onEvent });
  proxy.next(op("BatchExecuteStatement"), hang());
  const leases = await table.leasesDueTogether(beater, [`${key}/0`, `${key}/1`], 200, 8_000);
  await eventually(() => expect(renewed).toBeGreaterThanOrEqual(4));
  for (const lease of leases) {
    expect(lease.held).toBe(true);
    expect(await lease.release()).toBe(true);
  }
});

test("the release of one lease leaves the others in their batch, though it hangs for a while", async () => {
  const renewed: string[] = [];
  const beater = table.client({
    renewals: together(),
    dynamodb: patient,
    onEvent: (event) => {
      if (event.type === "renewed") renewed.push(event.key);
    },
  });
  const keys = [0, 1, 2].map((index) => `${key}/${index}`);
  const batch = hold();
  proxy.next(op("BatchExecuteStatement"), batch);
  const leases = await table.leasesDueTogether(beater, keys, 200);
  await proxy.arrival(op("BatchExecuteStatement"));
  // It cuts its own renewal off after a second.
  expect(await leases[0]?.release()).toBe(true);
  expect(proxy.operations).toEqual(["BatchExecuteStatement", "UpdateItem"]);
  await batch.letGo();
  await eventually(() => expect(renewed.slice(0, 2).sort()).toEqual(keys.slice(1)));
  expect(proxy.count("UpdateItem")).toBe(1);
  expect(leases.map((lease) => lease.held)).toEqual([false, true, true]);
  expect(await beater.inspect(keys[0] ?? "")).toBeUndefined();
  for (const lease of leases.slice(1)) expect(await lease.release()).toBe(true);
});

test("a release waits for a renewal that is slow, and follows it", async () => {
  const lease = await client.acquire(key);
  proxy.reset();
  const slow = hold();
  proxy.next(write, slow);
  const refusal = expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
  const renewing = await proxy.arrival(write);
  const releasing = lease.release();
  await clock.advance(999);
  expect(proxy.count("UpdateItem")).toBe(1);
  await slow.letGo();
  expect(await releasing).toBe(true);
  await refusal;
  const release = await proxy.arrival(write, 2);
  expect(release.at).toBeGreaterThanOrEqual(renewing.finishedAt ?? Number.NaN);
  expect(await other.tryAcquire(key)).toBeDefined();
});

test("a release cuts off a renewal that hangs after a second, and frees the lock", async () => {
  const lease = await client.acquire(key);
  proxy.reset();
  const late = hold();
  proxy.next(write, late);
  const renewal = lease.renew();
  const hasRenewalEnded = watch(renewal);
  const cutOff = expect(renewal).rejects.toBeInstanceOf(LeaseError);
  await proxy.arrival(write);
  let hadRenewalEnded: boolean | undefined;
  proxy.next(write, async (exchange) => {
    hadRenewalEnded = hasRenewalEnded();
    exchange.reply(await exchange.forward());
  });
  const releasing = lease.release();
  await clock.advance(999);
  expect(proxy.count("UpdateItem")).toBe(1);
  await clock.advance(1);
  expect(await releasing).toBe(true);
  expect(hadRenewalEnded).toBe(true);
  await cutOff;

  expect(await other.inspect(key)).toBeUndefined();
  // Even if the renewal gets through now, it does not take the lock back.
  expect(errorIn(await late.letGo())).toBe("ConditionalCheckFailedException");
  expect(await other.tryAcquire(key)).toBeDefined();
});

test("a release in the midst of a batch that hangs frees its lock and costs no other lease", async () => {
  const beater = table.client({ renewals: together(), dynamodb: patient });
  // Its answer tells the time: until then, an adopted lease is held once a renewal is confirmed.
  await beater.inspect(key);
  proxy.next(op("BatchExecuteStatement"), hang());
  const [first, second] = await table.leasesDueTogether(beater, [`${key}/0`, `${key}/1`], 300);
  await proxy.arrival(op("BatchExecuteStatement"));
  expect(await first?.release()).toBe(true);
  expect(await table.client().tryAcquire(`${key}/0`)).toBeDefined();
  expect(second?.held).toBe(true);
  expect(await second?.release()).toBe(true);
});

test("an acquire that hangs ends as a LeaseServiceError within the lease's duration", async () => {
  proxy.always(write, hang());
  const acquiring = client.acquire(key, { leaseDurationMs: 5_000 });
  const hasEnded = watch(acquiring);
  const failure = acquiring.catch((error: unknown) => error);
  await proxy.arrival(write);
  await clock.advance(4_999);
  expect(hasEnded()).toBe(false);
  await clock.advance(1);
  expect(await failure).toBeInstanceOf(LeaseServiceError);
  expect(await failure).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
});

test("an acquire that waits ends as a LeaseServiceError when its time is over, if every request hangs", async () => {
  proxy.always(anyRequest, hang());
  const refusal = expect(client.acquire(key, { waitMs: 500 })).rejects.toMatchObject({
    code: "LEASE_NO_ANSWER",
  });
  await proxy.arrival(write);
  // One request is given a second, whatever the patience.
  await clock.advance(1_000);
  await refusal;
});

test("an acquire that waits survives a request that hangs", async () => {
  proxy.next(write, hang());
  const acquiring = client.acquire(key, { leaseDurationMs: 5_000, waitMs: 60_000 });
  const hasEnded = watch(acquiring);
  await proxy.arrival(write);
  await clock.advance(5_000);
  await eventually(async () => {
    if (!hasEnded()) await clock.advance(100);
    expect(hasEnded()).toBe(true);
  });
  expect((await acquiring).held).toBe(true);
});

test("a waiter whose look at the lock hangs still gives up when its time is over", async () => {
  await other.acquire(key);
  proxy.always(op("GetItem"), hang());
  const waiting = client.acquire(key, { waitMs: 500, retry: { strategy: "fixed", delayMs: 50 } });
  const refusal = expect(waiting).rejects.toMatchObject({ name: "LeaseUnavailableError" });
  const attempt = await proxy.arrival(write);
  await eventually(() => expect(attempt.finishedAt).toBeDefined());
  await eventually(() => expect(clock.pending).toBe(1));
  await clock.advance(50);
  await proxy.arrival(op("GetItem"));
  await clock.advance(1_500);
  await refusal;
});

test("every call is bounded in time, though the user's own client has no timeouts", async () => {
  const lease = await client.acquire(key);
  proxy.reset();
  proxy.always(anyRequest, hang());
  const noAnswer = { code: "LEASE_NO_ANSWER" };
  const calls = [
    client.inspect(key),
    client.acquire(table.newKey()),
    adminOf(client).forceRelease(table.newKey(), { token: "anyone" }),
    adminOf(client).requestRevocation(table.newKey(), { token: "anyone" }),
    adminOf(client).list().next(),
    lease.renew(),
  ];
  const refusals = calls.map((call) => expect(call).rejects.toMatchObject(noAnswer));
  await proxy.arrival(anyRequest, calls.length);
  await clock.advance(10_000);
  await Promise.all(refusals);
  const releasing = expect(lease.release()).rejects.toMatchObject(noAnswer);
  await proxy.arrival(anyRequest, calls.length + 1);
  await clock.advance(10_000);
  await releasing;
});

test("createLeaseTable gives up when its time is over, though no answer comes", async () => {
  proxy.always(anyRequest, hang());
  const tableName = `leases-${crypto.randomUUID()}`;
  const creating = createLeaseTable({ tableName, dynamodb: patient, waitMs: 500, clock });
  const refusal = expect(creating).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  await proxy.arrival(anyRequest);
  await clock.advance(500);
  await refusal;
});

test("the client that is used where the user brings none asks again when an answer takes seconds", async () => {
  for (const [name, value] of Object.entries(environmentOf(proxy))) vi.stubEnv(name, value);
  try {
    const own = new DefaultClient({ tableName: table.tableName });
    // An earlier test's client may still repeat what has hung.
    const writesHere: Matcher = (request) => write(request) && request.body.Key.pk.S === key;
    proxy.next(writesHere, hang());
    const lease = await own.acquire(key);
    expect(proxy.requests.filter(writesHere)).toHaveLength(2);
    expect(await lease.release()).toBe(true);
  } finally {
    vi.unstubAllEnvs();
  }
});
