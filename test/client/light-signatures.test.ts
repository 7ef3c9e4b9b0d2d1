import { createHash, createHmac } from "node:crypto";
import { lightStore } from "@leasehold/client/light";
import { SignatureV4 } from "@smithy/signature-v4";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadSign, signedHeaders } from "../../packages/client/src/stores/light/signing.ts";
import { type ScriptedServer, say, startScriptedServer } from "../support/scripted-server.ts";
import { signatureFault } from "../support/signatures.ts";

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

it("what signs with another secret of the same day gives another signature", () => {
  const destination = { region: "us-east-1", host: "dynamodb.us-east-1.amazonaws.com", path: "/" };
  const [one, other] = ["one", "other"].map((secretAccessKey) => {
    const caller = { ...longLived, secretAccessKey };
    return signedHeaders(sign, destination, "GetItem", "{}", caller, Date.UTC(2015, 7, 30)).Authorization;
  });
  expect(one).not.toBe(other);
});

/** As the SDK's request signer wants a hash. */
class Sha256 {
  readonly #hash;
  constructor(secret?: unknown) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as Buffer);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

const callers = [
  ["long-lived credentials", longLived],
  ["a session", { ...longLived, sessionToken: "a session/+==" }],
] as const;

describe.each(callers)("with %s", (_name, given) => {
  // Of a fresh secret, no key is kept.
  const caller = { ...given, secretAccessKey: "" };
  beforeEach(() => {
    caller.secretAccessKey = crypto.randomUUID();
  });

  const body = JSON.stringify({ TableName: "leases", Key: { pk: { S: "schlüssel/🔒/%20 +" } } });
  /** A key is kept for one day and one region. */
  const requests = [
    { body: "{}", region: "eu-central-1", day: 22 },
    { body, region: "eu-central-1", day: 22 },
    { body, region: "eu-central-1", day: 23 },
    { body, region: "us-west-2", day: 23 },
  ];

  it.each([
    ["dynamodb.eu-central-1.amazonaws.com", "/"],
    ["localhost:8000", "/"],
    ["proxy.example", "/a b/dynamo"],
  ])("a request to %s%s is signed as the SDK signs it", async (host, path) => {
    for (const { body, region, day } of requests) {
      const at = Date.UTC(2026, 10, day, 3, 4, 5, 678);
      const { pathname } = new URL(`http://x${path}`);
      const destination = { region, host, path: pathname };
      const headers = signedHeaders(sign, destination, "UpdateItem", body, caller, at);
      const { Authorization: ours, "X-Amz-Date": _date, ...plain } = headers;
      const signer = new SignatureV4({
        service: "dynamodb",
        region,
        credentials: caller,
        sha256: Sha256,
        applyChecksum: false,
      });
      const lowerCase = Object.fromEntries(
        Object.entries(plain).map(([name, value]) => [name.toLowerCase(), String(value)]),
      );
      const request = { method: "POST", protocol: "https:", hostname: "x", path: pathname, query: {} };
      const signed = await signer.sign(
        { ...request, headers: lowerCase, body },
        { signingDate: new Date(at) },
      );
      expect(ours).toBe(signed.headers.authorization);
    }
  });

  it("a service that checks signatures takes the store's requests, and none that was changed", async () => {
    server.script(say({}));
    const store = lightStore({
      tableName: "leases",
      endpoint: server.url,
      region: "eu-central-1",
      credentials: async () => caller,
    });
    const call = { signal: new AbortController().signal, isCurrent: () => true };
    await store.get({ key: { pk: "schlüssel", sk: "lease" }, consistent: true }, call);
    const [request] = server.requests;
    if (request === undefined) throw new Error("nothing arrived");
    const known = { [caller.accessKeyId]: caller };
    expect(signatureFault(request, known)).toBeUndefined();
    expect(signatureFault({ ...request, body: `${request.body} ` }, known)).toBe("InvalidSignatureException");
    store.destroy();
  });
});
