// The display of a job's run.

import type { JobRun } from "@leasehold/jobs";
import { durationText, timeText } from "../terminal/durations.ts";
import type { Cell, Column, Style } from "../terminal/table.ts";

const styles: Partial<Record<string, Style>> = {
  succeeded: "green",
  running: "cyan",
  skipped: "dim",
};

/** `EXHAUSTED` needs a person; `failed` and `lost` are retried. */
export function stateText({ state, exhausted }: JobRun): string {
  return exhausted ? "EXHAUSTED" : state;
}

export function stateCell(run: JobRun): Cell {
  return { text: stateText(run), style: styles[run.state] ?? "red" };
}

/** How long the latest attempt took, or takes so far. */
export function tookText({ state, startedAt, endedAt }: JobRun, now: number): string {
  if (startedAt === undefined || state === "skipped") return "—";
  const end = state === "running" ? now : endedAt;
  return end === undefined ? "?" : durationText(Math.max(0, end - startedAt));
}

/** `2026-11-21 08:00`, with seconds where there are any. */
export function slotText(slot: string): string {
  return slot
    .replace("T", " ")
    .replace(/(:00)?\.000Z$/, "")
    .replace(/Z$/, "");
}

/** The remark, and the last progress report if the run has not succeeded. */
export function remarkText({ remark, progress, state }: JobRun): string {
  const report = progress === undefined || state === "succeeded" ? [] : [JSON.stringify(progress)];
  return [...(remark === undefined ? [] : [remark]), ...report].join("  ");
}

/** The columns of runs. */
export function runColumns(maxAttempts: number, now: number): readonly Column<JobRun>[] {
  return [
    { title: "SLOT (UTC)", cell: ({ slot }) => slotText(slot) },
    { title: "STATE", cell: stateCell },
    { title: "ATTEMPT", cell: ({ attempt }) => `${attempt}/${maxAttempts}`, align: "right" },
    { title: "OWNER", cell: ({ owner }) => owner ?? "—", gives: true },
    {
      title: "STARTED",
      cell: ({ startedAt }) => (startedAt === undefined ? "—" : timeText(startedAt).slice(5)),
    },
    { title: "TOOK", cell: (run) => tookText(run, now), align: "right" },
    { title: "REMARK / PROGRESS", cell: remarkText, gives: true },
  ];
}
