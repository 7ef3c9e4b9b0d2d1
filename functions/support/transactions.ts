import { setTimeout as delay } from "node:timers/promises";
import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  type DynamoDBDocumentClient,
  GetCommand,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { hasTimeLeft } from "./working-time.ts";

/** The entries of a transaction. */
export type TransactItems = NonNullable<TransactWriteCommandInput["TransactItems"]>;

/** DynamoDB takes no more entries in one transaction. */
export const mostEntries = 100;

/** What a transaction goes by while it is sent again. */
export interface Sending {
  /** Milliseconds that the caller has left. */
  readonly remainingMs: () => number;
  /** @default - a timer's */
  readonly pause?: (ms: number) => Promise<unknown>;
  /** @default Math.random */
  readonly fraction?: () => number;
}

const firstRetryMs = 25;
const longestRetryMs = 2_000;

/** What may pass: another request was at one of the items, or there were too many. The SDK does not repeat these. */
const passing: readonly (string | undefined)[] = [
  "TransactionConflict",
  "ThrottlingError",
  "ProvisionedThroughputExceeded",
];

/**
 * Writes all of it or nothing.
 *
 * Gives the numbers of the entries whose condition did not hold, from 0; none when it was written. One that collided with another request, or
 * was throttled, is sent again, after pauses that grow, while the caller has time left: renewals and other people's
 * attempts to acquire write to the item that a lease's condition check reads. Rejects with TransactionCanceledException
 * when the time is over. Within one attempt the SDK repeats under one ClientRequestToken, by which DynamoDB knows a
 * transaction that has landed.
 *
 * It takes no signal: cut off under way, it would leave open whether it landed.
 */
export async function transact(
  documents: DynamoDBDocumentClient,
  TransactItems: TransactItems,
  { remainingMs, pause = delay, fraction = Math.random }: Sending,
): Promise<readonly number[]> {
  for (let attempt = 0; ; attempt++) {
    try {
      await documents.send(new TransactWriteCommand({ TransactItems }));
      return [];
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw error;
      const codes = (error.CancellationReasons ?? []).map(({ Code }) => Code);
      const refused = codes.flatMap((code, entry) => (code === "ConditionalCheckFailed" ? [entry] : []));
      if (refused.length > 0) return refused;
      // Half of it is random, so that requests that collided do not collide again.
      const most = Math.min(longestRetryMs, firstRetryMs * 2 ** attempt);
      const pauseMs = Math.round((most * (1 + fraction())) / 2);
      const mayPass = codes.some((code) => passing.includes(code));
      if (!mayPass || !hasTimeLeft(remainingMs() - pauseMs)) throw error;
      await pause(pauseMs);
    }
  }
}

/**
 * Puts what a parked item contains back, as it was, and removes the parked one: 2 requests. Tells whether it has: not
 * where there is none, where another has taken its place since it was read, nor over an item that waits.
 */
export async function putBack(
  documents: DynamoDBDocumentClient,
  TableName: string,
  Key: Readonly<Record<"pk" | "sk", string>>,
  sending: Sending,
): Promise<boolean> {
  const { Item } = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
  if (Item === undefined) return false;
  const { item } = Item as { readonly item: Record<string, unknown> };
  const asRead = {
    ConditionExpression: "#item = :item",
    ExpressionAttributeNames: { "#item": "item" },
    ExpressionAttributeValues: { ":item": item },
  };
  const entries = [
    { Delete: { TableName, Key, ...asRead } },
    { Put: { TableName, Item: item, ConditionExpression: "attribute_not_exists(pk)" } },
  ];
  return (await transact(documents, entries, sending)).length === 0;
}
