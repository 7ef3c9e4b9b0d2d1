// The HTTP endpoint at which functions find the services of the app.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { functionNameOf } from "../assembly/resolve.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { throwUncaught } from "../program-errors.ts";
import { StatesError } from "../state-machines/errors.ts";
import type { Operations } from "./operations.ts";

/** What the server speaks for. */
export interface ServicesOptions {
  /** Operations by the service's name in the header X-Amz-Target, such as `AWSStepFunctions`. */
  readonly targets: Readonly<Record<string, Operations>>;
  readonly lambda: LambdaRuntime;
}

interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A request that the server itself refuses, under the name that AWS's own API gives the error. */
class RefusedRequest extends Error {
  readonly statusCode: number;

  constructor(name: string, message: string, statusCode = 400) {
    super(message);
    this.name = name;
    this.statusCode = statusCode;
  }
}

/**
 * The services that functions call by an SDK, on a port of this machine: AWS JSON 1.0 and 1.1, and Lambda's Invoke.
 *
 * Signatures are not checked. An unknown operation is answered with an error that names it.
 */
export class ServicesServer {
  readonly #server: Server;
  #options: ServicesOptions | undefined;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#handle(request)
        .catch((error: unknown) => failure(error))
        .then((answer) => send(response, answer))
        .catch((error: unknown) => {
          response.destroy();
          throwUncaught(error);
        });
    });
  }

  /** Starts listening on a free port. Until serve() is called, it answers that it is not ready. */
  static async start(): Promise<ServicesServer> {
    const services = new ServicesServer();
    await new Promise<void>((resolve, reject) => {
      services.#server.once("error", reject);
      services.#server.listen(0, "127.0.0.1", resolve);
    });
    services.#server.unref();
    return services;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Says what to answer with. */
  serve(options: ServicesOptions): void {
    this.#options = options;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage): Promise<Answer> {
    const body = await text(request);
    if (this.#options === undefined) {
      throw new RefusedRequest("ServiceUnavailable", "the app is still starting", 503);
    }
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
    const name = /^\/2015-03-31\/functions\/(.+)\/invocations$/.exec(path)?.[1];
    if (name !== undefined) return invoke(this.#options, name, request, body);
    return perform(this.#options, request, body);
  }
}

function perform({ targets }: ServicesOptions, request: IncomingMessage, body: string): Answer {
  const target = String(request.headers["x-amz-target"] ?? "");
  const [service = "", operationName = ""] = target.split(".");
  const operation = targets[service]?.[operationName];
  if (operation === undefined) {
    const known = Object.entries(targets).map(([name, operations]) => `${name}.${Object.keys(operations)}`);
    const asked = target || `${request.method} ${request.url}`;
    throw new RefusedRequest(
      "UnknownOperationException",
      `${asked} is not done here; known are ${known.join("; ")}`,
    );
  }
  const result = operation(parse(body) as Readonly<Record<string, unknown>>);
  const contentType = String(request.headers["content-type"] ?? "application/x-amz-json-1.0");
  return { statusCode: 200, headers: { "content-type": contentType }, body: withEpochTimes(result) };
}

async function invoke(
  { lambda }: ServicesOptions,
  nameOrArn: string,
  request: IncomingMessage,
  body: string,
): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const name = functionNameOf(nameOrArn);
  const payload = body === "" ? undefined : parse(body);
  if (request.headers["x-amz-invocation-type"] === "Event") {
    throw new RefusedRequest("InvalidParameterValueException", "asynchronous invocations are not done here");
  }
  const answer = await lambda.invoke(name, payload);
  const failed = answer.functionError === undefined ? {} : { "x-amz-function-error": answer.functionError };
  return {
    statusCode: 200,
    headers: { ...headers, ...failed, "x-amz-executed-version": "$LATEST" },
    body: JSON.stringify(answer.payload) ?? "null",
  };
}

function parse(body: string): unknown {
  try {
    return body === "" ? {} : JSON.parse(body);
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    throw new RefusedRequest("SerializationException", "the body is not JSON");
  }
}

/** AWS JSON has times as seconds since the epoch. */
function withEpochTimes(members: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(members, function replace(this: Record<string, unknown>, name, value: unknown) {
    const original = this[name];
    return original instanceof Date ? original.getTime() / 1000 : value;
  });
}

/** The interpreter has the API's name of an error in `error`; Lambda's own refusals are named as the API names them. */
function failure(error: unknown): Answer {
  const { name, message } =
    error instanceof StatesError
      ? { name: error.error, message: error.cause ?? error.error }
      : error instanceof Error
        ? error
        : new Error(String(error));
  const ownCode = error instanceof RefusedRequest ? error.statusCode : statusCodes[name];
  const statusCode = ownCode ?? (error instanceof StatesError ? 400 : 500);
  return {
    statusCode,
    headers: { "content-type": "application/x-amz-json-1.0", "x-amzn-errortype": name },
    body: JSON.stringify({ __type: name, message }),
  };
}

const statusCodes: Readonly<Record<string, number>> = {
  ResourceNotFoundException: 404,
  TooManyRequestsException: 429,
};

function send(response: ServerResponse, { statusCode, headers, body }: Answer): void {
  response.writeHead(statusCode, { ...headers, "x-amzn-requestid": crypto.randomUUID() });
  response.end(body);
}
