// Delivers one batch by the rules of its event source mapping, until each record is done or given up.

import { type Clock, systemClock } from "@leasehold/client";
import { isProgrammerError } from "../program-errors.ts";
import { pause as interruptiblePause } from "../state-machines/timers.ts";
import type { StreamEventRecord } from "./event.ts";

/** How a batch is delivered; the names follow those of the event source mapping. */
export interface DeliveryRules {
  /** How often a failed batch is tried again; undefined for as long as its records live. */
  readonly retries: number | undefined;
  readonly reportsItemFailures: boolean;
  /** The wait before the first retry; it doubles from one to the next, up to a minute. @default 1000 */
  readonly retryDelayMs?: number;
}

/** What came of one invocation. */
export interface InvokeAnswer {
  readonly payload: unknown;
  readonly functionError?: string;
}

/** Records that were given up. */
export interface FailedBatch {
  readonly records: readonly StreamEventRecord[];
  readonly invocations: number;
}

/** What a delivery needs from outside. */
export interface DeliveryPorts {
  /**
   * Rejects only when the function could not be invoked at all, which is tried again and not counted, and when the
   * signal aborts: the delivery does not wait for its invocation then.
   */
  invoke(
    event: { readonly Records: readonly StreamEventRecord[] },
    signal: AbortSignal,
  ): Promise<InvokeAnswer>;
  onFailure(batch: FailedBatch): void;
  readonly clock?: Clock;
  readonly signal: AbortSignal;
}

const longestDelayMs = 60_000;

/**
 * Hands a batch to a function until it is done with every record, or until the mapping's rules give the rest up.
 *
 * As on Lambda: a failed batch is tried again as a whole; with `reportsItemFailures` only the records from the first
 * reported one on are tried again, and an answer that names an unknown record counts as a failure of all. Batches are not
 * halved, and records do not grow too old. Resolves early when the signal aborts.
 */
export async function deliver(
  batch: readonly StreamEventRecord[],
  rules: DeliveryRules,
  ports: DeliveryPorts,
): Promise<void> {
  const { clock = systemClock, signal } = ports;
  let records = batch;
  // Attempts that failed count against the retries.
  let failures = 0;
  while (!signal.aborted) {
    const failedFrom = await attempt(records, rules, ports);
    if (failedFrom === undefined || signal.aborted) return;
    if (failedFrom !== "notInvoked") {
      records = records.slice(failedFrom);
      failures += 1;
      if (rules.retries !== undefined && failures > rules.retries) {
        ports.onFailure({ records, invocations: failures });
        return;
      }
    }
    const first = rules.retryDelayMs ?? 1000;
    await pause(clock, Math.min(first * 2 ** Math.max(0, failures - 1), longestDelayMs), signal);
  }
}

/** Gives the index of the first record that must be tried again; undefined when the function is done with all. */
async function attempt(
  records: readonly StreamEventRecord[],
  rules: DeliveryRules,
  ports: DeliveryPorts,
): Promise<number | "notInvoked" | undefined> {
  let answer: InvokeAnswer;
  try {
    answer = await ports.invoke({ Records: records }, ports.signal);
  } catch (error) {
    if (isProgrammerError(error)) throw error;
    return "notInvoked";
  }
  if (answer.functionError !== undefined) return 0;
  return rules.reportsItemFailures ? firstReported(records, answer.payload) : undefined;
}

function firstReported(records: readonly StreamEventRecord[], payload: unknown): number | undefined {
  const failures = (payload as { batchItemFailures?: unknown } | null | undefined)?.batchItemFailures;
  if (failures === undefined || failures === null) return undefined;
  if (!Array.isArray(failures)) return 0;
  const indices = failures.map((failure: { itemIdentifier?: unknown } | null) =>
    records.findIndex((record) => record.dynamodb.SequenceNumber === failure?.itemIdentifier),
  );
  if (indices.length === 0) return undefined;
  return indices.includes(-1) ? 0 : Math.min(...indices);
}

/** Waits; resolves early when the signal aborts. */
export async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  // Ignored: it rejects for an abort alone.
  await interruptiblePause(clock, delayMs, signal).catch(() => undefined);
}

/** What is looked at of the message that Lambda sends to a mapping's on-failure destination. */
export function failureMessage(
  { records, invocations }: FailedBatch,
  origin: { readonly functionArn: string; readonly streamArn: string; readonly shardId: string },
): object {
  const { functionArn, ...source } = origin;
  return {
    requestContext: {
      functionArn,
      condition: "RetryAttemptsExhausted",
      approximateInvokeCount: invocations,
    },
    DDBStreamBatchInfo: {
      ...source,
      startSequenceNumber: records[0]?.dynamodb.SequenceNumber,
      batchSize: records.length,
    },
  };
}
