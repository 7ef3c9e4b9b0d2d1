/** What the parts of a task set work with, made as a TaskSet makes it. */
import type { LeaseClient } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import type { TaskSetOptions } from "../../packages/jobs/src/index.ts";
import { checkTaskSetOptions } from "../../packages/jobs/src/tasks/options.ts";
import type { TaskContext } from "../../packages/jobs/src/tasks/task-context.ts";

export function taskContext(client: LeaseClient, set: string, options: TaskSetOptions = {}): TaskContext {
  const core = coreOf(client);
  return { core, set, terms: checkTaskSetOptions(options, core) };
}
