import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError, LeaseConfigurationError, type LeaseError } from "@leasehold/client";
import {
  type LightCredentials,
  type LightStore,
  type LightStoreOptions,
  lightStore,
} from "@leasehold/client/light";
import { ManualClock, settled } from "@leasehold/client/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { eventually } from "../support/patience.ts";
import { refuse, type ScriptedServer, say, startScriptedServer } from "../support/scripted-server.ts";

let server: ScriptedServer;
/** In the place of a container's agent. */
let agent: ScriptedServer;

beforeAll(async () => {
  [server, agent] = await Promise.all([startScriptedServer(), startScriptedServer()]);
});
afterAll(() => Promise.all([server.close(), agent.close()]));

beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) vi.stubEnv(name, undefined);
  server.script(say({}));
  agent.script(say({}, 500));
});

function stub(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
}

function newStore(options: Partial<LightStoreOptions> = {}): LightStore {
  const store = lightStore({ tableName: "leases", region: "eu-central-1", endpoint: server.url, ...options });
  onTestFinished(() => store.destroy());
  return store;
}

const key = { pk: "k", sk: "lease" };
const get = (store: LightStore, signal = new AbortController().signal) =>
  store.get({ key, consistent: true }, { signal, isCurrent: () => true });

/** Whose credentials have signed the requests, and with which tokens. */
const signers = (): string[] =>
  server.requests.map(({ headers }) => {
    const id = /Credential=(\w+)/.exec(String(headers.authorization))?.[1];
    return [id, headers["x-amz-security-token"]].filter(Boolean).join("+");
  });

const own = { AWS_ACCESS_KEY_ID: "AKENV", AWS_SECRET_ACCESS_KEY: "secret" };

describe("credentials come from", () => {
  it("the environment", async () => {
    stub(own);
    await get(newStore());
    stub({ AWS_SESSION_TOKEN: "token" });
    await get(newStore());
    expect(signers()).toEqual(["AKENV", "AKENV+token"]);
  });

  it("an option, first of all", async () => {
    stub(own);
    await get(newStore({ credentials: { accessKeyId: "AKOPT", secretAccessKey: "s", sessionToken: "t" } }));
    await get(newStore({ credentials: async () => ({ accessKeyId: "AKFUN", secretAccessKey: "s" }) }));
    expect(signers()).toEqual(["AKOPT+t", "AKFUN"]);
  });

  it("a container's agent, with the authorization that its file holds at the time", async () => {
    const folder = await mkdtemp(join(tmpdir(), "leasehold-token-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "token");
    await writeFile(file, "first token\n");
    stub({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${agent.url}/v1/credentials?a=1`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
    });
    agent.script(
      say({ AccessKeyId: "AKONE", SecretAccessKey: "s", Token: "t", Expiration: "2026-01-01T01:00:00Z" }),
      say({ AccessKeyId: "AKTWO", SecretAccessKey: "s", Token: "t", Expiration: "2027-01-01T01:00:00Z" }),
    );
    const clock = new ManualClock(Date.parse("2026-01-01T00:00:00Z"));
    const store = newStore({ clock });
    await get(store);
    await writeFile(file, "second token\n");
    clock.freeze(60 * 60_000);
    await get(store);
    expect(signers()).toEqual(["AKONE+t", "AKTWO+t"]);
    expect(agent.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ["/v1/credentials?a=1", "first token"],
      ["/v1/credentials?a=1", "second token"],
    ]);
  });

  it("a container's agent that fails at first", async () => {
    stub({ AWS_CONTAINER_CREDENTIALS_FULL_URI: agent.url, AWS_CONTAINER_AUTHORIZATION_TOKEN: "given\n" });
    agent.script(
      (response) => void response.destroy(),
      say("no", 503),
      say({ AccessKeyId: "AKONE", SecretAccessKey: "s" }),
    );
    await get(newStore());
    expect(signers()).toEqual(["AKONE"]);
    expect(agent.requests.map(({ headers }) => headers.authorization)).toEqual(["given", "given", "given"]);
  });
});

describe("there are no credentials, says an error that names the SDK's store, and nothing was sent", () => {
  const agentAt = (url: string): Record<string, string> => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url });
  const isForeign = /neither HTTPS nor a container's host/;
  const lineBreak = /without a line break at the end/;

  it.each<[string, Record<string, string>, RegExp]>([
    ["in an empty environment", {}, /the environment has none/],
    ["with half a key", { AWS_ACCESS_KEY_ID: "x" }, /the environment has none/],
    ["with a line break in the key", { ...own, AWS_ACCESS_KEY_ID: "x\n" }, lineBreak],
    ["with a space before the key", { ...own, AWS_ACCESS_KEY_ID: " x" }, lineBreak],
    ["with a line break in the session's token", { ...own, AWS_SESSION_TOKEN: "t\n" }, lineBreak],
    ["with a profile", { AWS_PROFILE: "dev" }, /it does not read AWS_PROFILE/],
    [
      "with a web identity",
      { AWS_WEB_IDENTITY_TOKEN_FILE: "/t" },
      /it does not read AWS_WEB_IDENTITY_TOKEN_FILE/,
    ],
    ["with an agent elsewhere, without TLS", agentAt("http://example.com/credentials"), isForeign],
    ["with an agent below localhost, without TLS", agentAt("http://localhost.example.com/"), isForeign],
    ["with an agent called not-localhost, without TLS", agentAt("http://not-localhost/"), isForeign],
    ["with an agent that is no URL", agentAt("agent"), isForeign],
    [
      "with an agent of ECS that is no URL",
      { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: ":99999/v2" },
      /"http:\/\/169\.254\.170\.2:99999\/v2" is neither/,
    ],
    ["with an agent elsewhere that does not listen", agentAt("https://127.0.0.1:1/"), /connect ECONNREFUSED/],
    ["with an agent that does not listen on IPv6", agentAt("http://[::1]:1/"), /connect E[A-Z]+ ::1:1/],
    [
      "with a token's file that is not there",
      { ...agentAt("http://localhost/"), AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: "/nonexistent/token" },
      /ENOENT/,
    ],
  ])("%s", async (_name, variables, message) => {
    stub(variables);
    const failure = await get(newStore()).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseConfigurationError);
    expect(failure).toMatchObject({
      code: "LEASE_CREDENTIALS_MISSING",
      message: expect.stringMatching(message),
    });
    expect((failure as Error).message).toContain('new LeaseClient({ tableName }) of "@leasehold/client"');
    expect(server.requests).toEqual([]);
  });

  it.each<[string, unknown, number]>([
    ["that answers an error", {}, 404],
    ["that answers no JSON", "<html>", 200],
    ["that answers null", null, 200],
    ["that answers without a key", { AccessKeyId: "x" }, 200],
    [
      "that answers with a time that is none",
      { AccessKeyId: "x", SecretAccessKey: "y", Expiration: "soon" },
      200,
    ],
  ])("with an agent %s", async (_name, body, status) => {
    stub({ AWS_CONTAINER_CREDENTIALS_FULL_URI: agent.url });
    agent.script((response) =>
      response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body)),
    );
    await expect(get(newStore())).rejects.toMatchObject({ code: "LEASE_CREDENTIALS_MISSING" });
  });

  it.each<[string, unknown]>([
    ["that rejects", () => Promise.reject(new Error("the vault is shut"))],
    ["that gives nothing", async () => undefined],
    ["that gives half", async () => ({ accessKeyId: "x" })],
    ...["soon", null, new Date(Number.NaN)].map((expiration): [string, unknown] => [
      `that gives the time ${expiration}`,
      async () => ({ accessKeyId: "x", secretAccessKey: "y", expiration }),
    ]),
  ])("with a function %s", async (_name, credentials) => {
    const store = newStore({ credentials: credentials as () => Promise<LightCredentials> });
    await expect(get(store)).rejects.toMatchObject({ code: "LEASE_CREDENTIALS_MISSING" });
  });
});

it("a mistake in a function of credentials is given as it is", async () => {
  const mistake = new TypeError("vault.open is not a function");
  await expect(get(newStore({ credentials: () => Promise.reject(mistake) }))).rejects.toBe(mistake);
});

it("a function of credentials that hangs does not keep a call beyond its time", async () => {
  const controller = new AbortController();
  const call = get(newStore({ credentials: () => new Promise(() => undefined) }), controller.signal);
  await settled();
  controller.abort(new Error("no answer within 5 ms"));
  await expect(call).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
});

describe("credentials that end", () => {
  const clock = new ManualClock(Date.parse("2026-01-01T00:00:00Z"));
  const minute = 60_000;
  let fetched: number;
  let vault: "open" | "shut" | "hanging";
  let store: LightStore;

  beforeEach(() => {
    fetched = 0;
    vault = "open";
    const credentials = async (): Promise<LightCredentials> => {
      fetched += 1;
      const number = fetched;
      if (vault === "shut") throw new Error("the vault is shut");
      if (vault === "hanging") await new Promise(() => undefined);
      const expiration = new Date(clock.now() + 60 * minute);
      return { accessKeyId: `AK${number}`, secretAccessKey: "s", expiration };
    };
    store = newStore({ clock, credentials });
  });

  it("are fetched once for all that call at the same time, and kept", async () => {
    await Promise.all(Array.from({ length: 10 }, () => get(store)));
    await get(store);
    expect(fetched).toBe(1);
  });

  it("are fetched again within the last five minutes, while the present ones still sign", async () => {
    await get(store);
    clock.freeze(54 * minute);
    await get(store);
    expect(fetched).toBe(1);
    clock.freeze(2 * minute);
    await get(store);
    await get(store);
    expect(fetched).toBe(2);
    expect(signers()).toEqual(["AK1", "AK1", "AK1", "AK2"]);
  });

  it("go on signing while others cannot be fetched, and are asked for again now and then", async () => {
    await get(store);
    vault = "shut";
    clock.freeze(56 * minute);
    for (let count = 0; count < 5; count += 1) await get(store);
    expect(fetched).toBe(2);
    clock.freeze(minute);
    vault = "open";
    await get(store);
    await get(store);
    expect(signers().slice(-2)).toEqual(["AK1", "AK3"]);
  });

  it("do not sign beyond their end", async () => {
    await get(store);
    vault = "shut";
    clock.freeze(61 * minute);
    await expect(get(store)).rejects.toMatchObject({ code: "LEASE_CREDENTIALS_MISSING" });
    vault = "open";
    await get(store);
    expect(signers()).toEqual(["AK1", "AK3"]);
  });

  it("and that the service takes for expired are fetched again, once", async () => {
    server.script(refuse("ExpiredTokenException"), say({}));
    await get(store);
    expect(signers()).toEqual(["AK1", "AK2"]);
    server.script(refuse("ExpiredToken"));
    await expect(get(store)).rejects.toMatchObject({ code: "LEASE_ACCESS_DENIED" });
    expect(signers()).toEqual(["AK2", "AK3"]);
  });

  it("and that the service takes for expired are others for the next call, where one attempt is allowed", async () => {
    const credentials = async (): Promise<LightCredentials> => ({
      accessKeyId: `AK${++fetched}`,
      secretAccessKey: "secret",
    });
    const single = newStore({ maxAttempts: 1, credentials });
    server.script(refuse("ExpiredTokenException"), say({}));
    await expect(get(single)).rejects.toMatchObject({ code: "LEASE_ACCESS_DENIED" });
    await get(single);
    expect(signers()).toEqual(["AK1", "AK2"]);
  });

  it("and that the service takes for expired are not fetched for a late refusal, after another call's", async () => {
    const first = Promise.withResolvers<() => void>();
    const refusal = refuse("ExpiredTokenException");
    server.script((...answer) => first.resolve(() => refusal(...answer)), refusal, say({}));
    const slow = get(store);
    const refuseFirst = await first.promise;
    await get(store);
    refuseFirst();
    await slow;
    expect([fetched, signers()]).toEqual([2, ["AK1", "AK1", "AK2", "AK2"]]);
  });

  it("whose fetch hangs are given up by name, and asked for anew by the next call", async () => {
    const hanging = Promise.withResolvers<LightCredentials>();
    const given = [hanging.promise, Promise.resolve({ accessKeyId: "AKTWO", secretAccessKey: "s" })];
    const hung = newStore({
      clock,
      credentials: () => given.shift() ?? Promise.reject(new Error("once more")),
    });
    const both = Promise.all(
      [get(hung), get(hung)].map((call) =>
        expect(call).rejects.toMatchObject({
          code: "LEASE_CREDENTIALS_MISSING",
          message: expect.stringContaining("they did not come within 5000 ms"),
        }),
      ),
    );
    await eventually(async () => {
      await clock.advance(1_000);
      expect(given).toHaveLength(1);
    });
    await clock.advance(5_000);
    await both;
    await get(hung);
    // Nor do those that come too late take the place of the present ones.
    hanging.resolve({ accessKeyId: "AKLATE", secretAccessKey: "s" });
    await settled();
    await get(hung);
    expect(signers()).toEqual(["AKTWO", "AKTWO"]);
  });

  it("go on signing while a fetch of others hangs, and the one after it is heard", async () => {
    await get(store);
    vault = "hanging";
    clock.freeze(56 * minute);
    await get(store);
    await clock.advance(5_000);
    vault = "open";
    clock.freeze(minute);
    await get(store);
    await get(store);
    expect(signers()).toEqual(["AK1", "AK1", "AK1", "AK3"]);
  });

  it("are fetched again after such as cannot sign", async () => {
    const given = [{ accessKeyId: "AKBAD\n", secretAccessKey: "s" }];
    const credentials = async () => given.shift() ?? { accessKeyId: "AKGOOD", secretAccessKey: "s" };
    const careless = newStore({ credentials });
    await expect(get(careless)).rejects.toMatchObject({ code: "LEASE_CREDENTIALS_MISSING" });
    await get(careless);
    expect(signers()).toEqual(["AKGOOD"]);
  });

  it("and cannot be fetched again leave it to each call to say whether its write may have landed", async () => {
    const given = [{ accessKeyId: "AKID", secretAccessKey: "s" }];
    const shut = newStore({
      randomness: { token: () => "token", fraction: () => 0 },
      credentials: async () => {
        const next = given.shift();
        if (next !== undefined) return next;
        // Both calls wait for the same fetch.
        await vi.waitUntil(() => server.requests.length === 3);
        await new Promise((resolve) => setTimeout(resolve, 20));
        throw new Error("the vault is shut");
      },
    });
    const update = () => {
      const write = { key, update: "SET #a = :a", condition: "attribute_not_exists(#a)", returnsItem: false };
      const call = { signal: new AbortController().signal, isCurrent: () => true };
      return failureOf(shut.update({ ...write, names: { "#a": "a" }, values: { ":a": 1 } }, call));
    };
    server.script((response) => response.destroy(), refuse("ExpiredTokenException"));
    const failures = (await Promise.all([update(), update()])) as LeaseError[];
    expect(failures.map(({ code }) => code)).toEqual(Array(2).fill("LEASE_CREDENTIALS_MISSING"));
    expect(failures.map(({ mayHaveLanded }) => mayHaveLanded).sort()).toEqual([false, true]);
  });

  it("tell why they could not be fetched", async () => {
    vault = "shut";
    const cause = { message: "the vault is shut" };
    await expect(get(store)).rejects.toMatchObject({ code: "LEASE_CREDENTIALS_MISSING", cause });
  });
});

it("a session that has expired is left for the next one of the same access key", async () => {
  const tokens = ["first", "second"];
  const credentials = async () => ({
    ...{ accessKeyId: "AK", secretAccessKey: "s" },
    sessionToken: tokens.shift() ?? "last",
  });
  server.script(refuse("ExpiredTokenException"), say({}));
  await get(newStore({ credentials }));
  expect(signers()).toEqual(["AK+first", "AK+second"]);
});

it("expired credentials of the environment are read again, and not sent twice where they are the same", async () => {
  stub(own);
  const store = newStore();
  server.script(refuse("ExpiredTokenException"));
  await expect(get(store)).rejects.toMatchObject({ code: "LEASE_ACCESS_DENIED" });
  expect(signers()).toEqual(["AKENV"]);
  stub({ AWS_ACCESS_KEY_ID: "AKNEW" });
  server.script(refuse("ExpiredTokenException"), say({}));
  await get(store);
  expect(signers()).toEqual(["AKENV", "AKNEW"]);
});

describe("requests go to", () => {
  const hosts: [string, Partial<LightStoreOptions>, Record<string, string>, string][] = [
    ["the region of the environment", {}, { AWS_REGION: "eu-west-1" }, "dynamodb.eu-west-1.amazonaws.com"],
    ["its default", {}, { AWS_DEFAULT_REGION: "us-east-2" }, "dynamodb.us-east-2.amazonaws.com"],
    [
      "the option's",
      { region: "us-west-2" },
      { AWS_REGION: "eu-west-1" },
      "dynamodb.us-west-2.amazonaws.com",
    ],
    [
      "the table's",
      { tableName: "arn:aws:dynamodb:ap-south-1:123456789012:table/leases" },
      { AWS_REGION: "eu-west-1" },
      "dynamodb.ap-south-1.amazonaws.com",
    ],
    ["an endpoint", { region: "x", endpoint: "https://db.example:8443" }, {}, "db.example:8443"],
    ["that of the environment", { region: "x" }, { AWS_ENDPOINT_URL: "http://db.example" }, "db.example"],
    [
      "to none of variables that are empty",
      { region: "eu-west-1" },
      { AWS_ENDPOINT_URL: "", AWS_ENDPOINT_URL_DYNAMODB: "" },
      "dynamodb.eu-west-1.amazonaws.com",
    ],
    [
      "DynamoDB's own in it",
      { region: "x" },
      { AWS_ENDPOINT_URL: "http://other.example", AWS_ENDPOINT_URL_DYNAMODB: "http://db.example" },
      "db.example",
    ],
    [
      "not to one that is to be ignored",
      { region: "eu-west-1" },
      { AWS_ENDPOINT_URL: "http://db.example", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: "true" },
      "dynamodb.eu-west-1.amazonaws.com",
    ],
  ];
  it.each(hosts)("%s", async (_name, options, variables, host) => {
    stub(variables);
    const { resolveEndpoint } = await import("../../packages/client/src/stores/light/endpoint.ts");
    const { url } = resolveEndpoint({ tableName: "leases", ...options }, process.env);
    expect(url.host).toBe(host);
  });

  it.each([
    ...["us-east-1", "cn-northwest-1", "us-gov-west-1", "eusc-de-east-1"],
    ...["us-iso-east-1", "us-isob-east-1", "us-isof-south-1", "eu-isoe-west-1"],
  ])("the host of %s that the SDK would ask, with FIPS, dual-stack and both", async (Region) => {
    const { resolveEndpoint } = await import("../../packages/client/src/stores/light/endpoint.ts");
    const { endpointProvider } = new DynamoDBClient({ region: Region }).config;
    for (const [UseFIPS, UseDualStack] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const) {
      stub({ AWS_USE_FIPS_ENDPOINT: `${UseFIPS}`, AWS_USE_DUALSTACK_ENDPOINT: `${UseDualStack}` });
      const { url } = resolveEndpoint({ tableName: "leases", region: Region }, process.env);
      expect(url).toEqual(endpointProvider({ Region, UseFIPS, UseDualStack }).url);
    }
  });

  it("nowhere without a region", async () => {
    const store = lightStore({ tableName: "leases" });
    await expect(get(store)).rejects.toMatchObject({
      code: "LEASE_REGION_MISSING",
      name: "LeaseConfigurationError",
    });
    stub({ AWS_REGION: "eu-central-1\r\nHost: x" });
    await expect(get(store)).rejects.toMatchObject({ code: "LEASE_REGION_MISSING" });
  });

  it("nowhere with an endpoint in the environment that is no URL", async () => {
    stub({ AWS_REGION: "eu-central-1", AWS_ENDPOINT_URL: "localhost:8000", ...own });
    await expect(get(lightStore({ tableName: "leases" }))).rejects.toThrow(
      /AWS_ENDPOINT_URL.*"localhost:8000"/,
    );
  });
});

describe("an option is refused before anything is sent", () => {
  const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/leases";
  it.each<[string, object]>([
    ["tableName", {}],
    ["tableName", { tableName: "a" }],
    ["region", { tableName: "leases", region: "eu central" }],
    ["region", { tableName: arn, region: "eu-west-1" }],
    ["endpoint", { tableName: "leases", endpoint: "localhost:8000" }],
    ["endpoint", { tableName: "leases", endpoint: "//localhost" }],
    ["endpoint", { tableName: "leases", endpoint: "ftp://localhost" }],
    ["endpoint", { tableName: "leases", endpoint: new URL("http://localhost") }],
    ["credentials", { tableName: "leases", credentials: {} }],
    ["credentials", { tableName: "leases", credentials: null }],
    ["ca", { tableName: "leases", ca: 5 }],
    ["maxAttempts", { tableName: "leases", maxAttempts: 0 }],
    ["maxAttempts", { tableName: "leases", maxAttempts: 1.5 }],
    ["clock", { tableName: "leases", clock: {} }],
    ["randomness", { tableName: "leases", randomness: {} }],
    ["options.dynamodb", { tableName: "leases", dynamodb: {} }],
    ["options", undefined as never],
  ])("%s: %o", (option, options) => {
    const failure = (() => {
      try {
        return lightStore(options as LightStoreOptions);
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toBeInstanceOf(InvalidOptionsError);
    expect(failure).toMatchObject({ option });
  });

  it("but not the table's own region", () => {
    for (const region of [undefined, "eu-central-1"])
      expect(lightStore({ tableName: arn, ...(region && { region }) }).tableName).toBe(arn);
  });

  it.each<Partial<LightStoreOptions>>([
    { credentials: { secretAccessKey: "s3cret" } as LightCredentials },
    { endpoint: "http://user:s3cret@localhost:8000" },
    { endpoint: "http://user:s3cret/@localhost:8000" },
  ])("and no secret is shown", (options) => {
    expect(() => newStore(options)).toThrow(/^(?!.*s3cret)/);
  });
});
