import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import https, { type AgentOptions } from "node:https";
import type { TLSSocket } from "node:tls";
import { aborted, onAbort } from "../../base/abort.ts";

/** Sends requests by HTTP or by HTTPS. */
export type SendRequest = (options: RequestOptions) => ClientRequest;

/** The part of node:http or node:https that is used here. */
interface HttpModule {
  readonly request: SendRequest;
  readonly Agent: new (options: AgentOptions) => Agent;
}

/** An answer, read to its end. */
interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Every answer of DynamoDB is shorter. */
const mostCharacters = 16 * 1024 * 1024;
/** Connections that were made. Node marks a request on such a one as reusing it only if it did not wait for it. */
const standing = new WeakSet<object>();

/** Returns Node's module for a URL's protocol. */
export async function httpModule(protocol: string): Promise<HttpModule> {
  if (protocol === "https:") return https;
  // An `import` also loads all of undici, because the module exports its WebSocket: 40 ms. Node 22.3 is the first
  // version with another way.
  return process.getBuiltinModule?.("node:http") ?? (await import("node:http"));
}

/**
 * Sends one request and reads its answer. Rejects without a complete answer: the connection fails, or is silent for
 * `timeout` milliseconds, or the signal aborts, or the answer has no end. The error's `$wasSent` says whether there was
 * a connection: without one, no byte of the request has left.
 */
export function exchange(
  send: SendRequest,
  options: RequestOptions,
  body: string,
  signal?: AbortSignal,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    let wasSent = false;
    const refuse = (error: Error): void => reject(Object.assign(error, { $wasSent: wasSent }));
    if (signal?.aborted) {
      refuse(aborted());
      return;
    }
    const request = send(options);
    request.on("socket", (socket) => {
      const stands = (): void => {
        standing.add(socket);
        wasSent = true;
      };
      if (request.reusedSocket || standing.has(socket)) stands();
      else socket.once((socket as TLSSocket).encrypted ? "secureConnect" : "connect", stands);
    });
    const end = (settle: () => void): void => {
      ignore();
      settle();
    };
    const fail = (error: Error): void => {
      end(() => refuse(error));
      request.destroy();
    };
    request.on("error", fail);
    request.on("timeout", () => fail(unanswered(`no answer within ${options.timeout} ms`)));
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (text.length > mostCharacters)
          fail(unanswered(`an answer of more than ${mostCharacters} characters`));
      });
      // The connection has ended before its answer.
      response.on("error", fail);
      response.on("end", () => {
        const { statusCode = 0, headers } = response;
        end(() => resolve({ status: statusCode, headers, body: text }));
      });
    });
    const ignore = onAbort(signal, () => fail(aborted()));
    request.end(body);
  });
}

/** The error of an attempt without a readable answer; another attempt may get one. */
export function unanswered(message: string): Error {
  return Object.assign(new Error(message), { name: "UnansweredError" });
}

/** An answer of DynamoDB: an object in JSON, with the members that a store reads. */
export interface Said {
  readonly __type?: unknown;
  readonly message?: unknown;
  readonly Message?: unknown;
  readonly Attributes?: unknown;
  readonly Item?: unknown;
  readonly CancellationReasons?: unknown;
}

/** Reads DynamoDB's answer; undefined if the answer is not DynamoDB's. */
export function readAnswer({ status, headers, body }: HttpAnswer): Said | undefined {
  try {
    const said: Said = JSON.parse(body);
    const isOurs = isMap(said) && Object.entries(said).every(([name, value]) => forms[name]?.(value) ?? true);
    const isNamed =
      status === 200
        ? // Each engine sends one of the two, and a proxy's JSON has neither.
          headers["x-amzn-requestid"] || /x-amz-json/.test(String(headers["content-type"]))
        : typeof said.__type === "string";
    return isOurs && isNamed ? said : undefined;
  } catch {
    // Ignored: it is no JSON.
    return undefined;
  }
}

/** The service's error, with its name, as the SDK would throw it. */
export function serviceError({ status }: HttpAnswer, said: Said): Error {
  const { __type, message, Message = message, Item, CancellationReasons } = said;
  return Object.assign(new Error(String(Message ?? "it gives no reason")), {
    name: String(__type).replace(/^.*#/, ""),
    $metadata: { httpStatusCode: status },
    Item,
    CancellationReasons,
  });
}

/** The error of an answer that is not DynamoDB's, but a proxy's, or that of another service's endpoint. */
export function foreignAnswer({ status, headers, body }: HttpAnswer): Error {
  const { location, "content-type": type = "no content type", "content-encoding": encoding } = headers;
  const parts = [
    `status ${status}`,
    type,
    encoding,
    location && `a redirection to ${location}`,
    `${body.length} characters that begin with ${JSON.stringify(body.slice(0, 60))}`,
  ].filter(Boolean);
  const error = unanswered(`the answer is not DynamoDB's: ${parts.join(", ")}`);
  // After an unreadable success, a write may have landed.
  return status < 300 ? error : Object.assign(error, { $metadata: { httpStatusCode: status } });
}

type FormTest = (value: unknown) => boolean;

const isMap: FormTest = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isItem: FormTest = (value) => isMap(value) && Object.values(value as object).every(isMap);
const listOf =
  (isPart: FormTest): FormTest =>
  (value) =>
    Array.isArray(value) && value.every(isPart);
const isResult: FormTest = (value) => isMap(value) && isItem((value as Said).Item ?? {});
const forms: Readonly<Record<string, FormTest>> = {
  Attributes: isItem,
  Item: isItem,
  LastEvaluatedKey: isItem,
  Items: listOf(isItem),
  Responses: listOf(isResult),
  CancellationReasons: listOf(isResult),
};
