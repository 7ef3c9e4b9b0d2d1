// The engine at an endpoint. It belongs to its user: nothing here starts, stops or cleans it.

import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { endpointClientConfig } from "./client-config.ts";
import { EndpointUnreachableError, InvalidEndpointError } from "./errors.ts";
import type { Engine } from "./types.ts";

/** A running engine answers at once, whatever it answers; a network that swallows packets never does. */
const answerTimeoutMs = 5_000;

/**
 * The engine that DYNAMODB_ENDPOINT names. It is neither started nor stopped here.
 *
 * `aws` is the real service, with the region and credentials that the SDK finds by itself, and nothing is sent to it
 * yet. Anything else has to be an http or https URL where a DynamoDB answers: one request is sent, without credentials.
 *
 * Rejects with InvalidEndpointError, with EndpointUnreachableError within 5 s, and with the signal's reason.
 */
export async function endpointEngine(
  value: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<Engine> {
  if (value === "aws") return engineOf(undefined, "DynamoDB on AWS", {});
  if (!isHttpUrl(value)) throw new InvalidEndpointError(value);
  const problem = await problemAt(value, signal);
  signal?.throwIfAborted();
  if (problem !== undefined) throw new EndpointUnreachableError(value, problem);
  return engineOf(value, `DynamoDB at ${value}`, endpointClientConfig(value, env));
}

/** Resolves to why a URL is no DynamoDB, or to undefined if one answers, whatever the answer is. */
function problemAt(url: string, signal: AbortSignal | undefined): Promise<string | undefined> {
  const request = url.startsWith("https:") ? requestHttps : requestHttp;
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-target": "DynamoDB_20120810.ListTables",
  };
  return new Promise((resolve) => {
    const probe = request(url, { method: "POST", headers, agent: false, ...(signal && { signal }) });
    const timer = setTimeout(
      () => probe.destroy(new Error(`no answer within ${answerTimeoutMs / 1000} s`)),
      answerTimeoutMs,
    );
    probe.once("close", () => clearTimeout(timer));
    probe.once("response", (response) => {
      response.resume();
      // Every answer of DynamoDB has a request id, even the refusal of a request without credentials; a proxy's has
      // none.
      const isDynamoDb = response.headers["x-amzn-requestid"] !== undefined;
      resolve(
        isDynamoDb ? undefined : `what answers is something else, with HTTP status ${response.statusCode}`,
      );
    });
    probe.on("error", (error: NodeJS.ErrnoException) => resolve(error.message || error.code || error.name));
    probe.end("{}");
  });
}

function engineOf(
  endpoint: string | undefined,
  version: string,
  clientConfig: Engine["clientConfig"],
): Engine {
  const stop = async (): Promise<void> => {};
  return {
    name: "endpoint",
    version,
    endpoint,
    pid: undefined,
    clientConfig,
    exited: new Promise(() => {}),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function isHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol } = new URL(value);
  return protocol === "http:" || protocol === "https:";
}
