import { setTimeout as delay } from "node:timers/promises";
import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  type DynamoDBDocumentClient,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";

/** The entries of a transaction. */
export type TransactItems = NonNullable<TransactWriteCommandInput["TransactItems"]>;

/** A transaction that collided with another request is sent again this often, a little later each time. */
const mostAttempts = 6;
const firstRetryMs = 15;

/**
 * Writes all of it or nothing.
 *
 * Gives undefined when it was written, and the number of the first entry whose condition did not hold if that is one of
 * the first `checks`; rejects with TransactionCanceledException where it is another's. One that collided with another
 * request is sent again, which the SDK does not do by itself: renewals and other people's attempts to acquire write to
 * the item that a lease's condition check reads. Within one attempt the SDK repeats under one ClientRequestToken, by
 * which DynamoDB knows a transaction that has landed.
 *
 * It takes no signal: cut off under way, it would leave open whether it landed.
 */
export async function transact(
  documents: DynamoDBDocumentClient,
  TransactItems: TransactItems,
  checks: number,
): Promise<number | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      await documents.send(new TransactWriteCommand({ TransactItems }));
      return undefined;
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw error;
      const codes = (error.CancellationReasons ?? []).map(({ Code }) => Code);
      const refused = codes.slice(0, checks).indexOf("ConditionalCheckFailed");
      if (refused !== -1) return refused;
      if (!codes.includes("TransactionConflict") || attempt === mostAttempts) throw error;
      await delay(firstRetryMs * 2 ** (attempt - 1) * (1 + Math.random()));
    }
  }
}
