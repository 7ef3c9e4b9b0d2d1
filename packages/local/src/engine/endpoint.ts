import { endpointClientConfig } from "./client-config.ts";
import type { Engine } from "./types.ts";

/**
 * The engine that DYNAMODB_ENDPOINT names, which somebody else starts and stops.
 *
 * `aws` is the real service, with the region and credentials that the SDK finds by itself. Anything else has to be
 * an http or https URL. Throws a TypeError where it is not. Nothing is sent to it yet.
 */
export function endpointEngine(value: string, env: NodeJS.ProcessEnv): Engine {
  if (value === "aws") return engineOf(undefined, "DynamoDB on AWS", {});
  if (!isHttpUrl(value)) {
    throw new TypeError(
      `DYNAMODB_ENDPOINT must be "aws" or an http or https URL such as http://localhost:8000, not "${value}"`,
    );
  }
  return engineOf(value, `DynamoDB at ${value}`, endpointClientConfig(value, env));
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
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function isHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol } = new URL(value);
  return protocol === "http:" || protocol === "https:";
}
