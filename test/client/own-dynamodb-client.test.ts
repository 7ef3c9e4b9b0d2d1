/**
 * The client of the SDK that a store makes for itself. The SDK resolves the middleware of each operation once for all of
 * its calls, and does not know their signals.
 */
import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { DynamoDBLeaseStore } from "../../packages/client/src/stores/sdk/store.ts";
import {
  type Reaction,
  refuse,
  type ScriptedServer,
  say,
  startScriptedServer,
} from "../support/scripted-server.ts";
import { authorizationBySdk, type Caller } from "../support/signatures.ts";
import { environmentOf } from "../support/table.ts";

let server: ScriptedServer;
let store: DynamoDBLeaseStore;

beforeAll(async () => {
  server = await startScriptedServer();
});
beforeEach(() => {
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  for (const [name, value] of Object.entries(
    environmentOf({ clientConfig: { endpoint: server.url, region: "eu-central-1", credentials } }),
  ))
    vi.stubEnv(name, value);
  store = new DynamoDBLeaseStore("leases", undefined);
});
afterAll(() => server.close());

const writeOf = (pk: string) => ({
  key: { pk, sk: "lease" },
  update: "SET #a = :a",
  condition: "attribute_not_exists(#a)",
  names: { "#a": "a" },
  values: { ":a": 1 },
  returnsItem: true,
});

/** A call, and the times that its answers have told. */
function newCall(isCurrent = () => true) {
  const controller = new AbortController();
  const times: unknown[] = [];
  const call = {
    signal: controller.signal,
    isCurrent,
    timed: () => (time: { earliest: number } | undefined) => times.push(time?.earliest),
  };
  return { call, times, abort: (reason: Error) => controller.abort(reason) };
}

/** Lets all settle that can without the passing of time. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

const keyIn = (body: string): string => JSON.parse(body).Key.pk.S;
const grant = (pk: string, headers = {}): Reaction => say({ Attributes: { a: { S: pk } } }, 200, headers);

it("resolves the middleware of an operation once", async () => {
  const resolve = vi.spyOn(UpdateItemCommand.prototype, "resolveMiddleware");
  server.script(say({}));
  for (const pk of ["a", "b", "c"]) await store.update(writeOf(pk), newCall().call);
  expect(server.requests.map(({ body }) => keyIn(body))).toEqual(["a", "b", "c"]);
  expect(resolve).toHaveBeenCalledTimes(1);
});

it.each<[string, string, number]>([
  ["is sent again after a conflict", "TransactionConflictException", 2],
  ["is not sent again after a refusal", "ConditionalCheckFailedException", 1],
  ["is not sent again after a refused signature of the right time", "InvalidSignatureException", 1],
])("a write %s", async (_case, name, requests) => {
  server.script(refuse(name, 400, { date: new Date().toUTCString() }), grant("k"));
  await store.update(writeOf("k"), newCall().call).catch(() => undefined);
  expect(server.requests).toHaveLength(requests);
});

it("a request without an answer is sent again after two seconds", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    server.script(() => undefined, grant("k"));
    const writing = store.update(writeOf("k"), newCall().call);
    await until(() => server.requests.length === 1);
    await vi.advanceTimersByTimeAsync(2_000);
    await turns();
    // The longest pause before the second attempt.
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await writing).toMatchObject({ applied: true, retried: true });
  } finally {
    vi.useRealTimers();
  }
});

describe("calls at the same time", () => {
  it("get their own answers, times and repetitions", async () => {
    const calls = Array.from({ length: 40 }, (_, index) => ({ pk: `key ${index}`, index, ...newCall() }));
    const timeOf = (index: number): number => Date.UTC(2026, 0, 1, 0, 0, index);
    const asked = new Set<string>();
    const waiting: (() => void)[] = [];
    // The last ones are answered first, and each fourth one fails at its first attempt.
    server.script((response, request) => {
      const pk = keyIn(request.body);
      const index = Number(pk.slice(4));
      const isFirst = !asked.has(pk);
      asked.add(pk);
      const headers = { date: new Date(timeOf(index)).toUTCString() };
      if (index % 4 === 0 && isFirst) refuse("InternalServerError", 500, headers)(response, request);
      else waiting.push(() => grant(pk, headers)(response, request));
      if (waiting.length === calls.length) for (const answer of waiting.reverse()) answer();
    });
    const results = await Promise.all(calls.map(({ pk, call }) => store.update(writeOf(pk), call)));
    expect(results).toEqual(
      calls.map(({ pk, index }) => ({ applied: true, item: { a: pk }, retried: index % 4 === 0 })),
    );
    for (const { index, times } of calls) {
      expect(times).toEqual(index % 4 === 0 ? [timeOf(index), timeOf(index)] : [timeOf(index)]);
    }
  });

  it("end by their own signals alone", async () => {
    const answers = new Map<string, () => void>();
    server.script((response, request) => {
      const pk = keyIn(request.body);
      answers.set(pk, () => grant(pk)(response, request));
    });
    const [first, second] = [newCall(), newCall()];
    const failure = store.update(writeOf("first"), first.call).catch((error: unknown) => error);
    const success = store.update(writeOf("second"), second.call);
    await until(() => answers.size === 2);
    first.abort(new Error("enough"));
    expect(await failure).toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining("enough"),
      mayHaveLanded: true,
    });
    answers.get("second")?.();
    expect(await success).toMatchObject({ applied: true, item: { a: "second" } });
  });

  it("are all repeated where the wall clock is wrong by hours", async () => {
    // The SDK compares what it has noted for both calls together, and sees a correction in one of them alone.
    vi.spyOn(Date, "now").mockReturnValue(Date.UTC(2026, 0, 1, 12));
    const headers = { date: "Thu, 01 Jan 2026 09:00:00 GMT" };
    const held: (() => void)[] = [];
    server.script(
      refuse("InvalidSignatureException", 400, headers),
      (response, request) => {
        held.push(() => refuse("InvalidSignatureException", 400, headers)(response, request));
      },
      (response, request) => {
        grant(keyIn(request.body), headers)(response, request);
        for (const answer of held.splice(0)) answer();
      },
    );
    const results = await Promise.all([
      store.update(writeOf("a"), newCall().call),
      store.update(writeOf("b"), newCall().call),
    ]);
    expect(results).toMatchObject([
      { applied: true, retried: true },
      { applied: true, retried: true },
    ]);
  });
});

describe("a call whose signal aborts", () => {
  it("rejects at once though the SDK pauses before its next attempt, which is never sent", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      server.script(refuse("ThrottlingException", 400, { date: "Thu, 01 Jan 2026 00:00:00 GMT" }));
      const { call, times, abort } = newCall();
      let failure: unknown;
      store.update(writeOf("k"), call).catch((error: unknown) => {
        failure = error;
      });
      await until(() => times.length === 1);
      await turns();
      expect(failure).toBeUndefined();
      abort(new Error("no answer within 5 ms"));
      await turns();
      expect(failure).toMatchObject({ code: "LEASE_THROTTLED", mayHaveLanded: false });
      await vi.advanceTimersByTimeAsync(60_000);
      await turns();
      expect(server.requests).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("rejects at once while the credentials are fetched, and nothing is sent", async () => {
    const agent = await startScriptedServer();
    vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", undefined);
    vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.url);
    server.script(say({}));
    const { call, abort } = newCall();
    const failure = store.update(writeOf("k"), call).catch((error: unknown) => error);
    await until(() => agent.requests.length > 0);
    abort(new Error("enough"));
    expect(await failure).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: false });
    expect(server.requests).toEqual([]);
    await agent.close();
  });

  it("before anything was sent rejects, and sends nothing", async () => {
    server.script(say({}));
    const { call, abort } = newCall();
    abort(new Error("enough"));
    await expect(store.update(writeOf("k"), call)).rejects.toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining("enough"),
    });
    await turns();
    expect(server.requests).toEqual([]);
  });

  it("does not disturb the next one when its answer comes late", async () => {
    let late = (): void => undefined;
    server.script(
      (response, request) => {
        late = () => grant("late", { date: "Thu, 01 Jan 2026 00:00:00 GMT" })(response, request);
      },
      grant("next", { date: "Fri, 02 Jan 2026 00:00:00 GMT" }),
    );
    const [first, next] = [newCall(), newCall()];
    const failure = store.update(writeOf("first"), first.call).catch((error: unknown) => error);
    await until(() => server.requests.length === 1);
    first.abort(new Error("enough"));
    expect(await failure).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
    const following = store.update(writeOf("next"), next.call);
    late();
    expect(await following).toEqual({ applied: true, item: { a: "next" }, retried: false });
    expect([first.times, next.times]).toEqual([[], [Date.UTC(2026, 0, 2)]]);
  });

  it("in its second attempt has had no answer, whatever the first one was", async () => {
    server.script(refuse("ThrottlingException"), () => undefined);
    const { call, abort } = newCall();
    const failure = store.update(writeOf("k"), call).catch((error: unknown) => error);
    await until(() => server.requests.length === 2);
    abort(new Error("enough"));
    expect(await failure).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: true });
  });
});

/** Keys are kept: the second request of a caller is signed by those of the first one. */
it.each<[string, Caller & { readonly region?: string }]>([
  ["long-lived credentials", { accessKeyId: "AKID", secretAccessKey: "long-lived" }],
  ["a session", { accessKeyId: "ASIA", secretAccessKey: "first", sessionToken: "token" }],
  ["another secret of the same identity", { accessKeyId: "AKID", secretAccessKey: "other" }],
  ["another region", { accessKeyId: "AKID", secretAccessKey: "long-lived", region: "us-west-2" }],
])("requests with %s have the signature of the SDK's own signer, from day to day", async (_name, given) => {
  const { region = "eu-central-1", ...caller } = given;
  vi.stubEnv("AWS_REGION", region);
  vi.stubEnv("AWS_ACCESS_KEY_ID", caller.accessKeyId);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", caller.secretAccessKey);
  vi.stubEnv("AWS_SESSION_TOKEN", caller.sessionToken);
  server.script(say({}));
  try {
    for (const [pk, day] of [["schlüssel", 1] as const, ["🔒", 1] as const, ["k", 2] as const]) {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, day, 12) });
      await store.update(writeOf(pk), newCall().call);
    }
  } finally {
    vi.useRealTimers();
  }
  expect(server.requests).toHaveLength(3);
  for (const request of server.requests)
    expect(request.headers.authorization).toBe(await authorizationBySdk(request, region, caller));
});

it("a request that is too old is not sent, at the first attempt or later", async () => {
  server.script(refuse("InternalServerError", 500));
  for (const attempts of [0, 1, 2]) {
    let left = attempts;
    const { call } = newCall(() => left-- > 0);
    const before = server.requests.length;
    await expect(store.update(writeOf("k"), call)).rejects.toMatchObject({ mayHaveLanded: attempts > 0 });
    expect(server.requests.length - before).toBe(attempts);
  }
});
