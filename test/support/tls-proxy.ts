import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { pipeline } from "node:stream";
import { createServer } from "node:tls";
import type { Target } from "./proxy.ts";

const folder = new URL("./tls/", import.meta.url);

/** HTTPS in front of an engine that speaks HTTP. */
export interface TlsProxy extends Target {
  /** What has to be trusted: a certificate of the tests' own, for localhost, valid until 2126. */
  readonly ca: string;
  close(): Promise<void>;
}

/** Starts a proxy that ends TLS on a free port. */
export async function startTlsProxy(engine: Target): Promise<TlsProxy> {
  const { endpoint } = engine.clientConfig as { readonly endpoint: string };
  const { hostname, port } = new URL(endpoint);
  const [key, ca] = await Promise.all(
    ["localhost.key.pem", "localhost.cert.pem"].map((name) => readFile(new URL(name, folder), "utf8")),
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
