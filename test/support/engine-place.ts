import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { type CallOptions, type Clock, createLeaseTable, type LeaseStore } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { DynamoDBLeaseStore } from "../../packages/client/src/stores/sdk/store.ts";
import { PatientClock } from "./patient-clock.ts";
import type { Target } from "./proxy.ts";
import { isLight, lightInPlaceOf, sdkClient } from "./table.ts";

/** A lease table on an engine that lives in the time of the test's own clock. */
export interface EnginePlace {
  /**
   * Where the leases of a test with this clock are kept. The engine's time is the clock's, and a patient clock stands still
   * while a request is under way.
   */
  readonly place: (clock: Clock) => { readonly store: LeaseStore };
  /** For clients that live in the engine's own time. */
  readonly tableName: string;
  readonly dynamodb: DynamoDBClient;
  /** The commands that were sent through it, oldest first; retries of the SDK's left out. */
  readonly sent: string[];
  close(): void;
}

const methods = ["update", "updateMany", "transact", "get", "query", "scan"] as const;

/**
 * A store on an engine whose answers say nothing of the time: that is the time of the test's clock. What the engine says of
 * its own time would be told as a skew, for the test's clock stands still while a slow request is under way. `underWay` holds
 * what has been sent and is not answered.
 */
function inTestTime(store: LeaseStore, underWay: Set<Promise<unknown>>): LeaseStore {
  const untimed = methods.map((name) => {
    const send = store[name].bind(store) as (request: never, call: CallOptions) => Promise<unknown>;
    const sendUntimed = (request: never, { timed: _, ...call }: CallOptions): Promise<unknown> => {
      const watched = send(request, call).finally(() => underWay.delete(watched));
      underWay.add(watched);
      return watched;
    };
    return [name, sendUntimed];
  });
  return { tableName: store.tableName, isLocal: true, ...Object.fromEntries(untimed) };
}

/** Makes a table of its own. The leases' store is the SDK's, unless `storeOf` makes another one. */
export async function makeEnginePlace(
  engine: Target,
  config: DynamoDBClientConfig = {},
  storeOf?: (tableName: string) => LeaseStore,
): Promise<EnginePlace> {
  const tableName = `leases-${crypto.randomUUID()}`;
  const dynamodb = sdkClient(engine, config);
  await createLeaseTable({ tableName, dynamodb });
  return enginePlace(tableName, dynamodb, storeOf?.(tableName));
}

/** Leases in a table that is there. */
export function enginePlace(
  tableName: string,
  dynamodb: DynamoDBClient,
  store: LeaseStore = isLight
    ? lightInPlaceOf(dynamodb, tableName)
    : new DynamoDBLeaseStore(tableName, dynamodb),
): EnginePlace {
  const requests = new Set<Promise<unknown>>();
  const sent: string[] = [];
  dynamodb.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        sent.push(String(commandName).replace(/Command$/, ""));
        const request = next(args).finally(() => requests.delete(request));
        requests.add(request);
        return request;
      },
    { step: "initialize", priority: "high", name: "requestsUnderWay" },
  );
  const idle = async (): Promise<void> => {
    while (requests.size > 0) {
      await Promise.allSettled(requests);
      // What an answer leads to may be another request.
      await settled();
    }
  };
  return {
    place: (clock) => {
      if (clock instanceof PatientClock) clock.waitsFor(idle);
      return { store: inTestTime(store, requests) };
    },
    tableName,
    dynamodb,
    sent,
    close: () => dynamodb.destroy(),
  };
}
