import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Clock, createLeaseTable } from "@leasehold/client";
import type { Target } from "./proxy.ts";
import { sdkClient } from "./table.ts";

/** A lease table on an engine whose Date header tells the time of the test's own clock. */
export interface EnginePlace {
  /** Where the leases of a test with this clock are kept. */
  readonly place: (clock: Pick<Clock, "now">) => {
    readonly tableName: string;
    readonly dynamodb: DynamoDBClient;
  };
  close(): void;
}

/** Makes a table of its own. */
export async function makeEnginePlace(engine: Target): Promise<EnginePlace> {
  const tableName = `leases-${crypto.randomUUID()}`;
  const dynamodb = sdkClient(engine);
  let now = Date.now;
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
  return {
    place: (clock) => {
      now = () => clock.now();
      return { tableName, dynamodb };
    },
    close: () => dynamodb.destroy(),
  };
}
