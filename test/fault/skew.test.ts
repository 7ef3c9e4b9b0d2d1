import type { LeaseClient, LeaseEvent } from "@leasehold/client";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { anyRequest, startProxy } from "../support/proxy.ts";
import { removeDate } from "../support/proxy-behaviours.ts";
import { bentClock, makeTable, sdkClient } from "../support/table.ts";

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const dynamodb = sdkClient(proxy);
const minutes = 60_000;
const leaseDurationMs = 30_000;
/** A lease has to be watched for this much longer, for clocks whose rates differ. */
const marginMs = leaseDurationMs / 400;
/** What the tests add to the observer's monotonic clock, so as not to wait. */
let watchedMs: number;
let events: LeaseEvent[];
let key: string;

beforeEach(() => {
  watchedMs = 0;
  events = [];
  key = table.newKey();
  proxy.reset();
});
afterAll(async () => {
  dynamodb.destroy();
  table.close();
  await proxy.close();
});

const hours = 60 * minutes;

/** A client whose wall clock is wrong by so much, and whose monotonic clock the test moves on. */
function observer(clockSkewMs: number, wallMs = 0): LeaseClient {
  return table.client({
    dynamodb,
    clock: bentClock({ wallMs, monotonicMs: () => watchedMs }),
    clockSkewMs,
    leaseDurationMs: 4 * minutes,
    onEvent: (event) => events.push(event),
  });
}

function eventsOf<Type extends LeaseEvent["type"]>(type: Type): Extract<LeaseEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<LeaseEvent, { type: Type }> => event.type === type);
}

async function expectTakeoverByObservationAlone(client: LeaseClient): Promise<void> {
  const dead = await table.deadLease(key, leaseDurationMs);
  expect(await client.tryAcquire(key)).toBeUndefined();
  watchedMs += leaseDurationMs - 10_000;
  expect(await client.tryAcquire(key)).toBeUndefined();
  watchedMs += 10_000 + marginMs;
  const lease = await client.acquire(key);
  expect(lease.fencingToken).toBe(dead.fencingToken + 1);
  expect(eventsOf("takeover")).toMatchObject([{ reason: "observation", from: { owner: "the dead holder" } }]);
}

describe("where the caller's wall clock is wrong", () => {
  test.for([3 * hours, -3 * hours])(
    "by %i ms, it takes over no living lock, a dead one at the first call, and says so once",
    async (wallMs) => {
      const client = observer(500, wallMs);
      const living = await table.client({ leaseDurationMs }).acquire(key);
      expect(await client.tryAcquire(key)).toBeUndefined();
      expect(await living.release()).toBe(true);

      const other = table.newKey();
      await table.deadLease(other, leaseDurationMs);
      await observer(500, wallMs).acquire(other);
      expect(eventsOf("takeover")).toMatchObject([{ reason: "serviceClock" }]);

      const [skew] = eventsOf("skew");
      expect(skew).toMatchObject({ clockSkewMs: 500 });
      expect(skew?.offsetMinMs).toBeLessThanOrEqual(-wallMs);
      expect(skew?.offsetMaxMs).toBeGreaterThanOrEqual(-wallMs);
      await client.tryAcquire(key);
      // One report a minute and client is enough.
      expect(eventsOf("skew")).toHaveLength(2);
    },
  );

  test.for([3 * hours, -3 * hours])(
    "by %i ms, its first lease ends for others when it ends for itself, and later ones cost 1 request",
    async (wallMs) => {
      const clockSkewMs = 500;
      const client = observer(clockSkewMs, wallMs);
      const lease = await client.acquire(key, { leaseDurationMs });
      const seen = await table.client().inspect(key);
      expect(lease.held).toBe(true);
      // Others add the allowance, of which its holder uses a half.
      expect(seen?.expiresAt).toBeGreaterThanOrEqual(
        Date.now() + lease.remainingMs() - clockSkewMs / 2 - 100,
      );
      expect(seen?.expiresAt).toBeLessThanOrEqual(Date.now() + leaseDurationMs + 5_000);
      expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
      await client.acquire(table.newKey());
      expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem", "UpdateItem"]);
    },
  );
});

test("a wall clock that is right costs 1 request from the first acquisition on", async () => {
  const client = observer(500);
  const lease = await client.acquire(key, { leaseDurationMs });
  expect(lease.remainingMs()).toBeGreaterThan(leaseDurationMs / 2);
  await client.acquire(table.newKey());
  expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
  expect(eventsOf("skew")).toEqual([]);
});

describe("where the service does not tell its time", () => {
  beforeEach(() => proxy.always(anyRequest, removeDate()));

  test("a dead lock is taken over by observation alone, and no skew is reported", async () => {
    await expectTakeoverByObservationAlone(observer(500));
    expect(eventsOf("skew")).toEqual([]);
  });

  test("a takeover is defeated by a renewal that comes between the refusal and the takeover", async () => {
    const client = observer(500);
    const holder = await table.client({ leaseDurationMs }).acquire(key);
    expect(await client.tryAcquire(key)).toBeUndefined();
    watchedMs += leaseDurationMs + marginMs;
    proxy.reset();
    proxy.next(anyRequest, async (exchange) => {
      const refusal = await exchange.forward();
      await holder.renew();
      exchange.reply(refusal);
    });
    expect(await client.tryAcquire(key)).toBeUndefined();
    expect(proxy.operations).toEqual(["UpdateItem", "UpdateItem"]);
    expect(await holder.release()).toBe(true);
  });
});
