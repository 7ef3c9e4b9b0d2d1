import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as it arrived. */
export interface ArrivedRequest {
  readonly method: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly path: string;
  readonly body: string;
}

/** What a server does with one request; the last one of a script is for all that follow. */
export type Reaction = (response: ServerResponse, request: ArrivedRequest) => void;

/** An HTTP server on this machine that does what a test tells it. */
export interface ScriptedServer {
  readonly url: string;
  readonly requests: readonly ArrivedRequest[];
  /** How many connections it has seen. */
  connections(): number;
  script(...reactions: Reaction[]): void;
  close(): Promise<void>;
}

/** Starts one on a free port. */
export async function startScriptedServer(): Promise<ScriptedServer> {
  let requests: ArrivedRequest[] = [];
  let reactions: Reaction[] = [];
  let connections = 0;
  const server = createServer(async (incoming, response) => {
    // The time of these tests is not the server's.
    response.sendDate = false;
    let body = "";
    for await (const chunk of incoming.setEncoding("utf8")) body += chunk;
    const { method, headers, url = "" } = incoming;
    const request = { method, headers, path: url, body };
    requests.push(request);
    const reaction = reactions.length > 1 ? reactions.shift() : reactions[0];
    reaction?.(response, request);
  });
  server.keepAliveTimeout = 0;
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests;
    },
    connections: () => connections,
    script: (...next) => {
      requests = [];
      reactions = next;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers in JSON, as DynamoDB does. */
export function say(body: unknown, status = 200, headers: Record<string, string> = {}): Reaction {
  return (response) =>
    response
      .writeHead(status, { "content-type": "application/x-amz-json-1.0", ...headers })
      .end(JSON.stringify(body));
}

/** Answers with an error of DynamoDB's. */
export function refuse(name: string, status = 400, headers: Record<string, string> = {}): Reaction {
  return say(
    { __type: `com.amazonaws.dynamodb.v20120810#${name}`, message: "as the test wants it" },
    status,
    headers,
  );
}
