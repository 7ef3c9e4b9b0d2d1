import type { Item, LeaseRecord } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/internal";
import type { TaskDesk } from "./desk.ts";
import type { EndedTask } from "./expressions.ts";
import { fenceOf } from "./record.ts";
import { taskAttributeNames, taskIdOf } from "./schema.ts";

/** No attempt is left. */
export function isExhausted(item: Item): boolean {
  return Number(item[taskAttributeNames.attempts]) >= Number(item[taskAttributeNames.maxAttempts]);
}

/** What stays of an open task when it ends; `record` is its last worker's, if there is one. */
export function endedTask(
  { set, terms, context }: TaskDesk,
  item: Item,
  record: LeaseRecord | undefined,
  state: EndedTask["state"],
  remark: string,
  token: string,
): EndedTask {
  const now = context.clock.now();
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
    // Seeded from the time where it has never been claimed, as the first claim does.
    fencingToken: fenceOf(item) ?? now,
    addedAt: Number(item[taskAttributeNames.addedAt]),
    now,
    keepForMs: terms.keepForMs,
  };
}
