import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { acceptanceKeyPrefix } from "../../functions/acceptance/schema.ts";
import { documentedOperations } from "../../tools/bench/operations/index.ts";
import { listedRequests } from "../../tools/bench/operations/metered.ts";
import { type DocumentedOperation, OperationSite } from "../../tools/bench/operations/promised.ts";
import { type Check, checked } from "./check.ts";
import type { Deployment } from "./deployment.ts";
import { keepToKeySpace } from "./key-space.ts";

/** Counts the requests of every operation that the documentation gives a number for, and what they are billed. */
export async function checkRequests(deployment: Deployment, signal: AbortSignal): Promise<Check[]> {
  const dynamodb = new DynamoDBClient({});
  keepToKeySpace(dynamodb);
  const { tableName } = deployment;
  let keys = 0;
  const site = new OperationSite({
    tableName,
    dynamodb,
    client: (options) => new LeaseClient({ tableName, dynamodb, ...options }),
    newKey: () => {
      keys += 1;
      return `${acceptanceKeyPrefix}requests/${Date.now()}/${keys}`;
    },
  });
  // One request before the counted ones: it opens the connection and learns the service's time.
  await (await site.client().acquire(site.newKey())).release();
  try {
    const checks: Check[] = [];
    for (const operation of documentedOperations) {
      // Acceptance keeps to its own keys.
      if (operation.writesElsewhere) continue;
      checks.push(await checkOperation(operation, site, signal));
      signal.throwIfAborted();
    }
    return checks;
  } finally {
    dynamodb.destroy();
  }
}

function checkOperation(
  operation: DocumentedOperation,
  site: OperationSite,
  signal: AbortSignal,
): Promise<Check> {
  const { of, name, requests, writeUnits, readUnits } = operation;
  const promised = billed(requests, writeUnits, readUnits);
  const perform = async (): Promise<{ measured: string; holds: boolean }> => {
    const { sent, tookMs, ...units } = await site.measure(operation);
    const seen = billed(
      listedRequests(sent),
      writeUnits === undefined ? 0 : units.writeUnits,
      readUnits === undefined ? 0 : units.readUnits,
    );
    const ms = tookMs.reduce((sum, each) => sum + each, 0);
    return { measured: `${seen}, ${ms.toFixed(0)} ms`, holds: seen === promised };
  };
  return checked(`${of}: ${name}`, promised, perform, signal);
}

function billed(requests: string, writeUnits = 0, readUnits = 0): string {
  const units = [writeUnits > 0 ? `${writeUnits} write` : "", readUnits > 0 ? `${readUnits} read` : ""];
  return [requests, ...units.filter((text) => text !== "")].join(", ");
}
