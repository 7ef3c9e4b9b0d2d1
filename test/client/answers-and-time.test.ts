/** Which answers tell the service's time: DynamoDB's own, with a Date in HTTP's form. The same on both transports. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LeaseStore } from "@leasehold/client";
import { lightStore } from "@leasehold/client/light";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { DynamoDBLeaseStore } from "../../packages/client/src/stores/sdk/store.ts";
import {
  type Reaction,
  refuse,
  type ScriptedServer,
  say,
  startScriptedServer,
} from "../support/scripted-server.ts";
import { environmentOf } from "../support/table.ts";

const date = "Sun, 22 Nov 2026 12:00:00 GMT";
const told = { earliest: Date.UTC(2026, 10, 22, 12), latest: Date.UTC(2026, 10, 22, 12, 0, 1) };
const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
const place = () => ({ endpoint: server.url, region: "eu-central-1", credentials });

let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.close());

/** An answer whose body is DynamoDB's or a proxy's. */
function answer(status: number, headers: Record<string, string>, body = "<html>Sign in</html>"): Reaction {
  return (response) => {
    response.sendDate = false;
    response.writeHead(status, headers).end(body);
  };
}
const json = { "content-type": "application/x-amz-json-1.0" };
const withoutDate = answer(200, json, "{}");

describe.each([
  [
    "the SDK's client of the user's",
    () => new DynamoDBLeaseStore("leases", new DynamoDBClient({ ...place(), maxAttempts: 1 })),
  ],
  [
    "the SDK's client of the store's own",
    () => {
      vi.stubEnv("AWS_MAX_ATTEMPTS", "1");
      for (const [name, value] of Object.entries(environmentOf({ clientConfig: place() })))
        vi.stubEnv(name, value);
      return new DynamoDBLeaseStore("leases", undefined);
    },
  ],
  ["the light store", () => lightStore({ tableName: "leases", ...place(), maxAttempts: 1 })],
] as const)("by %s", (_, storeOf) => {
  let store: LeaseStore;
  beforeEach(() => {
    store = storeOf();
  });

  /** What one request hears of the time; nothing where no answer counted. */
  async function heard(reaction: Reaction): Promise<unknown[]> {
    server.script(reaction);
    const times: unknown[] = [];
    const call = {
      signal: new AbortController().signal,
      isCurrent: () => true,
      timed: () => (time: unknown) => times.push(time),
    };
    const write = {
      ...{ key: { pk: "k", sk: "lease" }, names: { "#a": "a" }, values: { ":a": 1 } },
      ...{ update: "SET #a = :a", condition: "attribute_not_exists(#a)", returnsItem: false },
    };
    // Ignored: whatever the call comes to, its answer has told the time or not.
    await store.update(write, call).catch(() => undefined);
    return times;
  }

  it.each([
    ["a success", say({}, 200, { date })],
    ["a refusal", refuse("ConditionalCheckFailedException", 400, { date })],
    ["a failure of the service's own", refuse("InternalServerError", 500, { date })],
  ])("%s of DynamoDB's tells the time", async (_answer, reaction) => {
    expect(await heard(reaction)).toEqual([told]);
  });

  it.each([
    ["a page of a proxy's", answer(200, { "content-type": "text/html", date })],
    ["a gateway's error", answer(502, { "content-type": "text/html", date })],
    [
      "a gateway's error in JSON",
      answer(503, { "content-type": "application/json", date }, '{"message":"no"}'),
    ],
    ["a proxy that wants a password", answer(407, { "content-type": "text/html", date })],
    ["an answer without a type", answer(502, { date }, "")],
  ])("%s tells nothing, not even that the time is unknown", async (_answer, reaction) => {
    expect(await heard(reaction)).toEqual([]);
  });

  it.each([
    ["5"],
    ["2026-11-22T12:00:00Z"],
    ["Sun, 22 Nov 2026 12:00:00"],
    ["Sun, 22 Nov 2026 12:00:00 +0000"],
    ["Sun, 22 Nov 2026 12:00:00 EST"],
    ["Mon, 22 Nov 2026 12:00:00 GMT"],
    ["Sun, 31 Feb 2026 12:00:00 GMT"],
    ["Sunday, 22-Nov-26 12:00:00 GMT"],
    ["Invalid Date"],
    ["0"],
  ])("the Date %j tells that the time is unknown", async (wrong) => {
    expect(await heard(say({}, 200, { date: wrong }))).toEqual([undefined]);
  });

  it("an answer without a Date tells that the time is unknown", async () => {
    expect(await heard(withoutDate)).toEqual([undefined]);
  });
});
