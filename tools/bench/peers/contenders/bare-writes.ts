/**
 * The floor: two unconditional writes, of a lease's size. Any lock on DynamoDB has to do as much: to write that it is taken,
 * and to write that it is not.
 */
import { type AttributeValue, type DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { Contender, HeldLock, Holding, LockClient, Place } from "../contender.ts";

/** The attributes that a lease writes, in the same sizes. */
function leaseAttributes(): Record<"token" | "ttl", AttributeValue> & Record<string, AttributeValue> {
  const now = Date.now();
  return {
    token: { S: crypto.randomUUID() },
    version: { N: "1" },
    owner: { S: "host:1234:5678abcd" },
    acquiredAt: { N: String(now) },
    expiresAt: { N: String(now + 30_000) },
    leaseDurationMs: { N: "30000" },
    ttl: { N: String(Math.ceil(now / 1000) + 604_830) },
  };
}

const names = Object.keys(leaseAttributes());
const placeholders = Object.fromEntries(names.map((name) => [`#${name}`, name]));
const taken = `SET ${names.map((name) => `#${name} = :${name}`).join(", ")}, #fence = :acquiredAt`;
const freed = `SET #releasedToken = :token, #ttl = :ttl REMOVE ${names
  .filter((name) => name !== "ttl")
  .map((name) => `#${name}`)
  .join(", ")}`;
const renewed = "SET version = version + :one, expiresAt = :expiresAt";

/** Writes what a lock writes, and asks nothing. */
export class BareWrites implements LockClient {
  readonly #dynamodb: DynamoDBClient;
  readonly #tableName: string;
  readonly #heartbeatMs: number | undefined;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(
    { dynamodb, leaseTable }: Pick<Place, "dynamodb" | "leaseTable">,
    { heartbeatMs }: Pick<Holding, "heartbeatMs"> = {},
  ) {
    this.#dynamodb = dynamodb;
    this.#tableName = leaseTable;
    this.#heartbeatMs = heartbeatMs;
  }

  async acquire(key: string): Promise<HeldLock> {
    const Key = { pk: { S: key }, sk: { S: "lease" } };
    const { token, ttl, ...attributes } = leaseAttributes();
    const values = Object.entries({ token, ttl, ...attributes }).map(([name, value]) => [`:${name}`, value]);
    await this.#dynamodb.send(
      new UpdateItemCommand({
        TableName: this.#tableName,
        Key,
        UpdateExpression: taken,
        ExpressionAttributeNames: { ...placeholders, "#fence": "fence" },
        ExpressionAttributeValues: Object.fromEntries(values),
      }),
    );
    const timer = this.#heartbeatMs && setInterval(() => void this.#renew(Key), this.#heartbeatMs);
    if (timer) this.#timers.add(timer);
    return {
      release: async () => {
        if (timer) clearInterval(timer);
        await this.#dynamodb.send(
          new UpdateItemCommand({
            TableName: this.#tableName,
            Key,
            UpdateExpression: freed,
            ExpressionAttributeNames: { ...placeholders, "#releasedToken": "releasedToken" },
            ExpressionAttributeValues: { ":token": token, ":ttl": ttl },
          }),
        );
      },
    };
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  async #renew(Key: Record<string, AttributeValue>): Promise<void> {
    await this.#dynamodb.send(
      new UpdateItemCommand({
        TableName: this.#tableName,
        Key,
        UpdateExpression: renewed,
        ExpressionAttributeValues: { ":one": { N: "1" }, ":expiresAt": { N: String(Date.now() + 30_000) } },
      }),
    );
  }
}

const noLock = "the writes exclude nobody";

/** The floor, and the same once more: what the two differ by is the machine's noise. */
export const floors: readonly Contender[] = [
  { id: "floor", name: "bare writes" },
  { id: "floor-again", name: "bare writes again (noise)" },
].map((named) => ({
  ...named,
  cannot: { takeOver: noLock, handOver: noLock },
  open: (place, holding) => new BareWrites(place, holding),
}));
