import {
  type DynamoDBSender,
  LeaseClient,
  type LeaseEvent,
  type LeaseEventListener,
} from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { metricsListener } from "@leasehold/client/metrics";
import { optional, required } from "./environment.ts";

/** Makes a lease client for the table that the environment names; its events become metrics and log lines. */
export function leaseClient(dynamodb: DynamoDBSender): LeaseClient {
  const tableName = required(environmentNames.tableName);
  return new LeaseClient({ tableName, dynamodb, onEvent: telling(tableName) });
}

/** The same for leases that another program holds after the invocation. */
export function handingOnClient(dynamodb: DynamoDBSender): LeaseClient {
  const tableName = required(environmentNames.tableName);
  return new LeaseClient({ tableName, dynamodb, onEvent: unlessHandedOn(telling(tableName)) });
}

/**
 * Leaves out that a lease's time has passed here: it was handed on, and its holder renews it elsewhere. Whether it was
 * lost is for the holder to say, or for the table's stream.
 */
export function unlessHandedOn(listener: LeaseEventListener): LeaseEventListener {
  return (event) => {
    if (event.type !== "lost" || event.reason !== "expired") listener(event);
  };
}

/** Makes every event a measurement, and a line for people and queries; no event carries a token or a payload. */
function telling(tableName: string): LeaseEventListener {
  const measure = metricsListener({ tableName, job: optional(environmentNames.job) });
  return (event) => {
    measure(event);
    const level = alarming.includes(event.type) ? "WARN" : "INFO";
    const time = new Date().toISOString();
    console.log(JSON.stringify({ time, level, message: `lease ${event.type}`, lease: event }, readable));
  };
}

const alarming: readonly LeaseEvent["type"][] = ["takeover", "lost", "skew", "completionFailed", "error"];

/** Errors have no JSON of their own. */
function readable(_key: string, value: unknown): unknown {
  return value instanceof Error ? (value.stack ?? String(value)) : value;
}

/** Writes a line for people, queries and alarms. */
export function warn(message: string, fields: Readonly<Record<string, unknown>>): void {
  console.log(JSON.stringify({ time: new Date().toISOString(), level: "WARN", message, ...fields }));
}
