// The display of tasks, and the words for their states.

import type { TaskRecord, TaskState } from "@leasehold/jobs";
import { UsageError } from "../exit-codes.ts";
import { ageText } from "../terminal/durations.ts";
import type { Column, Style } from "../terminal/table.ts";
import { shown } from "../terminal/text.ts";

/** In the order of a task's life. */
export const taskStates: readonly TaskState[] = [
  "waiting",
  "running",
  "succeeded",
  "failed",
  "parked",
  "cancelled",
];

const styles: Partial<Record<TaskState, Style>> = {
  running: "cyan",
  succeeded: "green",
  failed: "red",
  parked: "red",
  cancelled: "dim",
};

/** Since when a task has been in its state, in epoch milliseconds. */
export function sinceOf({ state, addedAt, startedAt, endedAt }: TaskRecord): number {
  return (state === "running" ? startedAt : endedAt) ?? addedAt;
}

/** The columns of tasks. */
export function taskColumns(now: number): readonly Column<TaskRecord>[] {
  return [
    { title: "ID", cell: ({ id }) => id, gives: true },
    { title: "STATE", cell: ({ state }) => (styles[state] ? { text: state, style: styles[state] } : state) },
    { title: "ATTEMPTS", cell: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}`, align: "right" },
    { title: "OWNER", cell: ({ owner }) => owner ?? "—", gives: true },
    { title: "SINCE", cell: (task) => ageText(Math.max(0, now - sinceOf(task))), align: "right" },
    { title: "REMARK", cell: ({ remark }) => remark, gives: true },
  ];
}

/** Reads a state. Throws a UsageError. */
export function taskStateIn(given: string | undefined): TaskState | undefined {
  if (given === undefined) return undefined;
  const state = taskStates.find((one) => one === given);
  if (state !== undefined) return state;
  throw new UsageError(`--state is "${shown(given)}"; allowed: ${taskStates.join(", ")}`);
}
