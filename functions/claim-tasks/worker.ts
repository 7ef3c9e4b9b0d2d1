import { createHash } from "node:crypto";
import { FinalFailureError, type Task, TaskSet } from "@leasehold/jobs";
import { dynamodb } from "../support/dynamodb.ts";
import { once, wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { untilTimeIsUp } from "../support/working-time.ts";
import { backoffVariable, claimVariable, mostAttemptsVariable, taskSetKey } from "./schema.ts";

/**
 * Does one task: compares a document's SHA-256 with the announced one, and gives the remark of its success. Throws an
 * error that says what is wrong with the document; a FinalFailureError when the task itself is wrong.
 */
export function compareChecksum(payload: unknown): string {
  const { text, sha256 } = (payload ?? {}) as { readonly text?: unknown; readonly sha256?: unknown };
  if (typeof text !== "string" || typeof sha256 !== "string") {
    throw new FinalFailureError("the task lacks its text or its sha256");
  }
  const actual = createHash("sha256").update(text, "utf8").digest("hex");
  if (actual === sha256.toLowerCase()) return `the SHA-256 is ${actual}`;
  throw new Error(`the document's SHA-256 is ${actual}`);
}

const parts = once(() => ({
  leases: leaseClient(dynamodb()),
  maxAttempts: wholeNumber(mostAttemptsVariable, 3),
  /** How long the tasks of a dead worker are claimed. */
  leaseDurationMs: wholeNumber(claimVariable, 30_000),
  backoff: { delayMs: wholeNumber(backoffVariable, 10_000) },
}));

/** Opens a set with the settings of the environment. */
export function taskSet(set: string): TaskSet {
  const { leases, ...options } = parts();
  return new TaskSet(leases, taskSetKey(set), options);
}

/** The result of a worker. */
export interface WorkReport {
  readonly succeeded: number;
  /** For good: it was their last attempt. */
  readonly failed: number;
  /** Set aside: no attempt can help them, or this worker found that the worker of their last attempt was dead. */
  readonly parked: number;
  /** Attempts that ended with an error, of tasks that have another attempt. */
  readonly putBack: number;
  /** Tasks that this worker has begun and not ended: another worker has them, or will have them. */
  readonly lost: number;
  /** Whether it ran out of time. */
  readonly isUnfinished: boolean;
}

/**
 * Does the tasks of a set that can be claimed now, one after the other, and begins nothing when its time is nearly
 * over.
 *
 * It does not wait for tasks that others are doing, nor for tasks that wait for their next attempt: a later call does
 * those. An error of `work` puts the task back. Any worker may try it again after some seconds, until its attempts
 * are used up. A FinalFailureError parks it.
 */
export async function workOn(
  tasks: TaskSet,
  work: (task: Task) => unknown,
  remainingMs: number,
): Promise<WorkReport> {
  const signal = untilTimeIsUp(remainingMs);
  const { succeeded, failed, parked, returned, lost } = await tasks.process(work, { until: "idle", signal });
  return { succeeded, failed, parked, putBack: returned, lost, isUnfinished: signal.aborted };
}
