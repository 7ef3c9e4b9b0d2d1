/** A write that ended without success says whether it may have landed: by both transports, in the same words. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient, type LeaseError } from "@leasehold/client";
import { lightStore } from "@leasehold/client/light";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import {
  type Reaction,
  refuse,
  type ScriptedServer,
  say,
  startScriptedServer,
} from "../support/scripted-server.ts";

const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
const region = "eu-central-1";
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0 };
const tls = new URL("../support/tls/", import.meta.url);

let server: ScriptedServer;
let key: string;
let cert: string;
const closing: (() => void)[] = [];

beforeAll(async () => {
  server = await startScriptedServer();
  key = await readFile(new URL("localhost.key.pem", tls), "utf8");
  cert = await readFile(new URL("localhost.cert.pem", tls), "utf8");
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
});
afterAll(() => server.close());

/** By the name of its transport, a client that sends each request so often at most. */
const clients: Readonly<Record<string, (endpoint: string, maxAttempts: number) => LeaseClient>> = {
  "the SDK": (endpoint, maxAttempts) => {
    const dynamodb = new DynamoDBClient({ endpoint, region, credentials, maxAttempts });
    closing.push(() => dynamodb.destroy());
    return new LeaseClient({ tableName: "leases", dynamodb, randomness });
  },
  "the light store": (endpoint, maxAttempts) => {
    const store = lightStore({ tableName: "leases", endpoint, region, credentials, maxAttempts, randomness });
    closing.push(() => store.destroy());
    return new LeaseClient({ store, randomness });
  },
};

/** Starts a server on a free port, and tells where. */
async function listening(listener: Server): Promise<string> {
  listener.on("error", () => undefined).listen(0, "127.0.0.1");
  await once(listener, "listening");
  closing.push(() => listener.close());
  return `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
}

/** Breaks the connection when the request has arrived. */
const breakOff: Reaction = (response) => response.socket?.destroy();

/** How a write ends: the error of a break, which is one write. */
async function failureOf(client: LeaseClient): Promise<LeaseError> {
  const failure = adminOf(client).forceRelease("k", { token: "t" });
  return await failure.then(
    () => expect.unreachable(),
    (error: LeaseError) => error,
  );
}

describe.each(Object.entries(clients))("by %s, a write has not landed", (_, clientAt) => {
  it.each<[string, () => Promise<string>]>([
    ["nobody listens", async () => "http://127.0.0.1:1"],
    ["the name is not known", async () => "http://no-such-host.invalid"],
    ["the certificate is not trusted", () => listening(createTlsServer({ key, cert }))],
    [
      "the server speaks no TLS",
      () => listening(createServer((socket) => socket.end("HTTP/1.1 400 Bad\r\n\r\n"))),
    ],
    ["the handshake breaks off", () => listening(createServer((socket: Socket) => socket.destroy()))],
  ])("where %s", async (_case, endpoint) => {
    const failure = await failureOf(clientAt(await endpoint(), 1));
    expect(failure).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: false });
  });

  it("where every answer turns it away", async () => {
    server.script(refuse("ThrottlingException"), refuse("ValidationException"));
    expect(await failureOf(clientAt(server.url, 2))).toMatchObject({ mayHaveLanded: false });
    expect(server.requests).toHaveLength(2);
  });
});

describe.each(Object.entries(clients))("by %s, a write may have landed", (_, clientAt) => {
  it("where a connection breaks behind it that has served an earlier one", async () => {
    const client = clientAt(server.url, 1);
    const before = server.connections();
    server.script(refuse("ValidationException"), breakOff);
    expect(await failureOf(client)).toMatchObject({ mayHaveLanded: false });
    expect(await failureOf(client)).toMatchObject({ mayHaveLanded: true });
    expect(server.connections() - before).toBe(1);
  });

  it.each<[string, number, Reaction[]]>([
    ["the connection breaks behind it", 1, [breakOff]],
    ["the service fails", 1, [refuse("InternalServerError", 500)]],
    ["nobody can read the answer of a success", 1, [(response) => response.writeHead(200).end("<html>")]],
    [
      "the answer to an earlier copy was lost, whatever the last one says",
      2,
      [breakOff, refuse("ValidationException")],
    ],
  ])("where %s", async (_case, attempts, reactions) => {
    server.script(...reactions);
    expect(await failureOf(clientAt(server.url, attempts))).toMatchObject({ mayHaveLanded: true });
    expect(server.requests).toHaveLength(attempts);
  });
});

describe("by the light store over TLS, a write", () => {
  const clientAt = (endpoint: string): LeaseClient => {
    const options = { tableName: "leases", endpoint, region, credentials, maxAttempts: 1, randomness };
    const store = lightStore({ ...options, ca: cert });
    closing.push(() => store.destroy());
    return new LeaseClient({ store, randomness });
  };

  it("may have landed where the connection breaks behind it", async () => {
    const endpoint = await listening(
      createTlsServer({ key, cert }, (socket) => socket.once("data", () => socket.destroy())),
    );
    expect(await failureOf(clientAt(endpoint))).toMatchObject({
      code: "LEASE_NO_ANSWER",
      mayHaveLanded: true,
    });
  });

  it("is given up after two seconds, and has not landed, where the handshake hangs", async () => {
    const endpoint = await listening(createServer((socket) => void socket.on("error", () => undefined)));
    expect(await failureOf(clientAt(endpoint))).toMatchObject({
      message: expect.stringContaining("no answer within 2000 ms"),
      mayHaveLanded: false,
    });
  });
});

describe("by a client of the SDK that is the user's", () => {
  const failing = (codes: readonly string[]) => {
    const errors = codes.map((code) => Object.assign(new Error(code), { code }));
    return Object.assign(new AggregateError(errors), { code: codes[0] ?? "ECONNRESET" });
  };
  it.each([
    ["has not landed where each address refuses it", ["ECONNREFUSED", "ECONNREFUSED"], false],
    ["may have landed where one address has broken it off", ["ECONNREFUSED", "ECONNRESET"], true],
    ["may have landed where no address says why", [], true],
  ])("a write %s", async (_case, codes, mayHaveLanded) => {
    const requestHandler = { handle: () => Promise.reject(failing(codes)) };
    const dynamodb = new DynamoDBClient({ region, credentials, maxAttempts: 1, requestHandler });
    const client = new LeaseClient({ tableName: "leases", dynamodb });
    expect(await failureOf(client)).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded });
  });

  it("a write may have landed where a middleware of the user's fails after its success", async () => {
    const dynamodb = new DynamoDBClient({ endpoint: server.url, region, credentials });
    closing.push(() => dynamodb.destroy());
    dynamodb.middlewareStack.add(
      (next) => async (args) => {
        await next(args);
        throw new Error("the log is full");
      },
      { step: "initialize" },
    );
    server.script(say({}));
    const failure = await failureOf(new LeaseClient({ tableName: "leases", dynamodb }));
    expect(failure).toMatchObject({
      mayHaveLanded: true,
      message: expect.stringContaining("the log is full"),
    });
  });
});
