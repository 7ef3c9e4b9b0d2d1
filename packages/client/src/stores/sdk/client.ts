import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError } from "../../base/errors.ts";
import { Sha256 } from "./sha256.ts";

/**
 * Creates the client for users who do not bring their own.
 *
 * DynamoDB answers in milliseconds. So an answer that takes seconds counts as lost, and the SDK tries again on another
 * connection. By default the SDK would wait for ever. Connections are kept alive. For less CPU, the middleware of an
 * operation is resolved once, for calls without options, and the keys of signatures are kept. Throws
 * InvalidOptionsError if the SDK is too old.
 */
export function createDynamoDBClient(): DynamoDBClient {
  const client = new DynamoDBClient({
    cacheMiddleware: true,
    sha256: Sha256 as NonNullable<DynamoDBClientConfig["sha256"]>,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
  });
  // An older SDK takes the settings themselves for the handler.
  if (typeof client.config.requestHandler.handle !== "function") throw tooOldSdk();
  return client;
}

/** The error of an SDK below the range of the peer dependency. */
export function tooOldSdk(): InvalidOptionsError {
  const advice = "npm install @aws-sdk/client-dynamodb@latest";
  return new InvalidOptionsError("the version of @aws-sdk/client-dynamodb", undefined, "3.521.0 or newer", {
    finding: "is too old",
    advice,
  });
}
