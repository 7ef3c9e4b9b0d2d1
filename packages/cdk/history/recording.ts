import type { Item } from "@leasehold/client";
import {
  fromAttributeValues,
  historyItemOf,
  type LeaseChange,
  LeaseItemError,
  leaseChanges,
  snapshotOf,
} from "@leasehold/client/internal";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";

/** The destination of the history. */
export interface Recording {
  /** Writes an item; it replaces an equal item. */
  readonly put: (item: Item) => Promise<void>;
  readonly retentionMs: number;
}

/**
 * Writes the changes in the records of the table's stream, each as an item under its key.
 *
 * A record that is delivered twice writes the same items again. History items are no leases, so they show no change.
 * The stream delivers failed records again, and all records after them.
 */
export async function recordHistory(
  { put, retentionMs }: Recording,
  { Records }: DynamoDBStreamEvent,
): Promise<DynamoDBBatchResponse> {
  const failed = await Promise.all(
    Records.map(async (record) => {
      try {
        await Promise.all(changesIn(record).map((change) => put(historyItemOf(change, retentionMs))));
        return [];
      } catch (error) {
        console.error("a change was not recorded", { eventID: record.eventID }, error);
        return [{ itemIdentifier: record.dynamodb?.SequenceNumber ?? "" }];
      }
    }),
  );
  return { batchItemFailures: failed.flat() };
}

/** An item that another program has spoilt has no history: a retry would block all other items. */
function changesIn({ dynamodb }: DynamoDBRecord): readonly LeaseChange[] {
  const { OldImage: before, NewImage: after, ApproximateCreationDateTime: seconds = 0 } = dynamodb ?? {};
  const [was, is] = [before, after].map((image) => fromAttributeValues(image as never));
  try {
    return leaseChanges(snapshotOf(was), snapshotOf(is), seconds * 1000);
  } catch (error) {
    if (!(error instanceof LeaseItemError)) throw error;
    console.error("an item cannot be read, and its change is not recorded", error.message);
    return [];
  }
}
