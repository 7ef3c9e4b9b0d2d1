import type { Task, TaskSet } from "@leasehold/jobs";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required } from "../support/environment.ts";
import { hasTimeLeft } from "../support/working-time.ts";
import { RegisteredSets } from "./register.ts";
import { tableVariable } from "./schema.ts";
import { compareChecksum, taskSet, type WorkReport, workOn } from "./worker.ts";

/** The result of a restart, over all sets. */
export interface RestartReport extends WorkReport {
  /** Sets in the register. */
  readonly sets: number;
  /** Sets that left it: all of their tasks have ended. */
  readonly drained: number;
}

/** What a restart works with. */
export interface RestartParts {
  readonly sets: Pick<RegisteredSets, "all" | "forget">;
  readonly open: (set: string) => TaskSet;
  readonly work: (task: Task) => unknown;
  readonly remainingMs: () => number;
  readonly now: () => number;
}

/** An entry is kept for this long, whatever its set shows: a look may lag behind added tasks, and clocks differ. */
const keptForMs = 10 * 60 * 1000;

/** Works on every set in the register, as long as there is time, and removes drained sets from it. */
export async function restart({ sets, open, work, remainingMs, now }: RestartParts): Promise<RestartReport> {
  const registered = await sets.all();
  const sum = { succeeded: 0, failed: 0, parked: 0, putBack: 0, lost: 0 };
  let isUnfinished = false;
  let drained = 0;
  for (const one of shuffled(registered)) {
    isUnfinished ||= !hasTimeLeft(remainingMs());
    if (isUnfinished) break;
    const tasks = open(one.set);
    const report = await workOn(tasks, work, remainingMs());
    for (const count of ["succeeded", "failed", "parked", "putBack", "lost"] as const)
      sum[count] += report[count];
    isUnfinished = report.isUnfinished;
    if (isUnfinished || now() - one.addedAt < keptForMs || !(await isDrained(tasks))) continue;
    await sets.forget(one);
    drained += 1;
  }
  return { sets: registered.length, drained, ...sum, isUnfinished };
}

async function isDrained(tasks: TaskSet): Promise<boolean> {
  for (const state of ["waiting", "running"] as const)
    for await (const _ of tasks.list({ state })) return false;
  return true;
}

/** A set with much work must not keep the others waiting for ever. */
function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, at: Math.random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ value }) => value);
}

/**
 * Does the tasks of all sets: those that wait for their next attempt, and those of workers that died or ran out of
 * time. A schedule calls it. Two runs at once share the tasks as all workers do.
 *
 * If it dies, the next run goes on. An entry leaves the register when all of its tasks have ended, or later.
 */
export const handler: Answering<RestartReport> = answering((_event, context) =>
  restart({
    sets: new RegisteredSets(documents(), required(tableVariable)),
    open: taskSet,
    work: ({ payload }) => compareChecksum(payload),
    remainingMs: () => context.getRemainingTimeInMillis(),
    now: Date.now,
  }),
);
