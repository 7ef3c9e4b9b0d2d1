import { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/**
 * Makes the client that is used where the user brings none.
 *
 * DynamoDB answers in milliseconds: an answer that takes seconds is taken for lost, and the SDK tries again on
 * another connection. The SDK alone would wait for ever. Connections are kept alive.
 */
export function createDynamoDBClient(): DynamoDBClient {
  return new DynamoDBClient({
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
  });
}
