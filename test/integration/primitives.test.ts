// The contracts of the primitives on an engine, and what only an engine shows of them. documented-operations.test.ts counts
// their requests, and the torture plays contenders.
import { LeaseClient } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { SingleFlight } from "@leasehold/client/single-flight";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { operatorContract } from "../contract/operator-contract.ts";
import { primitiveContracts } from "../support/contracts.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { op, startProxy } from "../support/proxy.ts";
import { failWith, loseAnswer } from "../support/proxy-behaviours.ts";
import { makeTable, sdkClient, type TestTable } from "../support/table.ts";

const contracts = { ...primitiveContracts, operator: operatorContract };

describe.each(Object.entries(contracts))("%s on an engine", (_, contract) => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  contract((clock) => engine.place(clock));
});

describe("in real time on an engine", () => {
  let table: TestTable;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  const transaction = op("TransactWriteItems");
  const newKeys = (count: number): string[] => Array.from({ length: count }, table.newKey);

  beforeAll(async () => {
    proxy = await startProxy(inject("engine"));
    table = await makeTable(inject("engine"));
  });
  afterAll(async () => {
    table.close();
    await proxy.close();
  });

  it("a group of 100 keys is acquired, renewed and released", async () => {
    const group = await acquireAll(table.client(), newKeys(100));
    await group.renew();
    expect(await group.release()).toBe(true);
  });

  it("a group whose answer was lost is acquired all the same when the SDK asks again, for the service recognises the repetition", async () => {
    const dynamodb = sdkClient(proxy);
    const [one = "", two = ""] = newKeys(2);
    proxy.next(transaction, loseAnswer());
    const { token, fencingToken, expiresAt } = await acquireAll(table.client({ dynamodb }), [one, two]);
    expect(proxy.count("TransactWriteItems")).toBe(2);
    for (const key of [one, two])
      expect(await table.client().inspect(key)).toMatchObject({ token, fencingToken, expiresAt });
    dynamodb.destroy();
  });

  it("a group that meets other transactions is acquired by a repetition", async () => {
    const dynamodb = sdkClient(proxy, { maxAttempts: 1 });
    proxy.next(transaction, failWith("TransactionInProgressException"), 3);
    expect((await acquireAll(table.client({ dynamodb }), newKeys(2))).held).toBe(true);
    dynamodb.destroy();
  });

  it("the result of a computation fills an item up to the limit", async () => {
    const value = "x".repeat(390 * 1024);
    const key = "k".repeat(2048);
    const { tableName, dynamodb } = table;
    const flight = (): SingleFlight =>
      new SingleFlight(new LeaseClient({ tableName, dynamodb }), { freshForMs: 60_000 });
    expect(await flight().getOrCompute(key, { compute: () => value })).toBe(value);
    expect(await flight().getOrCompute(key, { compute: () => "other" })).toBe(value);
  });
});
