import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { environmentNames } from "@leasehold/client/environment";
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import { historyRetentionVariable } from "../src/table/history-variable.ts";
import { type Recording, recordHistory } from "./recording.ts";
import { putHistory } from "./table.ts";

let recording: Recording | undefined;

/** An execution environment reads its settings and opens its connection once, at its first invocation. */
function connected(): Recording {
  if (recording !== undefined) return recording;
  const tableName = setting(environmentNames.tableName);
  const retentionMs = Number(setting(historyRetentionVariable));
  const limits = { connectionTimeout: 1_000, throwOnRequestTimeout: true, requestTimeout: 2_000 };
  const dynamodb = new DynamoDBClient({ requestHandler: limits });
  recording = { retentionMs, put: putHistory(dynamodb, tableName) };
  return recording;
}

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`the environment variable ${name} is not set`);
  return value;
}

/**
 * Reads the lease table's stream (new and old images, ReportBatchItemFailures), and writes a history of each lock: who
 * acquired it, and how each hold ended.
 *
 * If it dies before the write, the stream delivers the batch again. If it dies after the write, it writes the same
 * items once more.
 */
export const handler = (event: DynamoDBStreamEvent): Promise<DynamoDBBatchResponse> =>
  recordHistory(connected(), event);
