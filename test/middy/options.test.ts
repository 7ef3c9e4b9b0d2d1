import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { fair } from "@leasehold/client/fair";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { type LeaseLockOptions, leased, leaseLock } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { afterEach, describe, expect, test, vi } from "vitest";
import { bench } from "./support.ts";

afterEach(() => vi.unstubAllEnvs());

const client = new LeaseClient({ store: new MemoryLeaseStore() });

function refusal(options: unknown): InvalidOptionsError {
  try {
    leaseLock(options as LeaseLockOptions);
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

describe("refused at once", () => {
  test.each<[string, unknown, string]>([
    ["no table", { key: "k" }, "tableName"],
    ["no key", { client }, "key"],
    ["an unknown option", { client, key: "k", lockAtMost: 1 }, "options.lockAtMost"],
    ["no object", "k", "options"],
    ["an empty key", { client, key: "" }, "key"],
    ["a key that is no text", { client, key: 7 }, "key"],
    ["a client that is none", { client: {}, key: "k" }, "client"],
    ["a store that is none", { store: null, key: "k" }, "store"],
    ["a store beside a client", { store: new MemoryLeaseStore(), client, key: "k" }, "store"],
    ["a store beside a table", { store: new MemoryLeaseStore(), tableName: "leases", key: "k" }, "store"],
    ["another word for whenHeld", { client, key: "k", whenHeld: "queue" }, "whenHeld"],
    ["a time in words", { client, key: "k", lockAtMostForMs: "1 min" }, "lockAtMostForMs"],
    ["a negative time", { client, key: "k", lockAtLeastForMs: -1 }, "lockAtLeastForMs"],
    [
      "a longer least than most",
      { client, key: "k", lockAtMostForMs: 1, lockAtLeastForMs: 2 },
      "lockAtLeastForMs",
    ],
    ["a slow heartbeat", { client, key: "k", lockAtMostForMs: 1000, heartbeat: 500 }, "heartbeat"],
    ["a heartbeat of 0", { client, key: "k", heartbeat: 0 }, "heartbeat"],
    ["replace without a heartbeat", { client, key: "k", whenHeld: "replace", heartbeat: false }, "heartbeat"],
    ["an order without waiting", { client, key: "k", order: fair() }, "order"],
    ["an order that is none", { client, key: "k", whenHeld: "wait", order: 1 }, "order"],
    ["once as a text", { client, key: "k", once: "true" }, "once"],
    ["a table's name that cannot be", { tableName: "?", key: "k" }, "tableName"],
    [
      "resume beside once, which never takes over a living run",
      { client, key: "k", resume: true, once: true },
      "resume",
    ],
    ["resume beside a function as once", { client, key: "k", resume: true, once: () => "slot" }, "resume"],
    ["a resume that is no yes or no", { client, key: "k", resume: "true" }, "resume"],
    ["metrics: true", { client, key: "k", metrics: true }, "metrics"],
    ["a listener that a client would not call", { client, key: "k", onEvent: () => undefined }, "onEvent"],
    ["a dimension of metrics that are not written", { client, key: "k", keyDimension: true }, "keyDimension"],
    ["a dimension that is none", { tableName: "leases", key: "k", keyDimension: 1 }, "keyDimension"],
    [
      "a dimension beside Metrics that have their own",
      { tableName: "leases", key: "k", keyDimension: true, metrics: { addMetric: () => undefined } },
      "keyDimension",
    ],
    ["metrics that are no Metrics", { tableName: "leases", key: "k", metrics: {} }, "metrics"],
    ["a list with something that is no listener", { tableName: "leases", key: "k", onEvent: [1] }, "onEvent"],
  ])("%s", (_, options, option) => {
    expect(refusal(options).option).toBe(option);
  });

  test.each<[keyof typeof environmentNames, string]>([
    ["whenHeld", "sometimes"],
    ["lockAtMostForMs", "1m"],
    ["lockAtLeastForMs", "-5"],
    ["heartbeatMs", "often"],
    ["once", "yes"],
  ])("an environment with an impossible %s", (name, value) => {
    vi.stubEnv(environmentNames[name], value);
    expect(refusal({ client, key: "k" }).option).toBe(environmentNames[name]);
  });
});

describe("the environment", () => {
  test("gives every setting that the options leave out", async () => {
    const b = bench();
    vi.stubEnv(environmentNames.tableName, "table-of-env");
    vi.stubEnv(environmentNames.key, "key-of-env");
    vi.stubEnv(environmentNames.job, "job-of-env");
    vi.stubEnv(environmentNames.whenHeld, "throw");
    vi.stubEnv(environmentNames.once, "true");
    vi.stubEnv(environmentNames.lockAtMostForMs, "7000");
    vi.stubEnv(environmentNames.lockAtLeastForMs, "7000");
    vi.stubEnv(environmentNames.heartbeatMs, "3499");
    const lines: string[] = [];
    const app = leased(
      { client: b.client, clock: b.clock, metrics: (line) => lines.push(line) },
      (_, __, lock) => lock.lease.toJSON(),
    );
    const event = { scheduledTime: "2026-11-21T10:00:00Z" };
    const handle = await app(event, b.context());
    expect(handle).toMatchObject({
      key: "key-of-env",
      leaseDurationMs: 7000,
      slot: "2026-11-21T10:00:00.000Z",
    });
    expect(await b.other.tryAcquire("key-of-env")).toBeUndefined();
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      Table: b.store.tableName,
      Job: "job-of-env",
      JobSucceeded: 1,
    });
    await expect(app({ time: "2026-11-21T10:01:00Z" }, b.context())).rejects.toMatchObject({
      name: "LeaseUnavailableError",
    });
  });

  test.each(["heartbeatMs", "once"] as const)("may say false as %s", async (name) => {
    const b = bench();
    vi.stubEnv(environmentNames[name], "false");
    const app = leased({ client: b.client, clock: b.clock, key: "k" }, () => b.clock.advance(100_000));
    await app({}, b.context(900_000));
    expect(b.store.requests.length > 2).toBe(name === "once");
  });

  test("yields to the options", async () => {
    const b = bench();
    vi.stubEnv(environmentNames.key, "key-of-env");
    vi.stubEnv(environmentNames.once, "true");
    const app = leased(
      { client: b.client, clock: b.clock, key: "mine", once: false },
      (_, __, lock) => lock.lease.key,
    );
    expect(await app({}, b.context())).toBe("mine");
  });

  test("suffices: leaseLock() needs no options", () => {
    vi.stubEnv(environmentNames.tableName, "leases");
    vi.stubEnv(environmentNames.key, "k");
    vi.stubEnv("AWS_REGION", "eu-central-1");
    expect(Object.keys(leaseLock())).toEqual(["before", "after", "onError"]);
  });
});

const answering = (left: unknown) => ({ getRemainingTimeInMillis: () => left });
test.each<[string, unknown, string]>([
  ["a response stream", { write: () => true }, "context"],
  ["none", undefined, "context"],
  ["a text", "context", "context"],
  ["that has a symbol for its request", { awsRequestId: Symbol("r") }, "context.awsRequestId"],
  ["that has null for its function", { functionName: null }, "context.functionName"],
  ["that has a number for its time", { getRemainingTimeInMillis: 7 }, "context.getRemainingTimeInMillis"],
  ...[null, "30000", Number.NaN, 2 ** 53].map((left): [string, unknown, string] => [
    `that has ${left} ms left`,
    answering(left),
    "context.getRemainingTimeInMillis's answer",
  ]),
])("a context is refused by name, before anything is sent: %s", async (_, context, option) => {
  const b = bench();
  const app = leased(b.options, () => "ran");
  await expect(app({}, context as Context)).rejects.toMatchObject({ option });
  expect(b.store.requests).toEqual([]);
});

test.each([0, -1, 0.5])("with %d ms left a handler runs under its lock all the same", async (left) => {
  const b = bench();
  const app = leased(b.options, (_, __, { lease }) => lease.held);
  expect(await app({}, answering(left) as unknown as Context)).toBe(true);
  expect(await b.holder()).toBeUndefined();
});

test("a function as once that gives no slot is refused, before anything is sent: the handler would run each time", async () => {
  const b = bench();
  const app = leased({ ...b.options, once: () => undefined as never }, () => "ran");
  await expect(app({}, b.context())).rejects.toMatchObject({ option: "slot" });
  expect(b.store.requests).toEqual([]);
});

test("a leased handler declares two parameters: Lambda refuses to run one that takes a callback since Node.js 24", () => {
  expect(leased({ client, key: "k" }, () => "ran")).toHaveLength(2);
});
