import { LeaseItemError, type LeaseRecord, readRecord } from "@leasehold/client/record";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import type { DynamoDBBatchResponse, DynamoDBRecord, StreamRecord } from "aws-lambda";

/**
 * A lease as it was before or after a change; undefined when the lock was free, or the item is no lease: an item of
 * another program must not stop the stream.
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

/** Whether the lock had a holder before or after a change, of this package or another program. */
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
