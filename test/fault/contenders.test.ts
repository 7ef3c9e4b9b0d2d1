import type { Lease } from "@leasehold/client";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { patienceMs } from "../support/patience.ts";
import { makeTable } from "../support/table.ts";

const table = await makeTable(inject("engine"));
const contenders = Array.from({ length: 32 }, (_, index) => table.client({ owner: `contender ${index}` }));

beforeAll(async () => {
  // All 32 have a connection before the race begins.
  await Promise.all(contenders.map((contender) => contender.inspect("warm-up")));
});
afterAll(() => table.close());

/** Lets everybody try at the same time, and gives those who got in. */
async function race(key: string): Promise<Lease[]> {
  const results = await Promise.all(contenders.map((contender) => contender.tryAcquire(key)));
  return results.filter((lease) => lease !== undefined);
}

test("of 32 who try at the same time, one gets a lock that never was", async () => {
  expect(await race(table.newKey())).toHaveLength(1);
});

test("of 32 who try at the same time, one gets a released lock, with a larger fencing token each time", async () => {
  const key = table.newKey();
  let last = 0;
  for (let round = 0; round < 10; round += 1) {
    const winners = await race(key);
    expect(winners).toHaveLength(1);
    for (const winner of winners) {
      expect(winner.fencingToken).toBeGreaterThan(last);
      last = winner.fencingToken;
      expect(await winner.release()).toBe(true);
    }
  }
});

test("of 32 who try at the same time, one gets an expired lock, with a larger fencing token each time", async () => {
  for (let round = 0; round < 10; round += 1) {
    const key = table.newKey();
    const dead = await table.deadLease(key);
    const winners = await race(key);
    expect(winners).toHaveLength(1);
    expect(winners[0]?.fencingToken).toBe(dead.fencingToken + 1);
  }
});

test("32 who wait for the same lock get it one after the other, with strictly growing fencing tokens", async () => {
  const key = table.newKey();
  const tokens: number[] = [];
  let inside = 0;
  await Promise.all(
    contenders.map((contender) =>
      contender.withLease(
        key,
        { waitMs: patienceMs, retry: { strategy: "fullJitter", delayMs: 20, maxDelayMs: 100 } },
        async (lease) => {
          inside += 1;
          expect(inside).toBe(1);
          tokens.push(lease.fencingToken);
          await new Promise((resolve) => setTimeout(resolve, 5));
          inside -= 1;
        },
      ),
    ),
  );
  expect(tokens).toHaveLength(32);
  expect(new Set(tokens).size).toBe(32);
  expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
});
