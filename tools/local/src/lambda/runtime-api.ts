// The Runtime API of one environment: the HTTP interface between Lambda and the client in the process.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { isProgrammerError, throwUncaught } from "../program-errors.ts";

/** What a runtime client is given when it asks for the next invocation. */
export interface Delivery {
  readonly requestId: string;
  readonly payload: string;
  readonly deadlineMs: number;
  readonly functionArn: string;
}

/** The environment's side of its Runtime API. A call that comes too late changes nothing. */
export interface RuntimeApiHost {
  /** The client waits for an invocation; `deliver` answers it. */
  next(deliver: (delivery: Delivery) => void): void;
  /** The handler's result. */
  response(requestId: string, body: string): void;
  error(requestId: string, body: string): void;
  initError(body: string): void;
}

/** A Runtime API server for one environment. */
export interface RuntimeApi {
  /** host:port, the value of AWS_LAMBDA_RUNTIME_API. */
  readonly address: string;
  close(): void;
}

/** Starts the API on a free port of the loopback interface. */
export async function startRuntimeApi(host: RuntimeApiHost): Promise<RuntimeApi> {
  const server: Server = createServer((request, answer) => {
    handle(host, request, answer).catch((error: unknown) => {
      answer.destroy();
      // An aborted request is a client that died: its environment learns that from its process.
      if (isProgrammerError(error)) throwUncaught(error);
    });
  });
  // A client may be stopped for any length of time in the middle of anything.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function handle(host: RuntimeApiHost, request: IncomingMessage, answer: ServerResponse): Promise<void> {
  const path = (request.url ?? "").replace(/^\/2018-06-01\/runtime\//, "");
  const body = await text(request);
  if (request.method === "GET" && path === "invocation/next") {
    host.next((delivery) => deliverTo(answer, delivery));
    return;
  }
  await outputRead();
  const [, id, kind] = /^invocation\/([^/]+)\/(response|error)$/.exec(path) ?? [];
  if (id === undefined) host.initError(body);
  else if (kind === "response") host.response(id, body);
  else host.error(id, body);
  answer.writeHead(202).end();
}

/**
 * Two turns of the event loop: what the function printed before this call is in its pipes already, so the lines are
 * read, and attributed to this invocation, before its caller hears of the result.
 */
async function outputRead(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function deliverTo(answer: ServerResponse, delivery: Delivery): void {
  answer.writeHead(200, {
    "content-type": "application/json",
    "lambda-runtime-aws-request-id": delivery.requestId,
    "lambda-runtime-deadline-ms": String(delivery.deadlineMs),
    "lambda-runtime-invoked-function-arn": delivery.functionArn,
  });
  answer.end(delivery.payload);
}
