import type { PutEventsRequestEntry, PutEventsResultEntry } from "@aws-sdk/client-eventbridge";
import { metricNames, metricsLine } from "@leasehold/client/metrics";
import type { LeaseRecord } from "@leasehold/client/record";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import { leaseIn, repeatFrom } from "../support/stream.ts";

/** Names of the event, for the rules that wait for it. */
export const expiredEvent = { source: "leasehold", detailType: "Lease Expired" } as const;

/** What the event says. No token and no payload. */
export interface ExpiredLease
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
    return lease === undefined || lease.inCooldown ? [] : [{ record, lease }];
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
      return repeatFrom([refused.record]);
    }
  }
  return repeatFrom([]);
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
