import { isAbortOf, isOperational } from "@leasehold/client/internal";
import { FinalFailureError } from "./errors.ts";
import { remarkOf, type WorkTerms } from "./options.ts";
import type { Task } from "./task.ts";
import type { WorkLoop } from "./work-loop.ts";

/** What became of the tasks that one call of {@link TaskSet.process} has claimed or parked. */
export interface ProcessSummary {
  readonly succeeded: number;
  /** For good: it was their last attempt. */
  readonly failed: number;
  /** Set aside: their work threw a FinalFailureError, or this call found that the worker of their last attempt was lost. */
  readonly parked: number;
  /** Given back: they failed with attempts left, or were cut off by the caller's signal. */
  readonly returned: number;
  /** Ended by the work itself. */
  readonly settled: number;
  /** Not ended by this worker: the claim was lost, or the service did not confirm the ending. */
  readonly lost: number;
}

type Work = (task: Task) => Promise<unknown> | unknown;
type ProcessTerms = WorkTerms & { readonly retryAfterMs: number | undefined };

/**
 * Runs the work of task after task, and ends each by what became of it.
 *
 * `stop` ends the loop: a mistake in the program that a task's ending meets aborts it, and is rejected with once all
 * work has settled.
 */
export async function processTasks(
  loop: WorkLoop,
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
    for (let task = await loop.next(); task !== undefined; task = await loop.next()) {
      loop.occupy(runAndCount(task));
    }
  } finally {
    await loop.idle();
  }
  stop.signal.throwIfAborted();
  return counts;
}

async function run(task: Task, work: Work, terms: ProcessTerms): Promise<keyof ProcessSummary> {
  let result: unknown;
  try {
    result = await work(task);
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
