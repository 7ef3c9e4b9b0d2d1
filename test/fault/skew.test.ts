import type { LeaseClient, LeaseEvent } from "@leasehold/client";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { anyRequest, startProxy } from "../support/proxy.ts";
import { removeDate, shiftDate } from "../support/proxy-behaviours.ts";
import { bentClock, makeTable, sdkClient } from "../support/table.ts";

const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const dynamodb = sdkClient(proxy);
const minutes = 60_000;
const leaseDurationMs = 30_000;
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

const clock = bentClock({ monotonicMs: () => watchedMs });

function observer(clockSkewMs: number): LeaseClient {
  return table.client({
    dynamodb,
    clock,
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
  watchedMs += 10_000;
  const lease = await client.acquire(key);
  expect(lease.fencingToken).toBe(dead.fencingToken + 1);
  expect(eventsOf("takeover")).toMatchObject([{ ground: "observation", from: { owner: "the dead holder" } }]);
}

describe("where the service's clock is far beyond the allowance", () => {
  test.for([
    ["ahead", 10 * minutes],
    ["behind", -10 * minutes],
  ] as const)(
    "%s, a dead lock is taken over by observation alone, and the skew is reported",
    async ([, offset]) => {
      proxy.always(anyRequest, shiftDate(offset));
      await expectTakeoverByObservationAlone(observer(500));
      const [skew, ...more] = eventsOf("skew");
      expect(skew).toMatchObject({ clockSkewMs: 500 });
      expect(skew?.offsetMinMs).toBeLessThanOrEqual(offset);
      expect(skew?.offsetMaxMs).toBeGreaterThanOrEqual(offset);
      // One report a minute is enough.
      expect(more).toEqual([]);
    },
  );

  test("a waiter takes a dead lock over as soon as it has watched it for a whole lease", async () => {
    proxy.always(anyRequest, shiftDate(10 * minutes));
    await table.deadLease(key, 1_000);
    const start = performance.now();
    await observer(500).acquire(key, { waitMs: 20_000 });
    expect(performance.now() - start).toBeGreaterThanOrEqual(1_000);
    expect(eventsOf("takeover")).toMatchObject([{ ground: "observation" }]);
  });

  test("a renewal in between starts the observation anew", async () => {
    proxy.always(anyRequest, shiftDate(10 * minutes));
    const client = observer(500);
    const holder = await table.client({ leaseDurationMs }).acquire(key);
    expect(await client.tryAcquire(key)).toBeUndefined();
    watchedMs += leaseDurationMs - 10_000;
    await holder.renew();
    watchedMs += 10_000;
    expect(await client.tryAcquire(key)).toBeUndefined();
    watchedMs += leaseDurationMs;
    expect(await client.tryAcquire(key)).toBeDefined();
  });

  test("a takeover is defeated by a renewal that comes between the refusal and the takeover", async () => {
    proxy.always(anyRequest, shiftDate(10 * minutes));
    const client = observer(500);
    const holder = await table.client({ leaseDurationMs }).acquire(key);
    expect(await client.tryAcquire(key)).toBeUndefined();
    watchedMs += leaseDurationMs;
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

test("without a Date header, a dead lock is taken over by observation alone, and no skew is reported", async () => {
  proxy.always(anyRequest, removeDate());
  await expectTakeoverByObservationAlone(observer(500));
  expect(eventsOf("skew")).toEqual([]);
});

test("with an infinite allowance, a dead lock is taken over by observation alone", async () => {
  await expectTakeoverByObservationAlone(observer(Number.POSITIVE_INFINITY));
  expect(eventsOf("skew")).toEqual([]);
});

test.for([2_000, -2_000])(
  "with the service's clock off by %i ms, within the allowance, a dead lock is taken over at once",
  async (offset) => {
    proxy.always(anyRequest, shiftDate(offset));
    await table.deadLease(key, leaseDurationMs);
    await observer(5_000).acquire(key);
    expect(eventsOf("takeover")).toMatchObject([{ ground: "wallClock" }]);
    expect(eventsOf("skew")).toEqual([]);
  },
);

test("a lease that ended less than the allowance ago is not taken over by wall clock", async () => {
  await table.deadLease(key, leaseDurationMs);
  expect(await observer(2 * minutes).tryAcquire(key)).toBeUndefined();
  expect(await observer(minutes / 2).tryAcquire(key)).toBeDefined();
});
