/**
 * dynamodb-lock-client 0.7.3, the package itself, on today's SDK. It was written for the document client of the AWS SDK 2, which is no
 * longer supported: a thin adapter gives it that client's three calls. Only the form of errors differs: SDK 2 has their
 * name in `code`.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocument } from "@aws-sdk/lib-dynamodb";
import lockClient, {
  type FailOpenConfig,
  type Lock,
  type Locker,
  type LockTable,
} from "dynamodb-lock-client";
import type { Contender, HeldLock, Holding, LockClient, Place } from "../contender.ts";

/** Its waits end with the count of retries only: so it is as good as unbounded here, and a closed adapter ends them. */
const retryCount = 1_000_000;
/** How often FailClosed tries: as often as the AWS Java client looks. The package has no default. */
const acquirePeriodMs = 1_000;

type Answered = (error?: Error, answer?: unknown) => void;

/** The document client of the AWS SDK 2, as far as the package needs it. */
function asSdk2(dynamodb: DynamoDBClient, signal?: AbortSignal): LockTable["dynamodb"] {
  const document = DynamoDBDocument.from(dynamodb);
  const call =
    <Params>(send: (params: Params) => Promise<unknown>) =>
    (params: object, callback: Answered): void => {
      const sent = signal?.aborted ? Promise.reject(new Error("closed")) : send(params as Params);
      sent.then(
        (answer) => callback(undefined, answer),
        (error: Error) => callback(Object.assign(error, { code: error.name })),
      );
    };
  return {
    get: call(document.get.bind(document)),
    put: call(document.put.bind(document)),
    delete: call(document.delete.bind(document)),
  };
}

class CallbackLocks implements LockClient {
  readonly #end = new AbortController();
  readonly #locker: Locker;

  constructor({ dynamodb, plainTable: lockTable }: Place, locker: (table: LockTable) => Locker) {
    const sdk2 = asSdk2(dynamodb, this.#end.signal);
    this.#locker = locker({ dynamodb: sdk2, lockTable, partitionKey: "id", retryCount });
  }

  async acquire(key: string): Promise<HeldLock> {
    const lock = await new Promise<Lock>((resolve, reject) => {
      this.#locker.acquireLock(key, (error, acquired) => (acquired ? resolve(acquired) : reject(error)));
    });
    // A heartbeat that fails, as after the close, must not end the process.
    lock.on("error", () => undefined);
    return {
      release: () =>
        new Promise<void>((resolve, reject) => lock.release((error) => (error ? reject(error) : resolve()))),
    };
  }

  close(): void {
    this.#end.abort();
  }
}

function failOpen(place: Place, holding: Holding, more: Partial<FailOpenConfig> = {}): LockClient {
  const { leaseDurationMs, heartbeatMs } = holding;
  const lease = { leaseDurationMs, ...(heartbeatMs && { heartbeatPeriodMs: heartbeatMs }) };
  return new CallbackLocks(place, (table) => new lockClient.FailOpen({ ...table, ...lease, ...more }));
}

export const lockClientFailOpen: Contender = {
  id: "lock-client",
  name: "lock-client FailOpen",
  cannot: {},
  open: (place, holding) => failOpen(place, holding),
};

const noLease = "has no lease: a dead holder's lock stays closed, on purpose";

export const lockClientFailClosed: Contender = {
  id: "lock-client-closed",
  name: "lock-client FailClosed",
  cannot: { takeOver: noLease, hold: noLease, bundle: "the same bundle as FailOpen" },
  open: (place) =>
    new CallbackLocks(place, (table) => new lockClient.FailClosed({ ...table, acquirePeriodMs })),
};

/** FailOpen with `trustLocalTime`: for the takeovers, which are all that it changes. */
export const lockClientLocalTime: Contender = {
  id: "lock-client-local-time",
  name: "lock-client, local time",
  cannot: {},
  open: (place, holding) => failOpen(place, holding, { trustLocalTime: true }),
};
