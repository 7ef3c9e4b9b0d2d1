import { randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { FairLock } from "../../packages/client/src/entries/fair.ts";
import { fairLockContract } from "../contract/fair-lock-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { patienceMs } from "../support/patience.ts";
import { messageFrom, startScript } from "../support/processes.ts";
import type { FairWaiterConfig } from "./fixtures/fair-waiter.ts";

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

  it("passes over a process that was killed while it waited, and takes over from one that was killed while it held", {
    tags: ["long"],
  }, async () => {
    const key = `killed/${randomUUID()}`;
    const { clientConfig } = inject("engine");
    const first = await lockOf("first", key).acquire({ heartbeat: true });
    const start = (owner: string): ReturnType<typeof startScript> => {
      const config: FairWaiterConfig = { clientConfig, tableName, key, owner, holdMs: 600_000 };
      return startScript(new URL("fixtures/fair-waiter.ts", import.meta.url), config, { ipc: true });
    };
    const holder = start("holder");
    try {
      expect(await messageFrom<string>(holder)).toBe("waiting");
      const waiter = start("waiter");
      try {
        expect(await messageFrom<string>(waiter)).toBe("waiting");
        const last = lockOf("last", key).acquire({ waitMs: patienceMs });
        waiter.kill("SIGKILL");
        await first.release();
        expect(await messageFrom<string>(holder)).toBe("holding");
        holder.kill("SIGKILL");
        const lease = await last;
        expect(lease.held).toBe(true);
        expect((await lockOf("observer", key).inspect()).waiting).toEqual([]);
      } finally {
        waiter.kill("SIGKILL");
      }
    } finally {
      holder.kill("SIGKILL");
    }
  });
});
