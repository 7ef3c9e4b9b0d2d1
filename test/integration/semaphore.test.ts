import { randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Semaphore } from "../../packages/client/src/entries/semaphore.ts";
import { semaphoreContract } from "../contract/semaphore-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { patienceMs } from "../support/patience.ts";

describe(`semaphores on ${inject("engine").name}`, () => {
  let engine: EnginePlace;
  let tableName: string;
  let dynamodb: DynamoDBClient;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
    ({ tableName, dynamodb } = engine);
  });
  afterAll(() => engine.close());

  semaphoreContract((clock) => engine.place(clock));

  it("acquires, renews and releases in one UpdateItem each", async () => {
    const client = new LeaseClient({ tableName, dynamodb });
    const semaphore = new Semaphore(client, `requests/${randomUUID()}`, { permits: 4 });
    engine.sent.length = 0;
    const lease = await semaphore.acquire();
    await lease.renew();
    await lease.release();
    expect(engine.sent).toEqual(["UpdateItem", "UpdateItem", "UpdateItem"]);
  });

  it("lets 32 contenders of their own clients in, never more than 4 at once, each exactly once", async () => {
    const key = `contenders/${randomUUID()}`;
    let inside = 0;
    let most = 0;
    let done = 0;
    const fences: number[] = [];
    const contend = async (contender: number): Promise<void> => {
      const client = new LeaseClient({ tableName, dynamodb, owner: `contender ${contender}` });
      const semaphore = new Semaphore(client, key, { permits: 4 });
      const retry = { strategy: "fullJitter", delayMs: 40, maxDelayMs: 200 } as const;
      await semaphore.withPermit({ waitMs: patienceMs, retry }, async (lease) => {
        inside += 1;
        most = Math.max(most, inside);
        fences.push(lease.fencingToken);
        await new Promise((resolve) => setTimeout(resolve, 10));
        inside -= 1;
        done += 1;
      });
    };
    await Promise.all(Array.from({ length: 32 }, (_, contender) => contend(contender)));
    expect(done).toBe(32);
    expect(most).toBeLessThanOrEqual(4);
    expect(most).toBeGreaterThan(1);
    expect(new Set(fences).size).toBe(32);
    const state = await new Semaphore(new LeaseClient({ tableName, dynamodb }), key, {
      permits: 4,
    }).inspect();
    expect(state).toEqual({ permits: 4, held: [], free: 4 });
  });

  it.each([1, 4])("of 32 who try at the same time, exactly %i get a permit of as many", async (permits) => {
    const key = `race/${randomUUID()}`;
    const contenders = Array.from(
      { length: 32 },
      (_, index) =>
        new Semaphore(new LeaseClient({ tableName, dynamodb, owner: `${index}` }), key, { permits }),
    );
    for (let round = 0; round < 3; round += 1) {
      const results = await Promise.all(contenders.map((contender) => contender.tryAcquire()));
      const leases = results.filter((lease) => lease !== undefined);
      expect(leases).toHaveLength(permits);
      expect(new Set(leases.map((lease) => lease.fencingToken)).size).toBe(permits);
      await Promise.all(leases.map((lease) => lease.release()));
    }
  });

  it("passes hundreds of leases that are over for one caller that needs all of their permits", async () => {
    const client = new LeaseClient({ tableName, dynamodb, clockSkewMs: 100 });
    const semaphore = new Semaphore(client, `many/${randomUUID()}`, { permits: 250 });
    await Promise.all(Array.from({ length: 250 }, () => semaphore.acquire({ leaseDurationMs: 4_000 })));
    const whole = await semaphore.acquire({ permits: 250, waitMs: patienceMs });
    expect(await semaphore.inspect()).toMatchObject({ free: 0, held: [{ token: whole.token }] });
  });

  it("lets 32 calls of one process in at once through one object, and the 33rd not", async () => {
    const client = new LeaseClient({ tableName, dynamodb });
    const semaphore = new Semaphore(client, `process/${randomUUID()}`, { permits: 32 });
    engine.sent.length = 0;
    const leases = await Promise.all(Array.from({ length: 32 }, () => semaphore.acquire()));
    expect(engine.sent).toHaveLength(32);
    expect(await semaphore.tryAcquire()).toBeUndefined();
    await Promise.all(leases.map((lease) => lease.release()));
  });
});
