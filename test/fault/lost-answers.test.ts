import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { eventually, patienceMs } from "../support/patience.ts";
import { op, startProxy } from "../support/proxy.ts";
import { cutAnswer, errorIn, failWith, hold, loseAnswer } from "../support/proxy-behaviours.ts";
import { makeTable, sdkClient } from "../support/table.ts";

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const retrying = sdkClient(proxy);
const once = sdkClient(proxy, { maxAttempts: 1 });
/** Loses the answers that the proxy loses, and asks again by itself. */
const client = table.client({ dynamodb: retrying });
/** Loses the answers that the proxy loses, for good. */
const strict = table.client({ dynamodb: once });
/** Goes past the proxy. */
const other = table.client();
const write = op("UpdateItem");
let key: string;

beforeEach(() => {
  key = table.newKey();
  proxy.reset();
});
afterAll(async () => {
  retrying.destroy();
  once.destroy();
  table.close();
  await proxy.close();
});

describe("an answer is lost after the write has landed, and the SDK asks again", () => {
  test("acquire succeeds and holds", async () => {
    proxy.next(write, loseAnswer());
    const lease = await client.acquire(key);
    expect(proxy.count("UpdateItem")).toBe(2);
    expect(lease.held).toBe(true);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
    expect(await other.tryAcquire(key)).toBeUndefined();
  });

  test("acquire succeeds when two answers in a row are lost", async () => {
    proxy.next(write, loseAnswer(), 2);
    const lease = await client.acquire(key);
    expect(proxy.count("UpdateItem")).toBe(3);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("acquire succeeds when a transaction is in the way of the repetition", async () => {
    proxy.next(write, loseAnswer());
    proxy.next(write, failWith("TransactionConflictException"));
    const lease = await client.acquire(key);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("a takeover succeeds and holds", async () => {
    const dead = await table.deadLease(key);
    proxy.next((request) => write(request) && proxy.count("UpdateItem") === 2, loseAnswer());
    const lease = await client.acquire(key);
    expect(proxy.count("UpdateItem")).toBe(3);
    expect(lease.fencingToken).toBe(dead.fencingToken + 1);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("renew succeeds", async () => {
    const lease = await client.acquire(key);
    const before = lease.expiresAt;
    proxy.next(write, loseAnswer());
    await lease.renew();
    expect(lease.expiresAt).toBeGreaterThanOrEqual(before);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("release says true, and the lock is free", async () => {
    const lease = await client.acquire(key);
    proxy.next(write, loseAnswer());
    expect(await lease.release()).toBe(true);
    expect(await other.inspect(key)).toBeUndefined();
    expect(await other.tryAcquire(key)).toBeDefined();
  });

  test("release says true even if somebody else has the lock before the SDK asks again", async () => {
    const lease = await client.acquire(key);
    proxy.next(write, async (exchange) => {
      await exchange.forward();
      await other.acquire(key, { owner: "the next one" });
      exchange.drop();
    });
    expect(await lease.release()).toBe(true);
    expect(await other.inspect(key)).toMatchObject({ owner: "the next one" });
  });

  test("release says true, and the lock is in its cooldown, if it has one", async () => {
    const lease = await client.acquire(key, { lockAtLeastForMs: 20_000 });
    proxy.next(write, loseAnswer());
    expect(await lease.release()).toBe(true);
    expect(await other.inspect(key)).toMatchObject({ inCooldown: true });
    expect(await other.tryAcquire(key)).toBeUndefined();
  });

  test("forceRelease says true", async () => {
    const { token } = await other.acquire(key);
    proxy.next(write, loseAnswer());
    expect(await adminOf(client).forceRelease(key, { token })).toBe(true);
  });

  test.for([
    ["and the SDK asks again", retrying],
    ["for good", once],
  ] as const)("a heartbeat's batch whose answer is lost, %s, costs no lease", async ([, dynamodb]) => {
    const events: LeaseEvent[] = [];
    const beater = table.client({ renewals: together(), dynamodb, onEvent: (event) => events.push(event) });
    // Its answer tells the time: until then, an adopted lease is held once a renewal is confirmed.
    await beater.inspect(key);
    proxy.next(op("BatchExecuteStatement"), loseAnswer());
    const keys = [0, 1, 2].map((index) => `${key}/${index}`);
    const leases = await table.leasesDueTogether(beater, keys, 100);
    await eventually(() => expect(events.filter(({ type }) => type === "renewed").length).toBeGreaterThan(5));
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    for (const lease of leases) {
      expect(lease.held).toBe(true);
      expect(await lease.release()).toBe(true);
    }
  });
});

describe("an answer is lost for good", () => {
  test("an acquire that ends without an answer leaves nothing half-held", async () => {
    proxy.next(write, loseAnswer());
    await expect(strict.acquire(key)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
    expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
  });

  test("a takeover that ends without an answer leaves nothing half-held", async () => {
    await table.deadLease(key);
    proxy.next((request) => write(request) && proxy.count("UpdateItem") === 2, loseAnswer());
    await expect(strict.acquire(key)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
  });

  test("an acquire that waits recognises its own write on its next attempt", async () => {
    proxy.next(write, loseAnswer());
    const lease = await strict.acquire(key, { waitMs: patienceMs });
    expect(lease.held).toBe(true);
    const record = await other.inspect(key);
    expect(record).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
    await lease.release();
    expect((await other.acquire(key)).fencingToken).toBe(lease.fencingToken + 1);
  });

  test("a takeover that waits recognises its own write on its next attempt", async () => {
    const dead = await table.deadLease(key);
    proxy.next((request) => write(request) && proxy.count("UpdateItem") === 2, loseAnswer());
    const lease = await strict.acquire(key, { waitMs: patienceMs });
    expect(lease.fencingToken).toBe(dead.fencingToken + 1);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("an acquire whose answer breaks off in the middle leaves nothing half-held", async () => {
    proxy.next(write, cutAnswer());
    await expect(strict.acquire(key)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
    expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
  });

  test("an acquire that waits recognises its own write behind an answer that breaks off", async () => {
    proxy.next(write, cutAnswer());
    const lease = await strict.acquire(key, { waitMs: patienceMs });
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("a renewal rejects, the lease stands, and the next renewal succeeds", async () => {
    const lease = await strict.acquire(key);
    const before = lease.expiresAt;
    proxy.next(write, loseAnswer());
    await expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(lease.held).toBe(true);
    expect(lease.expiresAt).toBe(before);
    await lease.renew();
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
  });

  test("a release rejects, the lock is free, and the next release says true", async () => {
    const lease = await strict.acquire(key);
    proxy.next(write, loseAnswer());
    await expect(lease.release()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(lease.held).toBe(false);
    expect(await other.inspect(key)).toBeUndefined();
    expect(await lease.release()).toBe(true);
  });

  test.for(["AccessDeniedException", "ValidationException"])(
    "an acquire whose first answer is lost and whose repetition ends with %s leaves nothing half-held",
    async (name) => {
      proxy.next(write, loseAnswer());
      proxy.next(write, failWith(name));
      await expect(client.acquire(key)).rejects.toMatchObject({ mayHaveLanded: true });
      expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
    },
  );
});

describe("an acquire that its caller gives up in mid-flight", () => {
  test("leaves nothing half-held if its write lands", async () => {
    const abort = new AbortController();
    proxy.next(write, async (exchange) => {
      await exchange.forward();
      abort.abort(new Error("enough"));
    });
    await expect(client.acquire(key, { signal: abort.signal })).rejects.toThrow("enough");
    expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
  });

  test("is refused if its request arrives after it was cancelled", async () => {
    const abort = new AbortController();
    const late = hold();
    proxy.next(write, late);
    const acquiring = client.acquire(key, { signal: abort.signal });
    await proxy.arrival(write);
    abort.abort(new Error("enough"));
    await expect(acquiring).rejects.toThrow("enough");
    const cancel = await proxy.arrival(write, 2);
    await eventually(() => expect(cancel.finishedAt).toBeDefined());
    expect(errorIn(await late.letGo())).toBe("ConditionalCheckFailedException");
    expect(await other.inspect(key)).toBeUndefined();
  });

  test("is refused if it is a takeover whose request arrives after it was cancelled", async () => {
    await table.deadLease(key);
    const abort = new AbortController();
    const late = hold();
    proxy.next((request) => write(request) && proxy.count("UpdateItem") === 2, late);
    const acquiring = client.acquire(key, { signal: abort.signal });
    await proxy.arrival(write, 2);
    abort.abort(new Error("enough"));
    await expect(acquiring).rejects.toThrow("enough");
    // One write takes it back if it has landed; the other keeps it from landing.
    const cancel = await proxy.arrival(write, 4);
    await eventually(() => expect(cancel.finishedAt).toBeDefined());
    expect(errorIn(await late.letGo())).toBe("ConditionalCheckFailedException");
    expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
  });
});

describe("a copy of a request that arrives late", () => {
  test("does not take the lock again if it is an acquire whose lease has been released", async () => {
    const lease = await client.acquire(key);
    const acquire = await proxy.arrival(write);
    await lease.release();
    expect(errorIn(await proxy.replay(acquire))).toBe("ConditionalCheckFailedException");
    expect(await other.inspect(key)).toBeUndefined();
  });

  test("does not take the lock again if it is a takeover whose lease has been released", async () => {
    await table.deadLease(key);
    const lease = await client.acquire(key);
    const takeover = await proxy.arrival(write, 2);
    await lease.release();
    expect(errorIn(await proxy.replay(takeover))).toBe("ConditionalCheckFailedException");
    expect(await other.inspect(key)).toBeUndefined();
  });

  test("does not take the lock again if it is an acquire of a later holder's predecessor", async () => {
    const lease = await client.acquire(key);
    const acquire = await proxy.arrival(write);
    await lease.release();
    const next = await other.acquire(key);
    expect(errorIn(await proxy.replay(acquire))).toBe("ConditionalCheckFailedException");
    expect(await other.inspect(key)).toMatchObject({ token: next.token });
  });

  test("does not free the lock if it is a release of a holder before", async () => {
    const lease = await client.acquire(key);
    await lease.release();
    const release = await proxy.arrival(write, 2);
    const next = await other.acquire(key);
    expect(errorIn(await proxy.replay(release))).toBe("ConditionalCheckFailedException");
    expect(await other.inspect(key)).toMatchObject({ token: next.token });
  });

  test("does not shorten a newer renewal if it is an older one", async () => {
    const lease = await client.acquire(key);
    await lease.renew();
    await lease.renew();
    const older = await proxy.arrival(write, 2);
    expect(errorIn(await proxy.replay(older))).toBe("ConditionalCheckFailedException");
    expect(await other.inspect(key)).toMatchObject({ expiresAt: lease.expiresAt });
  });

  test("does not shorten a newer renewal if the older one has only now got through", async () => {
    const lease = await strict.acquire(key, { leaseDurationMs: 8_000, heartbeat: 300 });
    const late = hold();
    proxy.reset();
    proxy.next(write, late);
    const newer = await proxy.arrival(write, 2);
    await eventually(() => expect(newer.finishedAt).toBeDefined());
    const { expiresAt } = (await other.inspect(key)) ?? {};
    expect(errorIn(await late.letGo())).toBe("ConditionalCheckFailedException");
    expect((await other.inspect(key))?.expiresAt).toBeGreaterThanOrEqual(expiresAt ?? Number.NaN);
    expect(lease.held).toBe(true);
    expect(await lease.release()).toBe(true);
  });
});
