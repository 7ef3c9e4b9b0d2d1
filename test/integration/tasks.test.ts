import { randomUUID } from "node:crypto";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { afterAll, beforeAll, describe, inject } from "vitest";
import { tasksContract } from "../contract/tasks-contract.ts";

describe("tasks on the engine", () => {
  const tableName = `tasks-${randomUUID()}`;
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

  beforeAll(() => createLeaseTable({ tableName, dynamodb }).then(() => undefined));
  afterAll(() => dynamodb.destroy());

  tasksContract((clock) => {
    now = () => clock.now();
    return { tableName, dynamodb };
  });
});
