// The HTTP endpoint at which functions find the services of the app.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { functionNameOf } from "../assembly/resolve.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { StatesError } from "../state-machines/errors.ts";
import type { Members, Operations } from "./operations.ts";

/** What the server speaks for. */
export interface Services {
  /** Operations by the service's name in the header X-Amz-Target, such as `AWSStepFunctions`. */
  readonly targets: Readonly<Record<string, Operations>>;
  readonly lambda: LambdaRuntime;
}

/** A server of the services that functions call. */
export interface ServicesServer {
  readonly endpoint: string;
  close(): Promise<void>;
}

interface Answer {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Serves what functions call by an SDK, on a free port of this machine: AWS JSON 1.0 and 1.1, and Lambda's Invoke.
 *
 * Signatures are not checked. An unknown operation is answered with an error that names it.
 *
 * @param services what answers, from the first request on
 */
export async function startServices(services: () => Services): Promise<ServicesServer> {
  const server = createServer(async (request, response) => {
    const { statusCode = 200, headers, body } = await answerTo(request, services).catch(failure);
    const contentType = String(request.headers["content-type"] ?? "application/json");
    response.writeHead(statusCode, {
      "content-type": contentType,
      "x-amzn-requestid": crypto.randomUUID(),
      ...headers,
    });
    response.end(body);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  server.unref();
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answerTo(request: IncomingMessage, services: () => Services): Promise<Answer> {
  const body = JSON.parse((await text(request)) || "{}") as Members;
  const { targets, lambda } = services();
  const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
  const name = /^\/2015-03-31\/functions\/(.+)\/invocations$/.exec(path)?.[1];
  if (name !== undefined && request.headers["x-amz-invocation-type"] !== "Event") {
    return invoke(lambda, name, body);
  }
  const target = String(request.headers["x-amz-target"] ?? "");
  const [service = "", operationName = ""] = target.split(".");
  const operation = targets[service]?.[operationName];
  if (operation !== undefined) return { body: withEpochTimes(operation(body)) };
  const known = Object.entries(targets).map(([one, operations]) => `${one}.${Object.keys(operations)}`);
  const asked = target || `${request.method} ${request.url}`;
  const cause = `${asked} is not done here; known are ${known.join("; ")}`;
  throw new StatesError("UnknownOperationException", cause);
}

async function invoke(lambda: LambdaRuntime, nameOrArn: string, payload: Members): Promise<Answer> {
  const answer = await lambda.invoke(functionNameOf(nameOrArn), payload);
  const failed = answer.functionError === undefined ? {} : { "x-amz-function-error": answer.functionError };
  return {
    headers: { ...failed, "x-amz-executed-version": "$LATEST" },
    body: JSON.stringify(answer.payload),
  };
}

/** AWS JSON has times as seconds since the epoch. */
function withEpochTimes(members: Members): string {
  return JSON.stringify(members, function replace(this: Record<string, unknown>, name, value: unknown) {
    const original = this[name];
    return original instanceof Date ? original.getTime() / 1000 : value;
  });
}

/** The interpreter has the API's name of an error in `error`; Lambda's own refusals are named as the API names them. */
function failure(thrown: unknown): Answer {
  const { name, message } =
    thrown instanceof StatesError
      ? { name: thrown.error, message: thrown.cause ?? thrown.error }
      : (thrown as Error);
  return {
    statusCode: statusCodes[name] ?? (thrown instanceof StatesError ? 400 : 500),
    headers: { "x-amzn-errortype": name },
    body: JSON.stringify({ __type: name, message }),
  };
}

const statusCodes: Readonly<Record<string, number>> = {
  ResourceNotFoundException: 404,
  TooManyRequestsException: 429,
};
