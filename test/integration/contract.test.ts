import { randomUUID } from "node:crypto";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable, systemClock } from "@leasehold/client";
import { availableEngines, startEngine } from "@leasehold/local";
import { afterAll, beforeAll, describe, inject } from "vitest";
import { DynamoDBLeaseStore } from "../../packages/client/src/dynamodb/store.ts";
import { leaseContract } from "../contract/lease-contract.ts";
import { storeContract } from "../contract/store-contract.ts";

// The engine of this run, and whichever others this machine has.
const others = (await availableEngines()).filter((name) => name !== inject("engine").name);

describe.each([inject("engine").name, ...others])("leases on %s", (name) => {
  const tableName = `leases-${randomUUID()}`;
  let dynamodb: DynamoDBClient;
  let now = Date.now;
  let stop = async (): Promise<void> => undefined;

  beforeAll(async () => {
    let { clientConfig } = inject("engine");
    if (name !== inject("engine").name) {
      const engine = await startEngine({ engine: name as "dynamodb-local" | "dynoxide" });
      clientConfig = { ...engine.clientConfig };
      stop = () => engine.stop();
    }
    dynamodb = new DynamoDBClient(clientConfig);
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
    await createLeaseTable({ tableName, dynamodb });
  });

  afterAll(async () => {
    dynamodb?.destroy();
    await stop();
  });

  leaseContract((clock) => {
    now = () => clock.now();
    return { tableName, dynamodb };
  });
  storeContract(() => new DynamoDBLeaseStore(tableName, dynamodb, systemClock));
});
