import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { afterAll, beforeAll, describe, inject } from "vitest";
import { jobRunsContract } from "../contract/job-runs-contract.ts";

describe("job runs on the engine", () => {
  const tableName = `leases-${crypto.randomUUID()}`;
  const dynamodb = new DynamoDBClient(inject("engine").clientConfig);
  let now = Date.now;
  // The tests move their clock; the engine's Date header moves along.
  dynamodb.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { headers: Record<string, string> };
      headers.date = new Date(now()).toUTCString();
      return result;
    },
    { step: "deserialize", priority: "low", name: "clockOfTheTest" },
  );

  beforeAll(async () => {
    await createLeaseTable({ tableName, dynamodb });
  });
  afterAll(() => dynamodb.destroy());

  jobRunsContract((clock) => {
    now = () => clock.now();
    return { tableName, dynamodb };
  });
});
