import type { Task, TaskSet } from "../../packages/jobs/src/index.ts";

/** Claims a task of a set that has one to claim. */
export async function claimed(set: TaskSet): Promise<Task> {
  const task = await set.claim();
  if (task === undefined) throw new Error("there is no task to claim");
  return task;
}
