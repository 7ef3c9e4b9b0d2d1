// Delivers one batch by the rules of its event source mapping, until each record is done or given up.

import { type Clock, systemClock } from "@leasehold/client";
import { isProgrammerError } from "../program-errors.ts";
import type { StreamEventRecord } from "./event.ts";

/** How a batch is delivered; the names follow those of the event source mapping. */
export interface DeliveryRules {
  /** How often a failed batch is tried again; undefined for as long as its records live. */
  readonly retries: number | undefined;
  readonly maximumRecordAgeMs: number | undefined;
  readonly bisect: boolean;
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
  readonly condition: "RetryAttemptsExhausted" | "MaximumRecordAgeExceeded";
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
 * As on Lambda: a failed batch is tried again as a whole; with `bisect` it is halved, which costs no retry; with
 * `reportsItemFailures` only the records from the first reported one on are tried again, and an answer that names an
 * unknown record counts as a failure of all. Resolves early when the signal aborts.
 */
export async function deliver(
  records: readonly StreamEventRecord[],
  rules: DeliveryRules,
  ports: DeliveryPorts,
): Promise<void> {
  await deliverFrom({ records, failures: 0, invocations: 0 }, rules, ports);
}

interface PendingBatch {
  readonly records: readonly StreamEventRecord[];
  /** Failed attempts that count against the retries. */
  readonly failures: number;
  readonly invocations: number;
}

async function deliverFrom(start: PendingBatch, rules: DeliveryRules, ports: DeliveryPorts): Promise<void> {
  const { clock = systemClock, signal } = ports;
  let { records, failures, invocations } = start;
  while (records.length > 0 && !signal.aborted) {
    const young = records.filter((record) => !isTooOld(record, rules, clock));
    if (young.length < records.length) {
      const old = records.filter((record) => !young.includes(record));
      ports.onFailure({ records: old, condition: "MaximumRecordAgeExceeded", invocations });
      records = young;
      continue;
    }
    const failedFrom = await attempt(records, rules, ports);
    if (failedFrom === undefined || signal.aborted) return;
    if (failedFrom !== "notInvoked") {
      invocations += 1;
      const whole = failedFrom === 0;
      records = records.slice(failedFrom);
      if (whole && rules.bisect && records.length > 1) {
        await halve({ records, failures, invocations }, rules, ports);
        return;
      }
      failures += 1;
      if (rules.retries !== undefined && failures > rules.retries) {
        ports.onFailure({ records, condition: "RetryAttemptsExhausted", invocations });
        return;
      }
    }
    const first = rules.retryDelayMs ?? 1000;
    await pause(clock, Math.min(first * 2 ** Math.max(0, failures - 1), longestDelayMs), signal);
  }
}

async function halve(
  { records, failures, invocations }: PendingBatch,
  rules: DeliveryRules,
  ports: DeliveryPorts,
): Promise<void> {
  const middle = Math.ceil(records.length / 2);
  for (const half of [records.slice(0, middle), records.slice(middle)]) {
    await deliverFrom({ records: half, failures, invocations }, rules, ports);
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

function isTooOld(record: StreamEventRecord, { maximumRecordAgeMs }: DeliveryRules, clock: Clock): boolean {
  if (maximumRecordAgeMs === undefined) return false;
  return clock.now() - record.dynamodb.ApproximateCreationDateTime * 1000 > maximumRecordAgeMs;
}

/** Waits; resolves early when the signal aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.schedule(done, delayMs, { background: true });
    signal.addEventListener("abort", done, { once: true });
  });
}
