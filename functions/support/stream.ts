import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type LeaseRecord, readRecord } from "@leasehold/client/record";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import type { DynamoDBBatchResponse, DynamoDBRecord, StreamRecord } from "aws-lambda";

/** A lease as it stood before or after a change; undefined where nobody held the lock, or the item is no lease. */
export function leaseIn(image: StreamRecord["OldImage"]): LeaseRecord | undefined {
  if (image?.[attributeNames.sortKey]?.S !== leaseSortKey) return undefined;
  // The holder's payload is nobody's business here, and nothing that is wrong with it may stop the stream.
  const { [attributeNames.data]: _data, ...rest } = image;
  return readRecord(unmarshall(rest as Record<string, AttributeValue>) as Parameters<typeof readRecord>[0]);
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
