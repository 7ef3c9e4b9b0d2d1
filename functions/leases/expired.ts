import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import { environmentNames } from "@leasehold/client/environment";
import { writeLine } from "@leasehold/client/metrics";
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import { required } from "../support/environment.ts";
import { once } from "../support/once.ts";
import { type ExpiryReport, reportExpired } from "./expiry.ts";

const report = once((): ExpiryReport => {
  const events = new EventBridgeClient({
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000 },
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
