import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { once } from "./environment.ts";

/**
 * The connection of this execution environment to DynamoDB.
 *
 * DynamoDB answers in milliseconds: an answer that takes seconds is taken for lost, and the SDK tries again. Without
 * these limits it would wait until Lambda ends the invocation.
 */
export const dynamodb: () => DynamoDBClient = once(
  () =>
    new DynamoDBClient({
      requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
    }),
);
