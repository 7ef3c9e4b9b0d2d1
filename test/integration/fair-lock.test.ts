import { randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { FairLock } from "../../packages/client/src/entries/fair.ts";
import { fairLockContract } from "../contract/fair-lock-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { patienceMs } from "../support/patience.ts";

describe(`fair locks on ${inject("engine").name}`, () => {
  let engine: EnginePlace;
  let tableName: string;
  let dynamodb: DynamoDBClient;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
    ({ tableName, dynamodb } = engine);
  });
  afterAll(() => engine.close());

  fairLockContract((clock) => engine.place(clock));

  const lockOf = (owner: string, key: string): FairLock =>
    new FairLock(
      new LeaseClient({ tableName, dynamodb, owner, leaseDurationMs: 5_000, clockSkewMs: 100 }),
      key,
    );

  it("acquires and releases in one UpdateItem each, and joins the queue with one more", async () => {
    const key = `requests/${randomUUID()}`;
    engine.sent.length = 0;
    const lease = await lockOf("a", key).acquire();
    expect(engine.sent).toEqual(["UpdateItem"]);
    const { promise: joined, resolve } = Promise.withResolvers<void>();
    const waiting = lockOf("b", key).acquire({ waitMs: patienceMs, onPosition: () => resolve() });
    await joined;
    expect(engine.sent).toEqual(["UpdateItem", "UpdateItem", "UpdateItem"]);
    await lease.release();
    await (await waiting).release();
  });

  it("lets 24 contenders of their own clients in, one at a time, in the order of their tickets", async () => {
    const key = `contenders/${randomUUID()}`;
    const first = await lockOf("first", key).acquire({ heartbeat: true });
    let inside = 0;
    const served: string[] = [];
    const contenders = Array.from({ length: 24 }, (_, contender) =>
      lockOf(`${contender}`, key).withLease({ waitMs: patienceMs, heartbeat: true }, async ({ owner }) => {
        inside += 1;
        expect(inside).toBe(1);
        served.push(owner);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inside -= 1;
      }),
    );
    let order: string[] = [];
    while (order.length < 24) {
      order = (await lockOf("observer", key).inspect()).waiting.map(({ owner }) => owner);
    }
    await first.release();
    await Promise.all(contenders);
    expect(served).toEqual(order);
  });
});
