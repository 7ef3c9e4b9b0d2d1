/**
 * The protocol of the AWS Java client, amazon-dynamodb-lock-client 1.4, request for request, as its source and its README say.
 * There is no such client for JavaScript: this is our own code for its protocol, and no port.
 *
 * acquire: a consistent GetItem; no item: PutItem, if there is still none; an item: look again each refresh period, and when its
 * record version has been the same for its whole lease duration, PutItem, if the version still is the same.
 * heartbeat: one thread sends an UpdateItem for each lock, one after the other, and sleeps for the rest of the period.
 * release: DeleteItem, if owner and version are ours (`deleteLockOnRelease`, the default).
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AttributeValue,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { Contender, HeldLock, Holding, LockClient, Place } from "../contender.ts";

/** How long its `acquireLock` sleeps between two looks, by default. */
const refreshPeriodMs = 1_000;
const isMine = "attribute_exists(#id) AND recordVersionNumber = :version AND ownerName = :owner";
const names = { "#id": "id" };

interface Seen {
  readonly version: string;
  readonly leaseDurationMs: number;
  readonly at: number;
}

/** Locks by that protocol. */
export class GetPutDelete implements LockClient {
  readonly #dynamodb: DynamoDBClient;
  readonly #tableName: string;
  readonly #holding: Holding;
  readonly #owner: string = `host${crypto.randomUUID()}`;
  /** The record version of each lock that is held. */
  readonly #held = new Map<string, string>();
  readonly #end = new AbortController();

  constructor({ dynamodb, plainTable }: Place, holding: Holding) {
    this.#dynamodb = dynamodb;
    this.#tableName = plainTable;
    this.#holding = holding;
    if (holding.heartbeatMs !== undefined) void this.#beat(holding.heartbeatMs);
  }

  async acquire(key: string): Promise<HeldLock> {
    let first: Seen | undefined;
    for (;;) {
      const { Item } = await this.#dynamodb.send(
        new GetItemCommand({ TableName: this.#tableName, Key: { id: { S: key } }, ConsistentRead: true }),
      );
      const now = seen(Item);
      const isSame = first !== undefined && first.version === now?.version;
      if (!isSame) first = now;
      const isStale = isSame && first !== undefined && performance.now() - first.at > first.leaseDurationMs;
      if (now === undefined || isStale) {
        const version = await this.#put(key, now?.version);
        if (version !== undefined) return this.#hold(key, version);
      }
      await sleep(refreshPeriodMs, undefined, { signal: this.#end.signal });
    }
  }

  close(): void {
    this.#end.abort();
  }

  /** Gives the version of the lock's record, or undefined where another caller was faster. */
  async #put(key: string, stale: string | undefined): Promise<string | undefined> {
    const version = crypto.randomUUID();
    const isAsJudged =
      stale === undefined
        ? { ConditionExpression: "attribute_not_exists(#id)" }
        : {
            ConditionExpression: "attribute_exists(#id) AND recordVersionNumber = :version",
            ExpressionAttributeValues: { ":version": { S: stale } },
          };
    try {
      await this.#dynamodb.send(
        new PutItemCommand({
          TableName: this.#tableName,
          Item: {
            id: { S: key },
            ownerName: { S: this.#owner },
            leaseDuration: { S: String(this.#holding.leaseDurationMs) },
            recordVersionNumber: { S: version },
          },
          ExpressionAttributeNames: names,
          ...isAsJudged,
        }),
      );
      return version;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw error;
    }
  }

  #hold(key: string, version: string): HeldLock {
    this.#held.set(key, version);
    return { release: () => this.#release(key) };
  }

  async #release(key: string): Promise<void> {
    const values = this.#mine(key);
    this.#held.delete(key);
    await this.#dynamodb.send(
      new DeleteItemCommand({
        TableName: this.#tableName,
        Key: { id: { S: key } },
        ConditionExpression: isMine,
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: values,
      }),
    );
  }

  async #beat(periodMs: number): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      const begun = performance.now();
      for (const key of [...this.#held.keys()]) if (!signal.aborted) await this.#renew(key);
      const restMs = Math.max(periodMs - (performance.now() - begun), 0);
      await sleep(restMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #renew(key: string): Promise<void> {
    const version = crypto.randomUUID();
    const values = {
      ...this.#mine(key),
      ":next": { S: version },
      ":duration": { S: String(this.#holding.leaseDurationMs) },
    };
    try {
      await this.#dynamodb.send(
        new UpdateItemCommand({
          TableName: this.#tableName,
          Key: { id: { S: key } },
          UpdateExpression: "SET leaseDuration = :duration, recordVersionNumber = :next",
          ConditionExpression: isMine,
          ExpressionAttributeNames: names,
          ExpressionAttributeValues: values,
        }),
      );
      if (this.#held.has(key)) this.#held.set(key, version);
    } catch (error) {
      // Ignored: other failures are logged there, and the next beat tries again.
      if (error instanceof ConditionalCheckFailedException) this.#held.delete(key);
    }
  }

  #mine(key: string): Record<string, AttributeValue> {
    return { ":version": { S: this.#held.get(key) ?? "" }, ":owner": { S: this.#owner } };
  }
}

function seen(item: Record<string, AttributeValue> | undefined): Seen | undefined {
  if (item === undefined) return undefined;
  const { recordVersionNumber, leaseDuration } = item;
  return {
    version: recordVersionNumber?.S ?? "",
    leaseDurationMs: Number(leaseDuration?.S),
    at: performance.now(),
  };
}

export const getPutDelete: Contender = {
  id: "get-put-delete",
  name: "protocol of the AWS Java client",
  cannot: {},
  open: (place, holding) => new GetPutDelete(place, holding),
};
