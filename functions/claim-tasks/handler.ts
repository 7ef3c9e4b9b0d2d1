import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required, wholeNumber } from "../support/environment.ts";
import { fieldsOf, nameIn } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { compareChecksum } from "./checksum.ts";
import { mostAttemptsVariable, tableVariable } from "./schema.ts";
import { TaskBoard } from "./task-board.ts";
import { type WorkReport, workOn } from "./worker.ts";

const parts = once(() => ({
  leases: leaseClient(documents()),
  board: new TaskBoard(documents(), required(tableVariable)),
  mostAttempts: wholeNumber(mostAttemptsVariable, 3),
}));

/** So long the tasks of a worker that died stay claimed. */
const leaseDurationMs = 30_000;

/**
 * Does the tasks of a set, side by side with as many other invocations as there are: `{ "set": "2026-03-01" }` → counts.
 *
 * Dies after it has claimed a task and before it has begun it: the claim ends with its lease, and the attempt does not
 * count. While it works: the task stays `running` until somebody claims it anew, and the attempt counts. After the result
 * has landed: nothing is left to do but for the lease to end. Frozen for longer than its lease: its result is refused.
 */
export const handler: Answering<WorkReport> = answering((event, context) => {
  const set = nameIn(fieldsOf(event, ["set"]), "set", 200);
  const remainingMs = (): number => context.getRemainingTimeInMillis();
  return workOn({ ...parts(), work: compareChecksum, leaseDurationMs, remainingMs }, set);
});
