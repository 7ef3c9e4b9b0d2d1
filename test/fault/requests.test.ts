import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { availableEngines, startEngine } from "@leasehold/engine";
import { afterAll, beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { eventually, patienceMs } from "../support/patience.ts";
import { op, startProxy } from "../support/proxy.ts";
import { failWith } from "../support/proxy-behaviours.ts";
import { bentClock, makeTable, sdkClient } from "../support/table.ts";

const engines = await availableEngines();
const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const dynamodb = sdkClient(proxy);
const client = table.client({ dynamodb });
/** Goes past the proxy, and is not counted. */
const other = table.client();
let key: string;

beforeEach(() => {
  key = table.newKey();
  proxy.reset();
});
afterAll(async () => {
  dynamodb.destroy();
  table.close();
  await proxy.close();
});

describe("counted on the wire", () => {
  test("acquiring a lock that never was costs one write", async () => {
    await client.acquire(key);
    expect(proxy.operations).toEqual(["UpdateItem"]);
  });

  test("acquiring a released lock costs one write", async () => {
    await (await other.acquire(key)).release();
    await client.acquire(key);
    expect(proxy.operations).toEqual(["UpdateItem"]);
  });

  test("trying a held lock costs one write", async () => {
    const holder = await other.acquire(key, { owner: "the holder" });
    await expect(client.acquire(key)).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
      holder: "the holder",
      expiresAt: holder.expiresAt,
    });
    expect(proxy.operations).toEqual(["UpdateItem"]);
  });

  test("taking over an expired lock costs two writes", async () => {
    const dead = await table.deadLease(key);
    const lease = await client.acquire(key);
    expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
    expect(lease.fencingToken).toBeGreaterThan(dead.fencingToken);
  });

  test("renewing costs one write", async () => {
    const lease = await client.acquire(key);
    proxy.reset();
    await lease.renew();
    expect(proxy.operations).toEqual(["UpdateItem"]);
  });

  test("renewals at the same time share one write", async () => {
    const lease = await client.acquire(key);
    proxy.reset();
    await Promise.all([lease.renew(), lease.renew(), lease.renew()]);
    expect(proxy.operations).toEqual(["UpdateItem"]);
  });

  test("releasing costs one write, however often it is asked for", async () => {
    const lease = await client.acquire(key);
    proxy.reset();
    expect(await Promise.all([lease.release(), lease.release()])).toEqual([true, true]);
    expect(proxy.operations).toEqual(["UpdateItem"]);
  });

  test("a whole cycle of acquiring and releasing costs two writes", async () => {
    await client.withLease(key, {}, () => undefined);
    expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
  });

  test("inspecting costs one consistent read", async () => {
    await other.acquire(key);
    await client.inspect(key);
    expect(proxy.operations).toEqual(["GetItem"]);
    expect(proxy.requests[0]?.body).toMatchObject({ ConsistentRead: true });
  });

  test("waiting for a held lock costs reads that may lag, and no writes", async () => {
    await other.acquire(key);
    const waiting = client.acquire(key, { waitMs: 2_000, retry: { strategy: "fixed", delayMs: 50 } });
    await expect(waiting).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE" });
    const [first, ...looks] = proxy.requests;
    expect(first?.operation).toBe("UpdateItem");
    expect(looks.length).toBeGreaterThan(1);
    for (const look of looks) {
      expect(look).toMatchObject({ operation: "GetItem", body: { ConsistentRead: false } });
    }
  });

  test("a waiter that finds the lock free costs one more write", async () => {
    const holder = await other.acquire(key);
    const waiting = client.acquire(key, { waitMs: patienceMs, retry: { strategy: "fixed", delayMs: 20 } });
    await proxy.arrival(op("GetItem"), 2);
    await holder.release();
    await waiting;
    expect(proxy.count("UpdateItem")).toBe(2);
    expect(proxy.operations.at(-1)).toBe("UpdateItem");
  });

  test("a lease that is known to be lost costs nothing to release", async () => {
    const lease = await client.acquire(key);
    await adminOf(other).forceRelease(key, { token: lease.token });
    await expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
    proxy.reset();
    expect(await lease.release()).toBe(false);
    expect(proxy.operations).toEqual([]);
  });
});

function keysUnder(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}/${index}`);
}

describe("heartbeats counted on the wire", () => {
  test.for(engines)("ten leases that are due together, on %s", async (name) => {
    const engine = await startEngine({ engine: name });
    const [ownProxy, ownTable] = await Promise.all([startProxy(engine), makeTable(engine)]);
    const ownClient = sdkClient(ownProxy);
    onTestFinished(async () => {
      ownClient.destroy();
      ownTable.close();
      await ownProxy.close();
      await engine.stop();
    });
    let renewed = 0;
    const onEvent = ({ type }: LeaseEvent): void => {
      if (type === "renewed") renewed += 1;
    };
    const beater = ownTable.client({ renewals: together(), dynamodb: ownClient, onEvent });
    const leases = await ownTable.leasesDueTogether(beater, keysUnder("together", 10), 200);

    // A new engine's first answer to a batch can take longer than a renewal waits.
    await eventually(() => expect(renewed).toBeGreaterThanOrEqual(10));
    if (name === "dynamodb-local") {
      ownProxy.reset();
      await ownProxy.arrival(op("BatchExecuteStatement"), 3);
      expect(ownProxy.operations).toEqual(Array(3).fill("BatchExecuteStatement"));
      for (const { body } of ownProxy.requests) expect(body.Statements).toHaveLength(10);
    } else {
      // The engine does not speak the statement: one attempt, and single writes from then on.
      await ownProxy.arrival(op("UpdateItem"), 30);
      expect(ownProxy.count("BatchExecuteStatement")).toBe(1);
    }
    expect(leases.every((lease) => lease.held)).toBe(true);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(Array(10).fill(true));
  });

  test("without the permission for batches, single writes renew the leases, and a batch is tried again after a minute", async () => {
    proxy.always(op("BatchExecuteStatement"), failWith("AccessDeniedException"));
    const events: LeaseEvent[] = [];
    let laterMs = 0;
    const clock = bentClock({ monotonicMs: () => laterMs });
    const beater = table.client({
      renewals: together(),
      dynamodb,
      clock,
      onEvent: (event) => events.push(event),
    });
    const leases = await table.leasesDueTogether(beater, keysUnder(key, 10), 200, 600_000);
    const renewals = (): LeaseEvent[] => events.filter(({ type }) => type === "renewed");
    await eventually(() => expect(renewals().length).toBeGreaterThanOrEqual(20));
    expect(proxy.count("BatchExecuteStatement")).toBe(1);
    proxy.reset();
    laterMs = 60_000;
    await proxy.arrival(op("BatchExecuteStatement"), 2);
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(Array(10).fill(true));
  });

  test("one lease that is due alone is renewed by a single write", async () => {
    const [lease] = await table.leasesDueTogether(client, [key], 200);
    await proxy.arrival(op("UpdateItem"), 2);
    expect(proxy.count("BatchExecuteStatement")).toBe(0);
    expect(await lease?.release()).toBe(true);
  });

  test("a lease of a batch that somebody else has taken is lost, and the others are renewed", async () => {
    const lost: string[] = [];
    const renewed = new Set<string>();
    const beater = table.client({
      renewals: together(),
      dynamodb,
      onEvent: (event) => {
        if (event.type === "renewed") renewed.add(event.key);
        if (event.type === "lost") lost.push(event.key);
      },
    });
    const leases = await table.leasesDueTogether(beater, keysUnder(key, 3), 200);
    await adminOf(other).forceRelease(`${key}/1`, { token: leases[1]?.token ?? "" });
    await other.acquire(`${key}/1`, { owner: "the next one" });
    await eventually(() => expect(lost).toEqual([`${key}/1`]));
    // On a slow machine all of them may have been renewed before the release.
    renewed.clear();
    await eventually(() => expect(renewed).toEqual(new Set([`${key}/0`, `${key}/2`])));
    expect(leases.map((lease) => lease.held)).toEqual([true, false, true]);
    // A beat between the two writes finds the lease released, and nobody else's yet.
    expect(["taken", "released"]).toContain(leases[1]?.loss?.reason);
    await Promise.all(leases.map((lease) => lease.release()));
  });
});
