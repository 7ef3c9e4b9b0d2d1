import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { pipeline } from "node:stream";
import { createServer } from "node:tls";
import { LeaseClient, type LightStore } from "@leasehold/client/light";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { leaseContract } from "../contract/lease-contract.ts";
import { storeContract } from "../contract/store-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import type { Target } from "../support/proxy.ts";
import { lightStoreOn } from "../support/table.ts";

const engine = inject("engine");
const certificates = new URL("../support/tls/", import.meta.url);
let tls: TlsProxy;

beforeAll(async () => {
  tls = await startTlsProxy(engine);
});
afterAll(() => tls.close());

describe("leases in the light store", () => {
  let place: EnginePlace;
  let store: LightStore;
  let encrypted: LightStore;

  beforeAll(async () => {
    place = await makeEnginePlace(engine, {}, (tableName) => {
      store = lightStoreOn(engine, { tableName });
      encrypted = lightStoreOn(tls, { tableName, ca: tls.ca });
      return store;
    });
  });
  afterAll(() => {
    store.destroy();
    encrypted.destroy();
    place.close();
  });

  leaseContract((clock) => place.place(clock));
  describe("by http", () => storeContract(() => store));
  describe("by https", () => storeContract(() => encrypted));
});

test("a certificate that is not trusted ends the call at once, with a named error, and nothing is held", async () => {
  const store = lightStoreOn(tls, { tableName: "leases" });
  const client = new LeaseClient({ store });
  await expect(client.acquire("one")).rejects.toMatchObject({
    code: "LEASE_NO_ANSWER",
    message: expect.stringContaining("self-signed certificate"),
  });
  expect(client.held()).toEqual([]);
});

/** HTTPS in front of an engine that speaks HTTP. */
interface TlsProxy extends Target {
  /** What has to be trusted: a certificate of the tests' own, for localhost, valid until 2126. */
  readonly ca: string;
  close(): Promise<void>;
}

/** Starts a proxy that ends TLS on a free port. */
async function startTlsProxy(engine: Target): Promise<TlsProxy> {
  const { endpoint } = engine.clientConfig as { readonly endpoint: string };
  const { hostname, port } = new URL(endpoint);
  const [key, ca] = await Promise.all(
    ["localhost.key.pem", "localhost.cert.pem"].map((name) => readFile(new URL(name, certificates), "utf8")),
  );
  const server = createServer({ key: key ?? "", cert: ca ?? "" }, (socket) => {
    const upstream = connect(Number(port), hostname);
    // Ignored: either end may break a connection, and the other end sees it.
    pipeline(socket, upstream, socket, () => undefined);
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: own } = server.address() as AddressInfo;
  return {
    ca: ca ?? "",
    clientConfig: { ...engine.clientConfig, endpoint: `https://localhost:${own}` },
    close: async () => {
      server.close();
      await once(server, "close");
    },
  };
}
