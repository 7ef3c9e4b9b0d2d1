import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { environmentNames } from "@leasehold/client/environment";
import { afterAll } from "vitest";
import { type EnginePlace, enginePlace } from "../../support/engine-place.ts";
import { keepToKeySpace, readConsistently } from "../key-space.ts";

/** The deployed lease table, for a contract. Its tests live in the time of their own clocks. */
export function deployedPlace(): EnginePlace {
  const dynamodb = new DynamoDBClient({});
  keepToKeySpace(dynamodb);
  readConsistently(dynamodb);
  afterAll(() => dynamodb.destroy());
  return enginePlace(String(process.env[environmentNames.tableName]), dynamodb);
}
