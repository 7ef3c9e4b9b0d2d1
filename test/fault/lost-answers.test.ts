import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { afterAll, beforeEach, describe, expect, inject, test } from "vitest";
import { eventually, patienceMs } from "../support/patience.ts";
import { op, startProxy } from "../support/proxy.ts";
import { cutAnswer, failWith, loseAnswer } from "../support/proxy-behaviours.ts";
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

  test("acquire succeeds when a transaction is in the way of the repetition", async () => {
    proxy.next(write, loseAnswer());
    proxy.next(write, failWith("TransactionConflictException"));
    const lease = await client.acquire(key);
    expect(await other.inspect(key)).toMatchObject({ token: lease.token, expiresAt: lease.expiresAt });
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
  test.for([
    ["is lost", loseAnswer],
    ["breaks off in the middle", cutAnswer],
  ] as const)("an acquire whose answer %s leaves nothing half-held", async ([, behaviour]) => {
    proxy.next(write, behaviour());
    await expect(strict.acquire(key)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
    expect((await other.acquire(key, { waitMs: patienceMs })).held).toBe(true);
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
