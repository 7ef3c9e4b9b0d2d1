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

/** AWS's published test suite for Signature Version 4 (aws-sig-v4-test-suite): its caller, time and region. */
const suite = {
  caller: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" },
  time: "20150830T123600Z",
  token:
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==",
};

describe("what signs agrees with AWS's test suite", () => {
  it.each<[string, { method?: string; headers?: Record<string, string>; body?: string }, string, string]>([
    [
      "get-vanilla",
      { method: "GET" },
      "host;x-amz-date",
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ],
    [
      "post-vanilla",
      {},
      "host;x-amz-date",
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ],
    [
      "post-header-key-sort",
      { headers: { "My-Header1": "value1" } },
      "host;my-header1;x-amz-date",
      "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
    ],
    [
      "get-header-value-trim",
      { method: "GET", headers: { "My-Header1": " value1", "My-Header2": '"a   b   c"' } },
      "host;my-header1;my-header2;x-amz-date",
      "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ],
    [
      "post-x-www-form-urlencoded",
      { headers: { "Content-Type": "application/x-www-form-urlencoded" }, body: "Param1=value1" },
      "content-type;host;x-amz-date",
      "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ],
    [
      "post-sts-header-before",
      { headers: { "X-Amz-Security-Token": suite.token } },
      "host;x-amz-date;x-amz-security-token",
      "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    ],
  ])("%s", (_name, { method = "POST", headers = {}, body }, names, signature) => {
    const host = "example.amazonaws.com";
    const request = {
      service: "service",
      region: "us-east-1",
      method,
      host,
      path: "/",
      headers: { Host: host, "X-Amz-Date": suite.time, ...headers },
      // The suite's requests have no such header.
      extraHeadersToIgnore: { "content-length": true },
      ...(body !== undefined && { body }),
    };
    expect(sign(request, suite.caller).Authorization).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
    );
  });
});

it("what signs with another secret of the same day gives another signature", () => {
  const destination = { region: "us-east-1", host: "dynamodb.us-east-1.amazonaws.com", path: "/" };
  const [one, other] = ["one", "other"].map((secretAccessKey) => {
    const caller = { ...suite.caller, secretAccessKey };
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
  ["long-lived credentials", suite.caller],
  ["a session", { ...suite.caller, sessionToken: suite.token }],
] as const;

describe.each(callers)("with %s", (_name, given) => {
  // Of a fresh secret, no key is kept.
  const caller = { ...given, secretAccessKey: "" };
  beforeEach(() => {
    caller.secretAccessKey = crypto.randomUUID();
  });

  const bodies = ["{}", JSON.stringify({ TableName: "leases", Key: { pk: { S: "schlüssel/🔒/%20 +" } } })];

  it.each([
    ["dynamodb.eu-central-1.amazonaws.com", "/"],
    ["localhost:8000", "/"],
    ["proxy.example", "/a b/dynamo"],
  ])("a request to %s%s is signed as the SDK signs it", async (host, path) => {
    for (const body of bodies) {
      const at = Date.UTC(2026, 10, 22, 3, 4, 5, 678);
      const { pathname } = new URL(`http://x${path}`);
      const destination = { region: "eu-central-1", host, path: pathname };
      const headers = signedHeaders(sign, destination, "UpdateItem", body, caller, at);
      const { Authorization: ours, "X-Amz-Date": _date, ...plain } = headers;
      const signer = new SignatureV4({
        service: "dynamodb",
        region: "eu-central-1",
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
    expect(signatureFault({ ...request, path: "/other" }, known)).toBe("InvalidSignatureException");
    const wrong = { [caller.accessKeyId]: { ...caller, secretAccessKey: "other" } };
    expect(signatureFault(request, wrong)).toBe("InvalidSignatureException");
    const target = { ...request.headers, "x-amz-target": "DynamoDB_20120810.DeleteTable" };
    expect(signatureFault({ ...request, headers: target }, known)).toBe("InvalidSignatureException");
    expect(signatureFault(request, known, Date.now() + 600_000)).toBe("InvalidSignatureException");
    store.destroy();
  });
});
