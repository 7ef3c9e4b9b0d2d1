import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { acceptanceKeyPrefix } from "../../functions/acceptance/schema.ts";
import { documentedOperations } from "../../tools/bench/operations/index.ts";
import { listedRequests, Meter } from "../../tools/bench/operations/metered.ts";
import type { DocumentedOperation, OperationSite } from "../../tools/bench/operations/promised.ts";
import { StoppedProcess } from "../../tools/bench/operations/stopped-process.ts";
import { type Check, checked } from "./check.ts";
import type { Deployment } from "./deployment.ts";
import { keepToKeySpace } from "./key-space.ts";

/** Counts the requests of every operation that the documentation gives a number for, and what they are billed. */
export async function checkRequests(deployment: Deployment, signal: AbortSignal): Promise<Check[]> {
  const dynamodb = new DynamoDBClient({});
  keepToKeySpace(dynamodb);
  const site = new MeteredSite(deployment.tableName, dynamodb);
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
  site: MeteredSite,
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

class MeteredSite implements OperationSite {
  readonly #tableName: string;
  readonly #dynamodb: DynamoDBClient;
  readonly #meter: Meter;
  #keys = 0;
  #taken: ReturnType<Meter["take"]> | undefined;

  constructor(tableName: string, dynamodb: DynamoDBClient) {
    this.#tableName = tableName;
    this.#dynamodb = dynamodb;
    this.#meter = new Meter(dynamodb);
  }

  readonly client = (options: object = {}): LeaseClient =>
    new LeaseClient({ tableName: this.#tableName, dynamodb: this.#dynamodb, ...options });

  readonly newKey = (): string => {
    this.#keys += 1;
    return `${acceptanceKeyPrefix}requests/${Date.now()}/${this.#keys}`;
  };

  readonly counted = async <T>(perform: () => Promise<T>): Promise<T> => {
    this.#meter.take();
    const result = await perform();
    this.#taken = this.#meter.take();
    return result;
  };

  readonly stopped = (agoMs = 0): StoppedProcess =>
    new StoppedProcess(this.#tableName, this.#dynamodb, agoMs);

  async measure(operation: DocumentedOperation): Promise<ReturnType<Meter["take"]>> {
    this.#taken = undefined;
    await operation.perform(this);
    if (this.#taken === undefined) throw new Error("nothing was counted");
    return this.#taken;
  }
}
