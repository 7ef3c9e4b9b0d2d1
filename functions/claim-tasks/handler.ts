import type { TaskInput } from "@leasehold/jobs";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required } from "../support/environment.ts";
import { fieldsOf, nameIn } from "../support/input.ts";
import { compareChecksum } from "./checksum.ts";
import { register } from "./register.ts";
import { tableVariable } from "./schema.ts";
import { taskSet } from "./task-sets.ts";
import { type WorkReport, workOn } from "./worker.ts";

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
 * A schedule starts workers for every set that tasks were added to (restart.ts), until all of them have ended.
 *
 * Dies while it adds: by fifties, all are there or none; the same call again adds those that are missing, and no task
 * twice. Dies before the set is registered: the same call again registers it. Dies after it has claimed a task, before,
 * during or after the work: the attempt counts, the claim runs out after 30 s, and the worker that is called then does the
 * task again, or parks it if that was its last attempt. Dies after the task's ending has landed: nothing is left to do.
 * Frozen for longer than its claim: its ending is refused if somebody has claimed the task since, and counts if nobody
 * has.
 */
export const handler: Answering<WorkReport | AddReport> = answering(async (event, context) => {
  const fields = fieldsOf(event, ["set", "add"]);
  const set = nameIn(fields, "set", 200);
  const tasks = taskSet(set);
  if (fields.add === undefined) {
    return await workOn(tasks, ({ payload }) => compareChecksum(payload), context.getRemainingTimeInMillis());
  }
  // The set itself looks at each of them, and refuses all if one is amiss.
  const report = await tasks.add(fields.add as readonly TaskInput[]);
  // After that: a restart that finds the set drained in between takes out an entry that this one renews.
  await register(documents(), required(tableVariable), set);
  return report;
});
