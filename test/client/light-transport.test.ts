import { getEventListeners } from "node:events";
import { gzipSync } from "node:zlib";
import { LeaseConfigurationError, LeaseServiceError, LeaseTableError } from "@leasehold/client";
import { LeaseClient, type LightStoreOptions, lightStore } from "@leasehold/client/light";
import { ManualClock } from "@leasehold/client/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  type Reaction,
  refuse,
  type ScriptedServer,
  say,
  startScriptedServer,
} from "../support/scripted-server.ts";

let server: ScriptedServer;
const stores: { destroy(): void }[] = [];

beforeAll(async () => {
  server = await startScriptedServer();
});
afterEach(() => {
  for (const store of stores.splice(0)) store.destroy();
});
afterAll(() => server.close());

const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
/** Without jitter, and without a wait between attempts. */
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0 };

function newStore(options: Partial<LightStoreOptions> = {}) {
  const store = lightStore({
    tableName: "leases",
    endpoint: server.url,
    region: "eu-central-1",
    credentials,
    randomness,
    ...options,
  });
  stores.push(store);
  return store;
}

interface Call {
  readonly signal: AbortSignal;
  readonly isCurrent: () => boolean;
  readonly timed: () => (time: unknown) => void;
  readonly times: unknown[];
}

function newCall(signal = new AbortController().signal, isCurrent = () => true): Call {
  const times: unknown[] = [];
  return { signal, isCurrent, timed: () => (time) => times.push(time), times };
}

const write = {
  key: { pk: "k", sk: "lease" },
  update: "SET #a = :a",
  condition: "attribute_not_exists(#a)",
  names: { "#a": "a" },
  values: { ":a": 1, ":b": "zwei €" },
  returnsItem: false,
};
const read = { key: write.key, consistent: true };

describe("a request", () => {
  it("is DynamoDB's own JSON, signed, on one connection for all", async () => {
    server.script(say({ Attributes: { a: { N: "1" } } }), say({}));
    const store = newStore();
    const before = server.connections();
    expect(await store.update({ ...write, returnsItem: true }, newCall())).toEqual({
      applied: true,
      item: { a: 1 },
      retried: false,
    });
    expect(await store.get(read, newCall())).toBeUndefined();
    expect(server.connections() - before).toBe(1);
    const [update, get] = server.requests;
    expect(JSON.parse(update?.body ?? "")).toEqual({
      TableName: "leases",
      Key: { pk: { S: "k" }, sk: { S: "lease" } },
      UpdateExpression: "SET #a = :a",
      ConditionExpression: "attribute_not_exists(#a)",
      ExpressionAttributeNames: { "#a": "a" },
      ExpressionAttributeValues: { ":a": { N: "1" }, ":b": { S: "zwei €" } },
      ReturnValues: "ALL_NEW",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    expect(update?.headers).toMatchObject({
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": "DynamoDB_20120810.UpdateItem",
      "content-length": String(Buffer.byteLength(update?.body ?? "")),
      authorization: expect.stringMatching(
        /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-central-1\/dynamodb\/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-target, Signature=[\da-f]{64}$/,
      ),
    });
    expect(get?.headers["x-amz-target"]).toBe("DynamoDB_20120810.GetItem");
    expect(update?.method).toBe("POST");
  });

  it("goes over the connections of the first ones, which were sent at the same time", async () => {
    server.script(say({}));
    const store = newStore();
    const before = server.connections();
    for (let round = 0; round < 3; round += 1) {
      await Promise.all([store.get(read, newCall()), store.get(read, newCall())]);
    }
    expect(server.connections() - before).toBe(2);
  });

  it("that waited for a connection and lost it may have landed", async () => {
    const served: (() => void)[] = [];
    const serveLater: Reaction = (...answer) => void served.push(() => say({})(...answer));
    // 50 is the most connections at one time: the last request waits for one of them.
    const first = Array.from({ length: 50 }, () => serveLater);
    server.script(...first, (response) => response.destroy());
    const store = newStore({ maxAttempts: 1 });
    const calls = first.map(() => store.update(write, newCall()));
    const last = store.update(write, newCall()).catch((error: unknown) => error);
    await vi.waitUntil(() => served.length === 50);
    served[0]?.();
    expect(await last).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
    for (const serve of served.slice(1)) serve();
    await Promise.all(calls);
  });

  it("of a transaction has the same token in every copy, and another in the next transaction", async () => {
    server.script(refuse("InternalServerError", 500), say({}));
    const store = newStore();
    const entry = { ...write, action: "delete" } as const;
    expect(await store.transact([entry], newCall())).toMatchObject({ applied: true, retried: true });
    await store.transact([entry], newCall());
    const tokens = server.requests.map(({ body }) => JSON.parse(body).ClientRequestToken);
    expect(tokens[0]).toMatch(/^[\da-f-]{36}$/);
    expect(tokens[1]).toBe(tokens[0]);
    expect(tokens[2]).not.toBe(tokens[0]);
  });
});

it("a call whose signal has aborted before anything was sent rejects, and the process goes on", async () => {
  server.script(say({}));
  const call = newCall(AbortSignal.abort(new Error("cut off")));
  const failure = { code: "LEASE_NO_ANSWER", message: expect.stringContaining("cut off") };
  const store = newStore();
  await expect(store.update(write, call)).rejects.toMatchObject(failure);
  await expect(store.get(read, call)).rejects.toMatchObject(failure);
  expect(server.requests).toEqual([]);
});

describe("an error of DynamoDB's", () => {
  it("is repeated where it passes, and the result says so", async () => {
    for (const [name, status] of [
      ["InternalServerError", 500],
      ["ServiceUnavailable", 503],
      ["GatewayTimeout", 504],
      ["ProvisionedThroughputExceededException", 400],
      ["ThrottlingException", 400],
      ["RequestLimitExceeded", 400],
      ["TransactionConflictException", 400],
      ["ReplicatedWriteConflictException", 400],
    ] as const) {
      server.script(refuse(name, status), say({}));
      expect(await newStore().update(write, newCall())).toEqual({
        applied: true,
        item: undefined,
        retried: true,
      });
      expect(server.requests).toHaveLength(2);
    }
  });

  it.each([
    ["ResourceNotFoundException", 400, LeaseTableError, "LEASE_TABLE_NOT_FOUND"],
    ["AccessDeniedException", 400, LeaseConfigurationError, "LEASE_ACCESS_DENIED"],
    ["UnrecognizedClientException", 400, LeaseConfigurationError, "LEASE_ACCESS_DENIED"],
    ["ValidationException", 400, LeaseServiceError, "LEASE_REQUEST_REJECTED"],
  ])("%s is not repeated", async (name, status, type, code) => {
    server.script(refuse(name, status));
    const failure = await newStore()
      .update(write, newCall())
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(type);
    expect(failure).toMatchObject({ code, mayHaveLanded: false });
    expect(server.requests).toHaveLength(1);
  });

  it("names where it was asked", async () => {
    server.script(refuse("ResourceNotFoundException"));
    await expect(newStore().get(read, newCall())).rejects.toThrow(
      `"leases" in the region eu-central-1 at ${server.url}: table not found`,
    );
  });

  it("ends the call after four attempts", async () => {
    server.script(refuse("InternalServerError", 500));
    await expect(newStore().update(write, newCall())).rejects.toMatchObject({
      code: "LEASE_SERVICE_FAILED",
      mayHaveLanded: true,
    });
    expect(server.requests).toHaveLength(4);
  });

  it("is waited out by a share of a time that doubles, on the clock that was given", async () => {
    const delays: number[] = [];
    const clock = instantClock(delays);
    const half = { ...randomness, fraction: () => 0.5 };
    server.script(refuse("InternalServerError", 500));
    await newStore({ clock, randomness: half })
      .get(read, newCall())
      .catch(() => undefined);
    server.script(refuse("ThrottlingException"));
    await newStore({ clock, randomness: half })
      .get(read, newCall())
      .catch(() => undefined);
    // The fetch of credentials is bounded by 5 s.
    expect(delays.filter((delayMs) => delayMs !== 5_000)).toEqual([25, 50, 100, 250, 500, 1_000]);
  });

  it("that counts up what is no number names the item and its attribute", async () => {
    const message = "An operand in the update expression has an incorrect data type";
    server.script(say({ __type: "x#ValidationException", message }, 400));
    const update = "SET #fence = if_not_exists(#fence, :from) + :one, #left = #left - :one, #a = :a";
    await expect(newStore().update({ ...write, update }, newCall())).rejects.toMatchObject({
      name: "LeaseItemError",
      message: expect.stringMatching(/"k".*\bfence or left\b/),
    });
    server.script(say({ __type: "x#ValidationException", message: "no" }, 400));
    await expect(newStore().update({ ...write, update }, newCall())).rejects.toMatchObject({
      code: "LEASE_REQUEST_REJECTED",
    });
  });

  it("of a transaction that has met another write is repeated", async () => {
    const CancellationReasons = [{ Code: "TransactionConflict" }];
    server.script(say({ __type: "x#TransactionCanceledException", CancellationReasons }, 400), say({}));
    const entry = { ...write, action: "check" } as const;
    expect(await newStore().transact([entry], newCall())).toMatchObject({ applied: true, retried: true });
  });
});

const hostile: readonly [string, Reaction, string][] = [
  ["a page of a proxy's", html(200), "LEASE_NO_ANSWER"],
  ["JSON of a proxy's", say({}, 200, { "content-type": "application/json" }), "LEASE_NO_ANSWER"],
  [
    "JSON of a proxy's, with attributes",
    say({ Attributes: {} }, 200, { "content-type": "application/json" }),
    "LEASE_NO_ANSWER",
  ],
  ["a proxy's page of an error", html(502), "LEASE_SERVICE_FAILED"],
  ["a proxy's refusal", html(403), "LEASE_REQUEST_REJECTED"],
  ["nothing but a status", (response) => void response.writeHead(204).end(), "LEASE_NO_ANSWER"],
  [
    "a redirection",
    (response) => void response.writeHead(301, { location: "https://example.com/" }).end(),
    "LEASE_REQUEST_REJECTED",
  ],
  [
    "compressed",
    (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("{}")),
    "LEASE_NO_ANSWER",
  ],
  ["half a JSON", (response) => void response.end('{"Attributes": {"a"'), "LEASE_NO_ANSWER"],
  ["no object", say(["Attributes"]), "LEASE_NO_ANSWER"],
  ["a number", say(7), "LEASE_NO_ANSWER"],
  ["null", say(null), "LEASE_NO_ANSWER"],
  ["attributes that are none", say({ Attributes: "x", Item: 5, Items: {} }), "LEASE_NO_ANSWER"],
  [
    "an item in it that is none",
    say({ Attributes: { a: null }, Item: { a: null }, Items: [{ a: null }] }),
    "LEASE_NO_ANSWER",
  ],
  ["an error without a name", say({ message: "no" }, 400), "LEASE_REQUEST_REJECTED"],
  [
    "an error with reasons that are none",
    say({ __type: "x#TransactionCanceledException", CancellationReasons: 5 }, 400),
    "LEASE_REQUEST_REJECTED",
  ],
  ["a reset", (response) => void response.destroy(), "LEASE_NO_ANSWER"],
  [
    "a reset in the midst of it",
    (response) => {
      response.writeHead(200, { "content-length": "1000" }).write('{"Attributes":');
      setImmediate(() => response.destroy());
    },
    "LEASE_NO_ANSWER",
  ],
  [
    "a connection that ends in the midst of chunks",
    (response) => {
      response.writeHead(200).write("{}");
      setImmediate(() => response.socket?.end());
    },
    "LEASE_NO_ANSWER",
  ],
  ["more than DynamoDB ever says", endless(), "LEASE_NO_ANSWER"],
];

function html(status: number): Reaction {
  return (response) =>
    void response.writeHead(status, { "content-type": "text/html" }).end("<html><body>Sign in</body></html>");
}

function endless(): Reaction {
  const chunk = Buffer.alloc(1024 * 1024, " ");
  return (response) => {
    response.on("error", () => undefined);
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  };
}

describe.each(hostile)("where the answer is %s", (_name, reaction, code) => {
  const store = () => newStore({ maxAttempts: 2 });

  it.each([
    ["a write", () => store().update({ ...write, returnsItem: true }, newCall())],
    ["a transaction", () => store().transact([{ ...write, action: "delete" }], newCall())],
    ["a read", () => store().get(read, newCall())],
    ["a query", () => store().query({ ...write, keyCondition: "#a = :a", consistent: true }, newCall())],
  ])("%s rejects with an error that says what came", async (_kind, call) => {
    server.script(reaction);
    const failure = await call().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseServiceError);
    expect(failure).toMatchObject({ code });
  });

  it("and the next attempt gets the service's answer, where that can help", async () => {
    if (code === "LEASE_REQUEST_REJECTED") return;
    server.script(reaction, say({ Attributes: { a: { N: "1" } } }));
    const result = await store().update({ ...write, returnsItem: true }, newCall());
    expect(result).toEqual({ applied: true, item: { a: 1 }, retried: true });
  });

  it("an acquire rejects, and nothing is held", async () => {
    server.script(reaction);
    const client = new LeaseClient({ store: store() });
    await expect(client.acquire("k")).rejects.toMatchObject({ code });
    expect(client.held()).toEqual([]);
    // What takes the acquisition back meets the same.
    await client.close().catch(() => undefined);
  });
});

it.each([
  ["a type of its own", { "content-type": "application/x-amz-json-1.1" }],
  ["no type, but a request's id", { "content-type": "", "x-amzn-requestid": "1" }],
])("an engine's answer with %s counts", async (_, headers) => {
  server.script(say({}, 200, headers));
  expect(await newStore().update(write, newCall())).toMatchObject({ applied: true });
});

it("an answer that is not DynamoDB's is shown by its beginning", async () => {
  server.script(html(403));
  await expect(newStore().get(read, newCall())).rejects.toThrow(
    /request rejected .*status 403, text\/html, 33 characters that begin with "<html><body>Sign in/,
  );
});

it("an answer without what it cannot lack is none", async () => {
  server.script(say({ status: "ok" }));
  const store = newStore({ maxAttempts: 1 });
  const query = { keyCondition: "#a = :a", names: {}, values: {}, consistent: true };
  const calls: (() => Promise<unknown>)[] = [
    () => store.update({ ...write, returnsItem: true }, newCall()),
    () => store.query(query, newCall()),
    () => store.scan({ filter: "#a = :a", names: {}, values: {} }, newCall()),
  ];
  for (const call of calls) await expect(call()).rejects.toThrow(/the answer has no (Attributes|Items)/);
  expect(await store.updateMany([write], newCall())).toMatchObject([{ code: "LEASE_NO_ANSWER" }]);
});

describe("time", () => {
  it.each([
    ["RequestTimeTooSkewed", 3],
    ["InvalidSignatureException", -5],
    ["RequestExpired", -30 * 24],
  ])(
    "of a clock that is hours off is corrected by the Date, and signed again at once: %s",
    async (name, hours) => {
      const clock = new ManualClock(Date.now() + hours * 3_600_000);
      const date = new Date().toUTCString();
      server.script(refuse(name, 403, { date }), say({}, 200, { date }));
      const store = newStore({ clock });
      expect(await store.update(write, newCall())).toMatchObject({ applied: true, retried: true });
      await store.get(read, newCall());
      expect(server.requests).toHaveLength(3);
      const signedFor = server.requests.map(({ headers }) => timeOf(headers["x-amz-date"]));
      expect(Math.abs((signedFor[0] ?? 0) - clock.now())).toBeLessThan(1_000);
      for (const at of signedFor.slice(1)) expect(Math.abs(at - Date.parse(date))).toBeLessThan(2_000);
    },
  );

  it("that is right is no reason to repeat a refused signature", async () => {
    server.script(refuse("InvalidSignatureException", 400, { date: new Date().toUTCString() }));
    await expect(newStore().get(read, newCall())).rejects.toMatchObject({ code: "LEASE_ACCESS_DENIED" });
    expect(server.requests).toHaveLength(1);
  });
});

describe("the caller's time", () => {
  it("ends a call to a host that never answers, and the write may have landed", async () => {
    server.script(() => undefined);
    const controller = new AbortController();
    const writing = newStore().update(write, newCall(controller.signal));
    await arrival();
    controller.abort(new LeaseServiceError("LEASE_NO_ANSWER", "no answer within 5 ms"));
    await expect(writing).rejects.toMatchObject({
      code: "LEASE_NO_ANSWER",
      mayHaveLanded: true,
      message: expect.stringContaining("no answer within 5 ms"),
    });
  });

  it("ends a wait for the next attempt, and the last refusal says why", async () => {
    const controller = new AbortController();
    const clock = new ManualClock(Date.now());
    server.script(refuse("ThrottlingException"));
    const patient = { ...randomness, fraction: () => 0.9 };
    const writing = newStore({ clock, randomness: patient }).update(write, newCall(controller.signal));
    writing.catch(() => undefined);
    await arrival();
    // The answer is read before the abort.
    await new Promise((resolve) => setTimeout(resolve, 50));
    controller.abort(new Error("no answer within 5 ms"));
    await expect(writing).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
    expect(server.requests).toHaveLength(1);
  });

  it("that is over already sends nothing", async () => {
    server.script(say({}));
    const isOld = newCall(new AbortController().signal, () => false);
    await expect(newStore().update(write, isOld)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(server.requests).toHaveLength(0);
  });

  it("is asked again before every attempt", async () => {
    server.script(refuse("InternalServerError", 500));
    let asked = 0;
    const call = newCall(new AbortController().signal, () => ++asked < 3);
    await expect(newStore().update(write, call)).rejects.toMatchObject({ mayHaveLanded: true });
    expect(server.requests).toHaveLength(2);
  });
});

it.each([
  ["http://127.0.0.1:1", /connect ECONNREFUSED 127/],
  // Where there is no IPv6, it says so.
  ["http://[::1]:1", /connect E[A-Z]+ ::1:1/],
])("where nobody listens at %s, a call ends with what the connection says", async (endpoint, message) => {
  await expect(newStore({ endpoint }).get(read, newCall())).rejects.toMatchObject({
    code: "LEASE_NO_ANSWER",
    message: expect.stringMatching(message),
  });
});

it("nothing listens to the caller's signal any more", async () => {
  const store = newStore();
  const { signal } = new AbortController();
  server.script(say({}));
  for (let request = 0; request < 3; request += 1) await store.get(read, newCall(signal));
  server.script(refuse("AccessDeniedException"));
  await expect(store.get(read, newCall(signal))).rejects.toMatchObject({ code: "LEASE_ACCESS_DENIED" });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("a call that was ended leaves no connection, nor does a store that was closed", async () => {
  const store = newStore();
  const arrived = Promise.withResolvers<void>();
  const closed = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  server.script(
    (response) => {
      response.on("close", () => closed[0]?.resolve());
      arrived.resolve();
    },
    (response, request) => {
      response.socket?.on("close", () => closed[1]?.resolve());
      say({})(response, request);
    },
  );
  const controller = new AbortController();
  const ended = store.get(read, newCall(controller.signal)).catch(() => undefined);
  await arrived.promise;
  controller.abort();
  await Promise.all([ended, closed[0]?.promise]);
  await store.get(read, newCall());
  store.destroy();
  await closed[1]?.promise;
});

/** Resolves when a request has arrived. */
async function arrival(): Promise<void> {
  while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
}

function timeOf(date: unknown): number {
  return Date.parse(String(date).replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
}

/** A clock whose timers fire at once, and which writes down for how long they were to wait. */
function instantClock(delays: number[]) {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    schedule: (callback: () => void, delayMs: number) => {
      delays.push(delayMs);
      queueMicrotask(callback);
      return () => undefined;
    },
  };
}
