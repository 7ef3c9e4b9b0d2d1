import type { TaskInput } from "@leasehold/jobs";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required } from "../support/environment.ts";
import { fieldsOf, nameIn } from "../support/input.ts";
import { RegisteredSets } from "./register.ts";
import { tableVariable } from "./schema.ts";
import { compareChecksum, taskSet, type WorkReport, workOn } from "./worker.ts";

/** The result of adding tasks. Tasks that the set knew already stay as they are. */
export interface AddReport {
  readonly added: number;
  readonly known: number;
}

/**
 * Adds tasks to a set, or does the tasks of a set, at the same time as any number of other invocations.
 *
 *     { "set": "2026-03-01", "add": [{ "id": "a.csv", "payload": { "text": "…", "sha256": "…" } }] }
 *     → { "added": 1, "known": 0 }
 *     { "set": "2026-03-01" }
 *     → { "succeeded": 1, "failed": 0, "parked": 0, "putBack": 0, "lost": 0, "isUnfinished": false }
 *
 * A schedule starts workers for every set that has tasks (restart.ts), until all of them have ended.
 *
 * - Dies while it adds: of each fifty, all are there or none. The same call again adds the missing ones, and none twice.
 * - Dies before the set is registered: the same call again registers it.
 * - Dies with a claimed task: the attempt counts, and the claim expires after 30 s. The next worker does the task again,
 *   or parks it after its last attempt.
 * - Dies after the task's ending has landed: nothing is left to do.
 * - Frozen for longer than its claim: its ending is refused if another worker has claimed the task since, and counts
 *   otherwise.
 */
export const handler: Answering<WorkReport | AddReport> = answering(async (event, context) => {
  const fields = fieldsOf(event, ["set", "add"]);
  const set = nameIn(fields, "set", 200);
  const tasks = taskSet(set);
  if (fields.add === undefined) {
    return await workOn(tasks, ({ payload }) => compareChecksum(payload), context.getRemainingTimeInMillis());
  }
  // The set itself checks each of them, and refuses all if one is wrong.
  const report = await tasks.add(fields.add as readonly TaskInput[]);
  // After that: a restart may find the set drained in between and remove its entry; this renews the entry.
  await new RegisteredSets(documents(), required(tableVariable)).add(set, Date.now());
  return report;
});
