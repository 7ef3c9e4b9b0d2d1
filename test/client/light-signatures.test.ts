import { lightStore } from "@leasehold/client/light";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadSign, signedHeaders } from "../../packages/client/src/stores/light/signing.ts";
import { type ScriptedServer, say, startScriptedServer } from "../support/scripted-server.ts";
import { authorizationBySdk, type Caller } from "../support/signatures.ts";

const sign = await loadSign();
let server: ScriptedServer;

beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.close());

/** Of AWS's test suite for Signature Version 4. */
const longLived = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

describe.each<[string, Caller]>([
  ["long-lived credentials", longLived],
  ["a session", { ...longLived, sessionToken: "a session/+==" }],
])("with %s", (_name, given) => {
  // Of a fresh secret, no key is kept.
  const caller = { ...given, secretAccessKey: "" };
  beforeEach(() => {
    caller.secretAccessKey = crypto.randomUUID();
  });

  const body = JSON.stringify({ TableName: "leases", Key: { pk: { S: "schlüssel/🔒/%20 +" } } });
  /** A key is kept for one secret, one day and one region. */
  const requests = [
    { body: "{}", region: "eu-central-1", day: 22 },
    { body, region: "eu-central-1", day: 22 },
    { body, region: "eu-central-1", day: 23 },
    { body, region: "us-west-2", day: 23 },
    { body, region: "us-west-2", day: 23, secretAccessKey: "another" },
  ];

  it.each([
    ["dynamodb.eu-central-1.amazonaws.com", "/"],
    ["localhost:8000", "/"],
    ["proxy.example", "/a b/dynamo"],
  ])("a request to %s%s is signed as the SDK signs it", async (host, path) => {
    for (const { body, region, day, ...other } of requests) {
      const at = Date.UTC(2026, 10, day, 3, 4, 5, 678);
      const { pathname } = new URL(`http://x${path}`);
      const signer = { ...caller, ...other };
      const signed = signedHeaders(sign, { region, host, path: pathname }, "UpdateItem", body, signer, at);
      const headers = Object.fromEntries(
        Object.entries(signed).map(([name, value]) => [name.toLowerCase(), String(value)]),
      );
      expect(headers.authorization).toBe(
        await authorizationBySdk({ headers, path: pathname, body }, region, signer),
      );
    }
  });

  it("a service that checks signatures takes the store's requests", async () => {
    server.script(say({}));
    const region = "eu-central-1";
    const store = lightStore({
      tableName: "leases",
      endpoint: server.url,
      region,
      credentials: async () => caller,
    });
    const call = { signal: new AbortController().signal, isCurrent: () => true };
    await store.get({ key: { pk: "schlüssel", sk: "lease" }, consistent: true }, call);
    const [request] = server.requests;
    if (request === undefined) throw new Error("nothing arrived");
    expect(request.headers.authorization).toBe(await authorizationBySdk(request, region, caller));
    store.destroy();
  });
});
