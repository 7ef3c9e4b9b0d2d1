import type { Item, LeaseRecord } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/internal";
import type { EndedTask } from "./expressions.ts";
import { serialKeyOf, taskFenceOf } from "./record.ts";
import { taskAttributeNames, taskIdOf } from "./schema.ts";
import type { TaskContext } from "./task-context.ts";

/** Whether a task has used up its attempts. */
export function isExhausted(item: Item): boolean {
  return Number(item[taskAttributeNames.attempts]) >= Number(item[taskAttributeNames.maxAttempts]);
}

/** The item of an ended task, made from the open one. `record` is the last worker's claim, if there is one. */
export function endedTask(
  { core, set, terms }: TaskContext,
  item: Item,
  record: LeaseRecord | undefined,
  state: EndedTask["state"],
  remark: string,
  token: string,
): EndedTask {
  const now = core.clock.now();
  return {
    set,
    id: taskIdOf(String(item[attributeNames.sortKey])),
    state,
    token,
    remark,
    payload: String(item[taskAttributeNames.payload] ?? ""),
    attempts: Number(item[taskAttributeNames.attempts]),
    maxAttempts: Number(item[taskAttributeNames.maxAttempts]),
    worker: record && { owner: record.owner, acquiredAt: record.acquiredAt },
    // A task that was never claimed gets its number from the time, as a first claim would give it.
    fencingToken: taskFenceOf(item) ?? now,
    addedAt: Number(item[taskAttributeNames.addedAt]),
    serialKey: serialKeyOf(item),
    now,
    keepForMs: terms.keepForMs,
  };
}
