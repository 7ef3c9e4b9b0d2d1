import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import {
  type CallOptions,
  type Clock,
  createLeaseTable,
  type LeaseStore,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { DynamoDBLeaseStore } from "../../packages/client/src/dynamodb/store.ts";
import { PassingStore } from "../../packages/client/src/passing-store.ts";
import { PatientClock } from "./patient-clock.ts";
import type { Target } from "./proxy.ts";
import { sdkClient } from "./table.ts";

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

/**
 * A store on an engine whose answers say nothing of the time: that is the time of the test's clock. What the engine says of
 * its own time would be told as a skew, for the test's clock stands still while a slow request is under way.
 */
class StoreInTestTime extends PassingStore {
  override readonly isLocal = true;

  override update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    return super.update(request, untimed(options));
  }

  override updateMany(
    ...[requests, options]: Parameters<LeaseStore["updateMany"]>
  ): ReturnType<LeaseStore["updateMany"]> {
    return super.updateMany(requests, untimed(options));
  }

  override transact(
    ...[entries, options]: Parameters<LeaseStore["transact"]>
  ): ReturnType<LeaseStore["transact"]> {
    return super.transact(entries, untimed(options));
  }

  override get(...[request, options]: Parameters<LeaseStore["get"]>): ReturnType<LeaseStore["get"]> {
    return super.get(request, untimed(options));
  }

  override query(...[request, options]: Parameters<LeaseStore["query"]>): ReturnType<LeaseStore["query"]> {
    return super.query(request, untimed(options));
  }

  override scan(...[request, options]: Parameters<LeaseStore["scan"]>): ReturnType<LeaseStore["scan"]> {
    return super.scan(request, untimed(options));
  }
}

function untimed({ timed: _, ...options }: CallOptions): CallOptions {
  return options;
}

/** Makes a table of its own. */
export async function makeEnginePlace(
  engine: Target,
  config: DynamoDBClientConfig = {},
): Promise<EnginePlace> {
  const tableName = `leases-${crypto.randomUUID()}`;
  const dynamodb = sdkClient(engine, config);
  await createLeaseTable({ tableName, dynamodb });
  return enginePlace(tableName, dynamodb);
}

/** Leases in a table that is there. */
export function enginePlace(tableName: string, dynamodb: DynamoDBClient): EnginePlace {
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
      return { store: new StoreInTestTime(new DynamoDBLeaseStore(tableName, dynamodb)) };
    },
    tableName,
    dynamodb,
    sent,
    close: () => dynamodb.destroy(),
  };
}
