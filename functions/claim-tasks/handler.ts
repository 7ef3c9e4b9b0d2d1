import { type TaskInput, TaskSet } from "@leasehold/client/tasks";
import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { wholeNumber } from "../support/environment.ts";
import { fieldsOf, nameIn } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { compareChecksum } from "./checksum.ts";
import { claimVariable, mostAttemptsVariable, taskSetKey } from "./schema.ts";
import { type WorkReport, workOn } from "./worker.ts";

const parts = once(() => ({
  leases: leaseClient(dynamodb()),
  maxAttempts: wholeNumber(mostAttemptsVariable, 3),
  /** So long the tasks of a worker that died stay claimed. */
  leaseDurationMs: wholeNumber(claimVariable, 30_000),
}));

/** What came of adding tasks: those that the set knew already were left alone. */
export interface AddReport {
  readonly added: number;
  readonly known: number;
}

/**
 * Adds tasks to a set, or does those that are there, side by side with as many other invocations as there are.
 *
 *     { "set": "2026-03-01", "add": [{ "id": "a.csv", "payload": { "text": "…", "sha256": "…" } }] }
 *     → { "added": 1, "known": 0 }
 *     { "set": "2026-03-01" }
 *     → { "succeeded": 1, "failed": 0, "parked": 0, "putBack": 0, "lost": 0, "isUnfinished": false }
 *
 * Dies while it adds: by fifties, all are there or none; the same call again adds those that are missing, and no task
 * twice. Dies after it has claimed a task, before, during or after the work: the attempt counts, the claim runs out
 * after 30 s, and whoever is called then does the task again, or parks it if that was its last attempt. Dies after the
 * task's ending has landed: nothing is left to do. Frozen for longer than its claim: its ending is refused if somebody
 * has claimed the task since, and counts if nobody has.
 */
export const handler: Answering<WorkReport | AddReport> = answering(async (event, context) => {
  const fields = fieldsOf(event, ["set", "add"]);
  const set = nameIn(fields, "set", 200);
  const { leases, maxAttempts, leaseDurationMs } = parts();
  const tasks = new TaskSet(leases, taskSetKey(set), { maxAttempts, leaseDurationMs });
  // The set itself looks at each of them, and refuses all if one is amiss.
  if (fields.add !== undefined) return await tasks.add(fields.add as readonly TaskInput[]);
  return await workOn(tasks, ({ payload }) => compareChecksum(payload), context.getRemainingTimeInMillis());
});
