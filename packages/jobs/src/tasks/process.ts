/**
 * Runs work for the tasks of a worker.
 * Each task is ended exactly once: by its work, or by the result of its work.
 */
import { isAbortOf, isOperational } from "@leasehold/client/internal";
import { FinalFailureError } from "./errors.ts";
import { remarkOf, type WorkTerms } from "./options.ts";
import type { Task } from "./task.ts";
import type { Worker } from "./worker.ts";

/** How the tasks ended that one call of {@link TaskSet.process} has claimed or parked. */
export interface ProcessSummary {
  readonly succeeded: number;
  /** Failed in their last attempt. */
  readonly failed: number;
  /** Set aside: the work threw a FinalFailureError, or the worker of the last attempt was found to be lost. */
  readonly parked: number;
  /** Given back: they failed with attempts left, or the caller's signal ended their work. */
  readonly returned: number;
  /** Ended by the work itself, with `succeed`, `fail` or `release`. */
  readonly settled: number;
  /** Not ended by this worker: the claim was lost, or the service did not confirm the end. */
  readonly lost: number;
}

type Work = (task: Task) => Promise<unknown> | unknown;
type ProcessTerms = WorkTerms & { readonly retryAfterMs: number | undefined };

/**
 * Runs the work of one task after another, and ends each task with the result of its work.
 *
 * `stop` ends the worker. A mistake in the program that comes up while a task is ended aborts `stop`; the call
 * rejects with it when all work has settled.
 */
export async function processTasks(
  worker: Worker,
  work: Work,
  terms: ProcessTerms,
  stop: AbortController,
): Promise<ProcessSummary> {
  const counts = { succeeded: 0, failed: 0, parked: 0, returned: 0, settled: 0, lost: 0 };
  const runAndCount = async (task: Task): Promise<void> => {
    const outcome = await run(task, work, terms).catch((error: unknown) => {
      task.abandon();
      if (!isOperational(error)) stop.abort(error);
      return "lost" as const;
    });
    counts[outcome] += 1;
  };
  try {
    for (let task = await worker.next(); task !== undefined; task = await worker.next()) {
      worker.busyUntil(runAndCount(task));
    }
  } finally {
    await worker.idle();
  }
  stop.signal.throwIfAborted();
  return counts;
}

async function run(task: Task, work: Work, terms: ProcessTerms): Promise<keyof ProcessSummary> {
  let result: unknown;
  try {
    result = await task.trace(() => work(task));
  } catch (error) {
    return await endFailed(task, error, terms);
  }
  if (await task.settled()) return "settled";
  await task.succeed(typeof result === "string" ? remarkOf(result) : undefined);
  return "succeeded";
}

async function endFailed(
  task: Task,
  error: unknown,
  { signal, retryAfterMs }: ProcessTerms,
): Promise<keyof ProcessSummary> {
  if (await task.settled()) return "settled";
  if (isAbortOf(error, signal)) {
    await task.release();
    return "returned";
  }
  const waits = retryAfterMs === undefined ? {} : { retryAfterMs };
  const isFinal = error instanceof FinalFailureError;
  const outcome = await task.fail(remarkOf(error), isFinal ? { final: true } : waits);
  return outcome === "waiting" ? "returned" : outcome;
}
