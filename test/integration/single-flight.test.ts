import { randomUUID } from "node:crypto";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable, LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import {
  CachedFailureError,
  SingleFlight,
  type SingleFlightOptions,
  TableCache,
} from "../../packages/client/src/entries/single-flight.ts";
import { singleFlightContract } from "../contract/single-flight-contract.ts";
import { controlled } from "../support/computations.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { eventually } from "../support/patience.ts";

const freshForMs = 60_000;

/** What the memory cannot vouch for: that the engine takes the expressions, and that real clocks and sockets do. */
describe(`single flight on ${inject("engine").name}`, () => {
  const tableName = `single-flight-${randomUUID()}`;
  let dynamodb: DynamoDBClient;
  const commands: string[] = [];

  beforeAll(async () => {
    dynamodb = new DynamoDBClient(inject("engine").clientConfig);
    dynamodb.middlewareStack.add(
      (next, { commandName }) =>
        (args) => {
          commands.push(String(commandName).replace("Command", ""));
          return next(args);
        },
      { step: "initialize", name: "counted" },
    );
    await createLeaseTable({ tableName, dynamodb });
  });
  afterAll(() => dynamodb?.destroy());

  const clientOf = (options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({ tableName, dynamodb, leaseDurationMs: 30_000, clockSkewMs: 100, ...options });
  const flights = (options: Partial<SingleFlightOptions> = {}): SingleFlight =>
    new SingleFlight(clientOf(), { freshForMs, ...options });
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  test("50 callers over 8 clients make 1 computation, which outlasts its lease", {
    tags: ["long"],
  }, async () => {
    const compute = vi.fn(async () => {
      await sleep(6_000);
      return { total: 42 };
    });
    const all = Array.from({ length: 8 }, () => flights({ leaseDurationMs: 5_000 }));
    const values = await Promise.all(
      Array.from({ length: 50 }, (_, index) => all[index % 8]?.getOrCompute("fifty", { compute })),
    );
    for (const value of values) expect(value).toEqual({ total: 42 });
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("a hit is 1 request, a miss 5, and 4 where the last entry is still the last", async () => {
    const shared = flights({ freshForMs: 50 });
    const counted = async (): Promise<string[]> => {
      commands.length = 0;
      await shared.getOrCompute("counted", { compute: () => "x".repeat(1_000) });
      return [...commands];
    };
    expect(await counted()).toEqual(["GetItem", "UpdateItem", "GetItem", "UpdateItem", "UpdateItem"]);
    await sleep(60);
    expect(await counted()).toEqual(["GetItem", "UpdateItem", "UpdateItem", "UpdateItem"]);
    await flights().getOrCompute("hit", { compute: () => 1 });
    commands.length = 0;
    expect(await flights().getOrCompute("hit", { compute: () => 2 })).toBe(1);
    expect(commands).toEqual(["GetItem"]);
  });

  test("a holder that stops renewing is replaced by exactly one other", async () => {
    // Long beside what a busy machine takes for an answer: a holder whose lease is over does not begin to compute.
    const dead = flights({ heartbeat: false, leaseDurationMs: 5_000 });
    const started = vi.fn(() => new Promise<string>(() => undefined));
    const caller = new AbortController();
    const gone = dead
      .getOrCompute("dead", { compute: started, signal: caller.signal })
      .catch(() => undefined);
    await eventually(() => expect(started).toHaveBeenCalled());
    const compute = vi.fn(async () => "rescued");
    const values = await Promise.all([1, 2, 3, 4].map(() => flights().getOrCompute("dead", { compute })));
    expect(values).toEqual(["rescued", "rescued", "rescued", "rescued"]);
    expect(compute).toHaveBeenCalledTimes(1);
    caller.abort();
    await gone;
  });

  test("an earlier holder's result does not replace a later one's; the same holder's may be repeated", async () => {
    const cache = new TableCache(clientOf());
    const entryOf = (value: string, fencingToken: number) => {
      const freshUntil = Date.now() + freshForMs;
      return { value, freshUntil, staleUntil: freshUntil, fencingToken };
    };
    expect(await cache.set("fenced", entryOf("second", 2), freshForMs, 2)).toBe(true);
    expect(await cache.set("fenced", entryOf("first", 1), freshForMs, 1)).toBe(false);
    expect(await cache.set("fenced", entryOf("second again", 2), freshForMs, 2)).toBe(true);
    expect(await cache.get("fenced")).toMatchObject({ value: "second again" });
  });

  test("an invalidation is 2 requests, and what was under way is not stored", async () => {
    await flights().getOrCompute("forgotten", { compute: () => "old" });
    commands.length = 0;
    await flights().invalidate("forgotten");
    expect(commands).toEqual(["GetItem", "UpdateItem"]);

    const { compute, run } = controlled();
    const before = flights().getOrCompute("forgotten", { compute });
    await eventually(() => expect(compute).toHaveBeenCalled());
    await flights().invalidate("forgotten");
    run(0).resolve("computed before");
    expect(await before).toBe("computed before");
    const shared = flights();
    const call = () => shared.getOrComputeWithSource("forgotten", { compute: () => "computed after" });
    expect(await call()).toEqual({ value: "computed after", source: "computation" });
    expect(await call()).toEqual({ value: "computed after", source: "cache" });
  });

  test("a result fills an item up to the limit", async () => {
    const value = "x".repeat(390 * 1024);
    const key = "k".repeat(2048);
    expect(await flights().getOrCompute(key, { compute: () => value })).toBe(value);
    expect(await flights().getOrCompute(key, { compute: () => "other" })).toBe(value);
  });

  test("a failure keeps an earlier value for 1 write, and for 2 lets it go where it was invalidated", async () => {
    const cache = new TableCache(clientOf());
    const options = { freshForMs: 1, staleForMs: 60_000, failureForMs: 1, staleOnError: false };
    const fail = async (meanwhile: () => Promise<void>): Promise<readonly string[]> => {
      await sleep(5);
      const compute = async (): Promise<string> => {
        await meanwhile();
        commands.length = 0;
        throw new Error("down");
      };
      await expect(flights(options).getOrCompute("kept", { compute })).rejects.toThrow("down");
      return [...commands];
    };
    await flights(options).getOrCompute("kept", { compute: () => "old" });
    // The last one is the release.
    expect(await fail(async () => undefined)).toEqual(["UpdateItem", "UpdateItem"]);
    expect(await cache.get("kept")).toMatchObject({ value: "old", failure: { message: "down" } });
    // As one that read the lock before this holder had it.
    const invalidate = async (): Promise<void> => {
      const fencingToken = ((await cache.get("kept"))?.fencingToken ?? 0) + 0.5;
      const mark = { freshUntil: 0, staleUntil: 0, fencingToken };
      expect(await cache.set("kept", mark, 60_000, fencingToken)).toBe(true);
    };
    expect(await fail(invalidate)).toEqual(["UpdateItem", "UpdateItem", "UpdateItem"]);
    const left = await cache.get("kept");
    expect(left).toMatchObject({ failure: { message: "down" } });
    expect(left).not.toHaveProperty("value");
  });

  test("a failure reaches other processes for as long as it is kept", async () => {
    const options = { failureForMs: 30_000 };
    const compute = vi.fn(async () => {
      await sleep(300);
      throw new Error("down");
    });
    const failures = [1, 2].map(() =>
      flights(options)
        .getOrCompute("failing", { compute })
        .catch((error: unknown) => error),
    );
    const [one, two] = await Promise.all(failures);
    expect(compute).toHaveBeenCalledTimes(1);
    expect([one, two].filter((error) => error instanceof CachedFailureError)).toHaveLength(1);
  });
});

describe("the two levels of single flight on an engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  singleFlightContract((clock) => engine.place(clock));
});
