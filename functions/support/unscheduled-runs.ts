import { LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { type JobRuns, RunsExhaustedError, type RunWork } from "@leasehold/jobs";

/**
 * Does a run that nothing has scheduled, and has it in the run history by the time at which it begins. One that begins in a
 * millisecond of an earlier one's takes the next.
 */
export async function runAt<T>(runs: JobRuns, time: number, work: RunWork<T>): Promise<T> {
  for (let slot = time; ; slot += 1) {
    let isBegun = false;
    try {
      return await runs.run(new Date(slot), (run) => {
        isBegun = true;
        return work(run);
      });
    } catch (error) {
      if (isBegun || !isTaken(error)) throw error;
    }
  }
}

/** Whether a slot was refused since it has, or has had, a run. */
export function isTaken(error: unknown): boolean {
  return (
    error instanceof SlotDoneError ||
    error instanceof RunsExhaustedError ||
    error instanceof LeaseUnavailableError
  );
}
