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
