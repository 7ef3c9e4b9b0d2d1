// The message about a failed batch for its on-failure destination.

import type { FailedBatch } from "./delivery.ts";

/** Where a failed batch came from. */
export interface FailedBatchOrigin {
  readonly functionArn: string;
  readonly streamArn: string;
  readonly shardId: string;
}

/** The message that Lambda sends to a mapping's on-failure destination. The records themselves are not in it. */
export function failureMessage(batch: FailedBatch, origin: FailedBatchOrigin, nowMs: number): object {
  const [first] = batch.records;
  const last = batch.records.at(-1);
  const arrival = (seconds: number | undefined): string => new Date((seconds ?? 0) * 1000).toISOString();
  return {
    requestContext: {
      requestId: crypto.randomUUID(),
      functionArn: origin.functionArn,
      condition: "RetryAttemptsExhausted",
      approximateInvokeCount: batch.invocations,
    },
    responseContext: { statusCode: 200, executedVersion: "$LATEST", functionError: "Unhandled" },
    version: "1.0",
    timestamp: new Date(nowMs).toISOString(),
    DDBStreamBatchInfo: {
      shardId: origin.shardId,
      startSequenceNumber: first?.dynamodb.SequenceNumber,
      endSequenceNumber: last?.dynamodb.SequenceNumber,
      approximateArrivalOfFirstRecord: arrival(first?.dynamodb.ApproximateCreationDateTime),
      approximateArrivalOfLastRecord: arrival(last?.dynamodb.ApproximateCreationDateTime),
      batchSize: batch.records.length,
      streamArn: origin.streamArn,
    },
  };
}
