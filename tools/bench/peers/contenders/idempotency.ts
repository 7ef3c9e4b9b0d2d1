/**
 * Powertools idempotency: a neighbour, and no lock. It gives a request that comes again its first response. So a key serves
 * once, and a caller that finds the work in progress is refused and never waits.
 */
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Context } from "aws-lambda";
import type { Contender, HeldLock, LockClient } from "../contender.ts";

interface Request {
  readonly key: string;
  /** Tells that the work has begun. */
  readonly begin: () => void;
  /** Resolves when the work is to end. */
  readonly end: Promise<void>;
}

/** Begins work as if it took the lock, and ends it as if it gave the lock back. */
class IdempotentWork implements LockClient {
  readonly #run: (request: Request, context: Context) => Promise<string>;
  readonly #context: Context;

  constructor(dynamodb: DynamoDBClient, tableName: string, leaseDurationMs: number) {
    const persistenceStore = new DynamoDBPersistenceLayer({ tableName, awsSdkV3Client: dynamodb });
    const config = new IdempotencyConfig({ eventKeyJmesPath: "key", throwOnNoIdempotencyKey: true });
    const work = async ({ begin, end }: Request, _context: Context): Promise<string> => {
      begin();
      await end;
      return "done";
    };
    this.#run = makeIdempotent(work, { persistenceStore, config });
    // Its lease is what is left of the invocation.
    this.#context = {
      functionName: "bench",
      memoryLimitInMB: "512",
      invokedFunctionArn: "arn:aws:lambda:us-east-1:111122223333:function:bench",
      awsRequestId: crypto.randomUUID(),
      getRemainingTimeInMillis: () => leaseDurationMs,
    } as Context;
  }

  async acquire(key: string): Promise<HeldLock> {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: end, resolve: finish } = Promise.withResolvers<void>();
    const ended = this.#run({ key, begin, end }, this.#context);
    // Rejects where another caller is at work.
    await Promise.race([begun, ended]);
    return {
      release: async () => {
        finish();
        await ended;
      },
    };
  }

  close(): void {}
}

export const idempotency: Contender = {
  id: "idempotency",
  name: "idempotency (no lock)",
  cannot: { handOver: "refuses, and does not wait", hold: "does not renew" },
  usesKeysOnce: true,
  open: ({ dynamodb, plainTable }, { leaseDurationMs }) =>
    new IdempotentWork(dynamodb, plainTable, leaseDurationMs),
};
