/** Workloads of what is done once: the slots of a job, the tasks of a set. */
import { setTimeout as sleep } from "node:timers/promises";
import { type LeaseClient, SlotDoneError } from "@leasehold/client";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { microseconds } from "../history.ts";
import { keys, terms } from "../terms.ts";
import { answering, outcomeOf, type WorkContext } from "./context.ts";

/** No slot and no task may end for want of attempts: it is to succeed in the end. */
const maxAttempts = 1_000;
const attemptsAtOnce = { maxAttempts, backoff: { delayMs: 100, maxDelayMs: 500 } } as const;

/** The work of some attempts fails, as any work may. */
class WorkError extends Error {}

/** How many slots there are by now: a new one each second. */
function slotsDue({ config }: WorkContext): number {
  return 1 + Math.floor((microseconds() - config.startedAt) / 1_000_000);
}

function slotAt({ config }: WorkContext, index: number): string {
  return new Date(config.firstSlot + index * 1_000).toISOString();
}

export function jobRunsOf(client: LeaseClient): JobRuns {
  return new JobRuns(client, keys.runs[0], { maxAttempts, keepForMs: 366 * 86_400_000 });
}

export function taskSetOf(client: LeaseClient): TaskSet {
  return new TaskSet(client, keys.tasks[0], attemptsAtOnce);
}

/** Runs one of the latest slots, as if its trigger had come. */
export async function runTurn(context: WorkContext, runs: JobRuns): Promise<void> {
  const latest = slotsDue(context) - 1;
  await runSlot(context, runs, slotAt(context, Math.max(0, latest - context.random.integer(0, 6))), 0.2);
}

/** Runs every slot until it is done; tells which are not, after as many tries. */
export async function finishSlots(
  context: WorkContext,
  runs: JobRuns,
  tries: number,
): Promise<readonly string[]> {
  let open = Array.from({ length: slotsDue(context) }, (_, index) => slotAt(context, index));
  for (let left = tries; left > 0 && open.length > 0; left -= 1) {
    const isDone = await Promise.all(open.map((slot) => runSlot(context, runs, slot, 0)));
    open = open.filter((_slot, index) => !isDone[index]);
    if (open.length > 0) await sleep(terms.leaseDurationMs);
  }
  return open;
}

/** Works until no task is open; tells how many are, after as many tries without one that can be claimed. */
export async function finishTasks(context: WorkContext, tasks: TaskSet, tries: number): Promise<number> {
  for (let left = tries; ; ) {
    if (await workOnTask(context, tasks, 0)) continue;
    const { waiting, running } = await tasks.counts();
    left -= 1;
    if (waiting + running === 0 || left === 0) return waiting + running;
    await sleep(500);
  }
}

/** Runs a slot; tells whether it is done, by this attempt or an earlier one. */
async function runSlot(context: WorkContext, runs: JobRuns, slot: string, failing: number): Promise<boolean> {
  const { journal, random } = context;
  const key = `${runs.job}/${slot}`;
  const since = microseconds();
  const answer = journal.call("runs", "run", key);
  let succeeding: ReturnType<typeof journal.call> | undefined;
  try {
    await runs.run(slot, async ({ lease, attempt }) => {
      const { fencingToken } = lease;
      await context.hold(lease, { primitive: "runs", key, fencingToken, since, attempt });
      if (random.chance(failing)) throw new WorkError("as the torture wants it");
      succeeding = journal.call("runs", "succeed", key, { attempt });
    });
    succeeding?.("ok");
    answer("ok");
    return true;
  } catch (error) {
    if (error instanceof WorkError) {
      answer("ok", { failed: true });
      return false;
    }
    const { outcome, code } = outcomeOf(error);
    succeeding?.(outcome, { code });
    answer(outcome, { code });
    return error instanceof SlotDoneError;
  }
}

let tasksAdded = 0;

/** Adds a few tasks, or claims one and ends it. */
export async function taskTurn(context: WorkContext, tasks: TaskSet): Promise<void> {
  if (context.random.chance(0.2)) await addTask(context, tasks);
  else await workOnTask(context, tasks, 0.2);
}

async function addTask({ journal, config }: WorkContext, tasks: TaskSet): Promise<void> {
  tasksAdded += 1;
  const id = `${config.name}-${tasksAdded}`;
  const answer = journal.call("tasks", "add", `${tasks.name}/${id}`);
  await answering(answer, async () => {
    await tasks.add([{ id }]);
    answer("ok");
  });
}

/** Claims a task and ends it; tells whether there was one. */
async function workOnTask(context: WorkContext, tasks: TaskSet, failing: number): Promise<boolean> {
  const { journal, random } = context;
  const since = microseconds();
  const answer = journal.call("tasks", "claim", tasks.name);
  const claimed = await answering(answer, async () => {
    const task = await tasks.claim();
    answer("ok", task === undefined ? {} : { task: task.id, attempt: task.attempt });
    return { task };
  });
  if (claimed === undefined) return true;
  const { task } = claimed;
  if (task === undefined) return false;
  const { id, attempt, fencingToken } = task;
  const key = `${tasks.name}/${id}`;
  await context.hold(task, { primitive: "tasks", key, fencingToken, since, attempt });
  const isFailing = random.chance(failing);
  const end = journal.call("tasks", isFailing ? "fail" : "succeed", key, { attempt });
  await answering(end, async () => {
    await (isFailing ? task.fail("as the torture wants it") : task.succeed());
    end("ok");
  });
  return true;
}
