import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { acquireAll } from "../../packages/client/src/entries/group.ts";
import { groupContract } from "../contract/group-contract.ts";
import { adminOf } from "../support/admin.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { eventually, patienceMs } from "../support/patience.ts";
import { op, startProxy } from "../support/proxy.ts";
import { failWith, loseAnswer } from "../support/proxy-behaviours.ts";
import { makeTable, sdkClient, type TestTable } from "../support/table.ts";

describe("groups on an engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  groupContract((clock) => engine.place(clock));
});

describe("groups on an engine, in real time", () => {
  let table: TestTable;
  beforeAll(async () => {
    table = await makeTable(inject("engine"));
  });
  afterAll(() => table.close());

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    table.client({ owner, leaseDurationMs: 30_000, ...options });

  it("10 keys: 1 request on the wire to acquire them, 1 to renew them, 10 to release them", async () => {
    const dynamodb = sdkClient(inject("engine"));
    const sent: string[] = [];
    dynamodb.middlewareStack.add(
      (next, { commandName = "" }) =>
        (args) => {
          sent.push(commandName);
          return next(args);
        },
      { step: "deserialize", priority: "low", name: "count" },
    );
    const client = new LeaseClient({ tableName: table.tableName, dynamodb });
    const keys = Array.from({ length: 10 }, table.newKey);
    const group = await acquireAll(client, keys);
    expect(sent.splice(0)).toEqual(["TransactWriteItemsCommand"]);
    await group.renew();
    expect(sent.splice(0)).toEqual(["BatchExecuteStatementCommand"]);
    expect(await group.release()).toBe(true);
    expect(sent.splice(0)).toEqual(Array(10).fill("UpdateItemCommand"));
    await acquireAll(client, keys);
    expect(sent).toEqual(["TransactWriteItemsCommand"]);
    dynamodb.destroy();
  });

  it("100 keys are acquired, renewed and released", async () => {
    const keys = Array.from({ length: 100 }, table.newKey);
    const group = await acquireAll(clientOf("g"), keys);
    await group.renew();
    expect(await group.release()).toBe(true);
  });

  it("its condition checks hold a transaction to every key", async () => {
    const { TransactWriteItemsCommand } = await import("@aws-sdk/client-dynamodb");
    const [one, two] = [table.newKey(), table.newKey()];
    const group = await acquireAll(clientOf("g"), [one, two]);
    const write = () =>
      table.dynamodb.send(new TransactWriteItemsCommand({ TransactItems: group.conditionChecks() }));
    await write();
    await adminOf(clientOf("operator")).forceRelease(two, { token: group.token });
    await expect(write()).rejects.toThrow("ConditionalCheckFailed");
    await group.release();
  });

  it("two groups of the same keys in opposite orders take turns, and neither waits for ever", async () => {
    const keys = Array.from({ length: 6 }, table.newKey);
    let turns = 0;
    const worker = async (owner: string, order: readonly string[]): Promise<void> => {
      for (let turn = 0; turn < 15; turn += 1) {
        const retry = { strategy: "fullJitter", delayMs: 5, maxDelayMs: 40 } as const;
        const group = await acquireAll(clientOf(owner), order, { waitMs: patienceMs, retry });
        turns += 1;
        await group.release();
      }
    };
    await Promise.all([worker("up", keys), worker("down", [...keys].reverse())]);
    expect(turns).toBe(30);
  });

  it("16 contenders for overlapping groups never have two holders of a key, and all get their turn", async () => {
    const keys = Array.from({ length: 8 }, table.newKey);
    const holders = new Map<string, string>();
    const lastFence = new Map<string, number>();
    const faults: string[] = [];
    let most = 0;
    let turns = 0;
    const contender = async (owner: string): Promise<void> => {
      const client = clientOf(owner);
      for (let turn = 0; turn < 4; turn += 1) {
        const wanted = keys
          .map((key) => ({ key, rank: Math.random() }))
          .sort((one, other) => one.rank - other.rank)
          .slice(0, 1 + Math.floor(Math.random() * 3))
          .map(({ key }) => key);
        const retry = { strategy: "fullJitter", delayMs: 10, maxDelayMs: 100 } as const;
        const group = await acquireAll(client, wanted, { waitMs: patienceMs, retry });
        for (const key of wanted) {
          const holder = holders.get(key);
          if (holder !== undefined) faults.push(`${key} is held by ${holder} and ${owner}`);
          if (group.fencingToken <= (lastFence.get(key) ?? 0)) faults.push(`${key} has an old fencing token`);
          holders.set(key, owner);
          lastFence.set(key, group.fencingToken);
        }
        most = Math.max(most, new Set(holders.values()).size);
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (!group.held) faults.push(`${owner} lost its group`);
        for (const key of wanted) holders.delete(key);
        await group.release();
        turns += 1;
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, index) => contender(`contender-${index}`)));
    expect(faults).toEqual([]);
    expect(turns).toBe(64);
    // Groups that share no key do not keep each other out.
    expect(most).toBeGreaterThan(1);
  });

  it("groups and single leases exclude each other", async () => {
    const [one, two] = [table.newKey(), table.newKey()];
    const single = await clientOf("single").acquire(two);
    await expect(acquireAll(clientOf("g"), [one, two])).rejects.toMatchObject({ held: [{ key: two }] });
    await single.release();
    const group = await acquireAll(clientOf("g"), [one, two]);
    expect(await clientOf("single").tryAcquire(one)).toBeUndefined();
    expect(group.fencingToken).toBeGreaterThan(single.fencingToken);
    await group.release();
  });
});

describe("a group whose answers are lost on the wire", () => {
  let table: TestTable;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  const transaction = op("TransactWriteItems");
  beforeAll(async () => {
    proxy = await startProxy(inject("engine"));
    table = await makeTable(inject("engine"));
  });
  afterAll(async () => {
    table.close();
    await proxy.close();
  });

  it("is acquired all the same when the SDK asks again, for the repetition is recognised by the service", async () => {
    const dynamodb = sdkClient(proxy);
    const keys = [table.newKey(), table.newKey()];
    proxy.next(transaction, loseAnswer());
    const group = await acquireAll(table.client({ dynamodb }), keys);
    expect(proxy.count("TransactWriteItems")).toBe(2);
    for (const key of keys) {
      expect(await table.client().inspect(key)).toMatchObject({
        token: group.token,
        fencingToken: group.fencingToken,
        expiresAt: group.expiresAt,
      });
    }
    await group.release();
    dynamodb.destroy();
  });

  it("is taken back when nobody asks again", async () => {
    const dynamodb = sdkClient(proxy, { maxAttempts: 1 });
    const keys = [table.newKey(), table.newKey(), table.newKey()];
    proxy.next(transaction, loseAnswer());
    await expect(acquireAll(table.client({ dynamodb }), keys)).rejects.toMatchObject({
      code: "LEASE_NO_ANSWER",
    });
    await eventually(async () => {
      const group = await acquireAll(table.client(), keys);
      await group.release();
    });
    dynamodb.destroy();
  });

  it("is repeated when it meets other transactions", async () => {
    const dynamodb = sdkClient(proxy, { maxAttempts: 1 });
    proxy.next(transaction, failWith("TransactionInProgressException"), 3);
    const group = await acquireAll(table.client({ dynamodb }), [table.newKey(), table.newKey()]);
    expect(group.held).toBe(true);
    await group.release();
    dynamodb.destroy();
  });
});
