import { randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { ReadWriteLock } from "../../packages/client/src/entries/read-write.ts";
import { readWriteContract } from "../contract/read-write-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { patienceMs } from "../support/patience.ts";

describe(`read-write locks on ${inject("engine").name}`, () => {
  let engine: EnginePlace;
  let tableName: string;
  let dynamodb: DynamoDBClient;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
    ({ tableName, dynamodb } = engine);
  });
  afterAll(() => engine.close());

  readWriteContract((clock) => engine.place(clock));

  it("reads, writes and releases with one UpdateItem each", async () => {
    const lock = new ReadWriteLock(new LeaseClient({ tableName, dynamodb }), `requests/${randomUUID()}`);
    engine.sent.length = 0;
    await (await lock.read()).release();
    await (await lock.write()).release();
    expect(engine.sent).toEqual(Array(4).fill("UpdateItem"));
  });

  it("lets 24 readers and 8 writers of their own clients in, each once, and no writer beside anybody", async () => {
    const key = `contenders/${randomUUID()}`;
    const inside = { read: 0, write: 0 };
    const done = { read: 0, write: 0 };
    const faults: string[] = [];
    const fences: number[] = [];
    let together = 0;
    const contend = async (contender: number): Promise<void> => {
      const kind = contender % 4 === 3 ? "write" : "read";
      const lock = new ReadWriteLock(new LeaseClient({ tableName, dynamodb, owner: `${contender}` }), key);
      const retry = { strategy: "fullJitter", delayMs: 40, maxDelayMs: 200 } as const;
      const lease = await lock[kind]({ waitMs: patienceMs, retry });
      inside[kind] += 1;
      if (inside.write > 1 || (inside.write > 0 && inside.read > 0)) faults.push(JSON.stringify(inside));
      together = Math.max(together, inside.read);
      if (kind === "write") fences.push(lease.fencingToken);
      await new Promise((resolve) => setTimeout(resolve, 20));
      inside[kind] -= 1;
      done[kind] += 1;
      await lease.release();
    };
    await Promise.all(Array.from({ length: 32 }, (_, contender) => contend(contender)));
    expect(faults).toEqual([]);
    expect(done).toEqual({ read: 24, write: 8 });
    expect(together).toBeGreaterThan(1);
    expect(fences).toEqual([...new Set(fences)].sort((one, other) => one - other));
    const state = await new ReadWriteLock(new LeaseClient({ tableName, dynamodb }), key).inspect();
    expect(state).toEqual({ writer: undefined, readers: [] });
  });

  it("a writer gets in while readers keep coming", async () => {
    const key = `stream/${randomUUID()}`;
    let isOver = false;
    let reads = 0;
    const stream = Array.from({ length: 6 }, async () => {
      const lock = new ReadWriteLock(new LeaseClient({ tableName, dynamodb }), key);
      while (!isOver) {
        const lease = await lock.tryRead();
        if (lease !== undefined) reads += 1;
        await new Promise((resolve) => setTimeout(resolve, 30));
        await lease?.release();
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const writer = new ReadWriteLock(new LeaseClient({ tableName, dynamodb }), key);
    const retry = { strategy: "fixed", delayMs: 50 } as const;
    for (let count = 0; count < 5; count += 1) {
      const startedAt = performance.now();
      const lease = await writer.write({ waitMs: patienceMs, retry });
      expect(performance.now() - startedAt).toBeLessThan(patienceMs / 4);
      expect(lease.held).toBe(true);
      await lease.release();
    }
    isOver = true;
    await Promise.all(stream);
    expect(reads).toBeGreaterThan(5);
  });
});
