import { LeaseItemError, type LeaseRecord, readRecord } from "@leasehold/client/record";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import type { DynamoDBBatchResponse, DynamoDBRecord, StreamRecord } from "aws-lambda";

/**
 * A lease as it stood before or after a change; undefined where nobody held the lock, or the item is no lease: what
 * another program has written there must not stop the stream.
 */
export function leaseIn(image: StreamRecord["OldImage"]): LeaseRecord | undefined {
  if (!isHeldIn(image)) return undefined;
  const values = Object.entries(image).map(([name, value]) => [name, value.S ?? Number(value.N)]);
  try {
    return readRecord(Object.fromEntries(values));
  } catch (error) {
    if (!(error instanceof LeaseItemError)) throw error;
    console.error(error.message);
    return undefined;
  }
}

/** Whether somebody, of this package or not, had the lock before or after a change. */
export function isHeldIn(image: StreamRecord["OldImage"]): image is NonNullable<StreamRecord["OldImage"]> {
  return image?.[attributeNames.sortKey]?.S === leaseSortKey && attributeNames.token in image;
}

/**
 * Asks for a batch's records again from the first of these on; for none of them where there is none.
 *
 * Lambda repeats a stream from the lowest sequence number that is reported, so all that follow come again too.
 */
export function repeatFrom(failed: readonly DynamoDBRecord[]): DynamoDBBatchResponse {
  const numbers = failed.map((record) => record.dynamodb?.SequenceNumber ?? "");
  return { batchItemFailures: numbers.map((itemIdentifier) => ({ itemIdentifier })) };
}
