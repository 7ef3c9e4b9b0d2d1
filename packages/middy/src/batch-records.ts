/** The records of a batch, whatever brought them: how each is named, in which order it runs, and how it is reported. */
import { InvalidOptionsError } from "@leasehold/client/internal";

/** How a batch's answer names a record that has to come again: a record of Kafka by its place, every other by its id. */
export interface BatchItemFailure<TRecord = unknown> {
  readonly itemIdentifier: TRecord extends { readonly topic: string; readonly offset: number }
    ? { readonly partition: string; readonly offset: number }
    : string;
}

/** A record, and what its source says of it. */
export interface BatchRecord<TRecord> {
  readonly record: TRecord;
  /** Names it among the records of its source, and is the same when it is delivered again. */
  readonly id: string;
  readonly failure: BatchItemFailure<TRecord>;
  /** Records of one line run in their order, and none runs behind one that failed. */
  readonly line: string | undefined;
  /** Whether the source delivers everything behind a line's first failure again, by itself. */
  readonly isCheckpoint: boolean;
}

/** The members of a record that are read. */
interface RecordMarks {
  readonly eventSource?: string;
  readonly eventSourceARN?: string;
  readonly eventID?: string;
  readonly messageId?: string;
  readonly attributes?: { readonly MessageGroupId?: string };
  readonly kinesis?: { readonly sequenceNumber: string };
  readonly dynamodb?: { readonly SequenceNumber?: string };
  readonly topic?: string;
  readonly partition?: number;
  readonly offset?: number;
}

const allowed =
  "a batch of SQS, Kinesis, a DynamoDB stream, Kafka, or of a pipe from one of these: no other source takes single " +
  "records back";

/** Reads the records of an event, in their order. Throws InvalidOptionsError for an event without such records. */
export function readBatch<TRecord>(event: unknown): BatchRecord<TRecord>[] {
  const { Records, records } = (event ?? {}) as { readonly Records?: unknown; readonly records?: unknown };
  const isPiped = Array.isArray(event);
  const ofKafka = typeof records === "object" && records !== null ? Object.values(records).flat() : undefined;
  const found = isPiped ? event : (Records ?? ofKafka);
  if (!Array.isArray(found)) throw new InvalidOptionsError("event", event, allowed);
  return found.map((record: TRecord) => {
    const named = nameOf((record ?? {}) as RecordMarks, isPiped);
    if (named === undefined) throw new InvalidOptionsError("a record of the event", record, allowed);
    return { record, ...named } as BatchRecord<TRecord>;
  });
}

function nameOf(
  { eventSource, eventSourceARN = "", eventID, messageId, attributes, ...marks }: RecordMarks,
  isPiped: boolean,
): (Omit<BatchRecord<unknown>, "record" | "failure"> & { readonly failure: object }) | undefined {
  if (eventSource === "aws:sqs" && messageId !== undefined) {
    // A group of a standard queue keeps no order: it shares the queue fairly.
    const isOrdered = eventSourceARN.endsWith(".fifo");
    return {
      id: messageId,
      failure: { itemIdentifier: messageId },
      line: isOrdered ? attributes?.MessageGroupId : undefined,
      isCheckpoint: false,
    };
  }
  const { topic, partition, offset } = marks;
  if (topic !== undefined && partition !== undefined && offset !== undefined) {
    const line = `${topic}-${partition}`;
    const failure = { itemIdentifier: { partition: line, offset } };
    return { id: `${line}-${offset}`, failure, line, isCheckpoint: true };
  }
  const number = marks.kinesis?.sequenceNumber ?? marks.dynamodb?.SequenceNumber;
  // A pipe knows the records of a stream by their event ids.
  const reported = isPiped ? eventID : number;
  if (eventID === undefined || reported === undefined) return undefined;
  // All records of a batch are of one shard.
  return { id: eventID, failure: { itemIdentifier: reported }, line: "shard", isCheckpoint: true };
}
