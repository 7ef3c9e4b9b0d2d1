import type { EndedTask } from "../expressions-tasks.ts";
import type { LeaseRecord } from "../record.ts";
import { taskAttributeNames, taskIdOf } from "../schema-tasks.ts";
import type { Item } from "../store.ts";
import type { TaskDesk } from "./desk.ts";

/** No attempt is left. */
export function isExhausted(item: Item): boolean {
  return Number(item[taskAttributeNames.attempts]) >= Number(item[taskAttributeNames.maxAttempts]);
}

/** What stays of an open task when it ends. */
export function endedTask(
  { set, terms, context }: TaskDesk,
  item: Item,
  record: LeaseRecord,
  state: EndedTask["state"],
  remark: string,
  token: string,
): EndedTask {
  return {
    set,
    id: taskIdOf(record.place),
    state,
    token,
    remark,
    payload: String(item[taskAttributeNames.payload] ?? ""),
    attempts: Number(item[taskAttributeNames.attempts]),
    maxAttempts: Number(item[taskAttributeNames.maxAttempts]),
    owner: record.owner,
    fencingToken: record.fencingToken,
    addedAt: Number(item[taskAttributeNames.addedAt]),
    acquiredAt: record.acquiredAt,
    now: context.clock.now(),
    keepForMs: terms.keepForMs,
  };
}
