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

/** Where the history goes. */
export interface Recording {
  /** Writes an item, in the place of an equal one. */
  readonly put: (item: Item) => Promise<void>;
  readonly retentionMs: number;
}

/**
 * Writes down what the records of the table's stream show, each change as an item under its key.
 *
 * A record that comes twice writes the same items again. Its own items are no leases: they show no change. Records that
 * failed come again, and all records after them.
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

/** An item that another program has spoilt has no history: to try it again would hold up all others. */
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
