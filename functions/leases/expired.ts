import {
  EventBridgeClient,
  PutEventsCommand,
  type PutEventsRequestEntry,
  type PutEventsResultEntry,
} from "@aws-sdk/client-eventbridge";
import { environmentNames } from "@leasehold/client/environment";
import { metricNames, metricsLine, writeLine } from "@leasehold/client/metrics";
import { LeaseItemError, type LeaseRecord, readRecord } from "@leasehold/client/record";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent, StreamRecord } from "aws-lambda";
import { once, required } from "../support/environment.ts";

/** Names of the event, for the rules that wait for it. */
const expiredEvent = { source: "leasehold", detailType: "Lease Expired" } as const;

/** What the event says. No token and no payload. */
interface ExpiredLease
  extends Pick<LeaseRecord, "key" | "owner" | "fencingToken" | "acquiredAt" | "expiresAt"> {
  readonly tableName: string;
}

/** What the reporting of expired leases works with. */
export interface ExpiryReport {
  readonly tableName: string;
  /** Puts up to 10 events; gives a result for each, in order. */
  readonly putEvents: (entries: PutEventsRequestEntry[]) => Promise<readonly PutEventsResultEntry[]>;
  readonly writeLine: (line: string) => void;
  readonly now: () => number;
}

/** PutEvents takes no more. */
const eventsPerRequest = 10;

/**
 * Reports leases that DynamoDB's ttl removed while they were still held: their holders died, and no caller took them
 * over.
 *
 * Each becomes a metric and an event, in the order of the stream. At the first event that is not accepted it stops,
 * and asks for the records from there on again. So events can come more than once. `key` and `fencingToken` together
 * identify a lease.
 */
export async function reportExpired(
  report: ExpiryReport,
  { Records }: DynamoDBStreamEvent,
): Promise<DynamoDBBatchResponse> {
  const expired = Records.flatMap((record) => {
    const lease = removedByTimeToLive(record) ? leaseIn(record.dynamodb?.OldImage) : undefined;
    // An operator's pause ends by itself.
    const isHolder = lease !== undefined && !lease.inCooldown && lease.pause === undefined;
    return isHolder ? [{ record, lease }] : [];
  });
  for (let start = 0; start < expired.length; start += eventsPerRequest) {
    const chunk = expired.slice(start, start + eventsPerRequest);
    const entries = chunk.map(({ lease }) => entryOf(report.tableName, lease));
    const results = await report.putEvents(entries).catch((error: unknown) => {
      console.error("the events were not accepted", error);
      return [];
    });
    const firstRefused = results.findIndex(({ EventId }) => EventId === undefined);
    const count = firstRefused === -1 ? results.length : firstRefused;
    if (count > 0) {
      const measured = { [metricNames.expired]: count };
      report.writeLine(metricsLine({ tableName: report.tableName }, measured, report.now()));
    }
    const refused = chunk[count];
    if (refused !== undefined) {
      const { ErrorCode, ErrorMessage } = results[count] ?? {};
      console.error("an event was not accepted", ErrorCode, ErrorMessage);
      // Lambda repeats a stream from this record on, so all that follow come again too.
      const itemIdentifier = refused.record.dynamodb?.SequenceNumber ?? "";
      return { batchItemFailures: [{ itemIdentifier }] };
    }
  }
  return { batchItemFailures: [] };
}

/** Only the ttl service deletes under this name; other deletions are intended. */
function removedByTimeToLive({ eventName, userIdentity }: DynamoDBRecord): boolean {
  const { type, principalId } = userIdentity ?? {};
  return eventName === "REMOVE" && type === "Service" && principalId === "dynamodb.amazonaws.com";
}

function entryOf(tableName: string, lease: LeaseRecord): PutEventsRequestEntry {
  const { key, owner, fencingToken, acquiredAt, expiresAt } = lease;
  const detail: ExpiredLease = { tableName, key, owner, fencingToken, acquiredAt, expiresAt };
  return { Source: expiredEvent.source, DetailType: expiredEvent.detailType, Detail: JSON.stringify(detail) };
}

/**
 * A lease as it was before or after a change; undefined when the lock was free, or the item is no lease: an item of
 * another program must not stop the stream.
 */
export function leaseIn(image: StreamRecord["OldImage"]): LeaseRecord | undefined {
  const isHeld = image?.[attributeNames.sortKey]?.S === leaseSortKey && attributeNames.token in image;
  if (!isHeld) return undefined;
  const values = Object.entries(image).map(([name, value]) => [name, value.S ?? Number(value.N)]);
  try {
    return readRecord(Object.fromEntries(values));
  } catch (error) {
    if (!(error instanceof LeaseItemError)) throw error;
    console.error(error.message);
    return undefined;
  }
}

const report = once((): ExpiryReport => {
  const events = new EventBridgeClient({
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
  });
  return {
    tableName: required(environmentNames.tableName),
    putEvents: async (Entries) => (await events.send(new PutEventsCommand({ Entries }))).Entries ?? [],
    writeLine,
    now: Date.now,
  };
});

/**
 * Reads the lease table's stream (old images, ReportBatchItemFailures): a lease that ttl removed while it was still
 * held becomes the metric `LeaseExpired` and an event on the default bus, source `leasehold`, `Lease Expired`.
 *
 * Dies at any time: the stream brings the batch again, and an event may come twice. See {@link reportExpired}.
 */
export const handler = (event: DynamoDBStreamEvent): Promise<DynamoDBBatchResponse> =>
  reportExpired(report(), event);
