// The common parts of commands about jobs: the form of slots, ranges and schedules, the job's own limits, and the
// display of runs.

import type { LeaseClient } from "@leasehold/client";
import {
  InvalidScheduleError,
  type JobRun,
  JobRuns,
  type JobRunsOptions,
  parseScheduleExpression,
  type RegisteredJob,
  type RunState,
  registeredJobs,
  type Schedule,
  type TaskState,
} from "@leasehold/jobs";
import { messageOf, UsageError } from "../exit-codes.ts";
import { custom, defined, duration, type Flags, text, type Values, whole } from "../flags.ts";
import type { Cell, Column, Style } from "../terminal/table.ts";
import { durationText, parseDuration, shown, timeText } from "../terminal/text.ts";

/** The limits in the job's own code: they determine which slots are exhausted or forgotten. */
export const limitFlags = {
  "max-attempts": whole("attempts that a slot may have, as the job's code says (default 3)", {
    least: 1,
    most: 1_000,
  }),
  keep: duration("for how long runs are kept, as the job's code says (default 30d)"),
} satisfies Flags;

export const scheduleFlags = {
  schedule: text(
    "EXPR",
    "when it is due, as EventBridge writes it: 'cron(0 8 ? * MON-FRI *)' (default: as its code has registered it)",
  ),
  tz: text("ZONE", "time zone of the schedule, such as Europe/Berlin (default UTC)"),
} satisfies Flags;

export const rangeFlags = {
  since: custom("DUR|TIME", "from this slot on: 7d, or a time in UTC (default 7d)", boundaryIn),
  until: custom("DUR|TIME", "up to, and without, this slot (default now)", boundaryIn),
} satisfies Flags;

/** Reads `7d`, `2026-11-21` or `2026-11-21T08:00Z`: a time, as soon as it is known what time it is now. */
function boundaryIn(given: string, name: string): (now: number) => Date {
  const agoMs = parseDuration(given);
  if (typeof agoMs === "number") return (now) => new Date(now - agoMs);
  const time = zonedTime(/^\d{4}-\d\d-\d\d$/.test(given) ? `${given}T00:00Z` : given);
  if (time !== undefined) return () => time;
  throw new UsageError(`${name} is "${given}"; allowed: 7d, 2026-11-21, or 2026-11-21T08:00Z`);
}

const defaultSinceMs = 7 * 24 * 3_600_000;
export const runStates: readonly RunState[] = ["running", "succeeded", "failed", "lost", "skipped"];

/** Every state of a task, in the order of its life. */
export const taskStates: readonly TaskState[] = [
  ...(["waiting", "running", "succeeded", "failed", "parked", "cancelled"] as const),
];

export function jobRunsOf(
  client: LeaseClient,
  job: string,
  flags: Values<typeof limitFlags>,
  more: JobRunsOptions = {},
): JobRuns {
  const options = defined({ maxAttempts: flags["max-attempts"], keepForMs: flags.keep });
  return new JobRuns(client, job, { describeError: messageOf, ...options, ...more });
}

/** Reads a time with its zone; undefined for any other text, and for a day that its month does not have. */
function zonedTime(given: string): Date | undefined {
  const time = /(Z|[+-]\d\d:\d\d)$/.test(given) ? Date.parse(given) : Number.NaN;
  const [day] = /^\d{4}-\d\d-\d\d/.exec(given) ?? [];
  // JavaScript takes 30 February for 2 March.
  const isDay = day === undefined || new Date(`${day}T00:00Z`).toJSON()?.startsWith(day);
  return Number.isNaN(time) || !isDay ? undefined : new Date(time);
}

/** Reads a slot: a time in UTC or with an offset, seconds and milliseconds left out where they are 0. */
export function slotIn(given: string): string {
  const time = zonedTime(given);
  if (time !== undefined) return time.toISOString();
  throw new UsageError(
    `the slot is "${shown(given)}"; allowed: a time with its zone, such as 2026-11-21T08:00Z`,
  );
}

/** The range of slots that the flags name. */
export function rangeOf(
  { since, until }: Values<typeof rangeFlags>,
  now: number,
): { readonly since: Date; readonly until: Date } {
  return {
    since: since?.(now) ?? new Date(now - defaultSinceMs),
    until: until?.(now) ?? new Date(now),
  };
}

/** The schedule in the flags; undefined without one. */
export function givenSchedule({ schedule, tz }: Values<typeof scheduleFlags>): Schedule | undefined {
  return schedule === undefined ? undefined : registeredSchedule({ schedule, timeZone: tz });
}

/** A schedule as the registry has it. */
type WrittenSchedule = Pick<RegisteredJob, "schedule" | "timeZone">;

/** The schedule in the registry. Throws InvalidScheduleError. */
function registeredSchedule({ schedule, timeZone }: WrittenSchedule): Schedule {
  return parseScheduleExpression(schedule, defined({ timeZone }));
}

/** The schedule in the registry; undefined where this machine cannot read it, as with a time zone newer than its own. */
export function readableSchedule(written: WrittenSchedule): Schedule | undefined {
  try {
    return registeredSchedule(written);
  } catch (error) {
    if (error instanceof InvalidScheduleError) return undefined;
    throw error;
  }
}

/** The schedule in the flags, or else in the registry. Rejects with a UsageError without a schedule. */
export async function scheduleOf(
  client: LeaseClient,
  job: string,
  flags: Values<typeof scheduleFlags>,
): Promise<Schedule> {
  return registeredSchedule(await writtenSchedule(client, job, flags));
}

/** The expression in the flags, or else in the registry. Rejects with a UsageError without one. */
export async function writtenSchedule(
  client: LeaseClient,
  job: string,
  { schedule, tz: timeZone }: Values<typeof scheduleFlags>,
): Promise<WrittenSchedule> {
  if (schedule !== undefined) return { schedule, timeZone };
  const registered = (await registeredJobs(client)).find((one) => one.job === job);
  if (registered !== undefined) return { schedule: registered.schedule, timeZone: registered.timeZone };
  const advice = "give --schedule EXPR here, or schedule to JobRuns in the job's code";
  throw new UsageError(`the table does not know when ${shown(job)} is due: ${advice}`);
}

const keptMs = 30 * 24 * 3_600_000;
const firstLookBackMs = 60_000;

/** The latest slot that is due, looked for as far back as runs are kept. Throws a UsageError without one. */
export function dueSlot(written: WrittenSchedule, now: number, keepForMs = keptMs): string {
  const schedule = registeredSchedule(written);
  for (let backMs = firstLookBackMs; ; backMs = Math.min(8 * backMs, keepForMs)) {
    let due: Date | undefined;
    for (let at = schedule.next(new Date(now - backMs)); at && at.getTime() <= now; at = schedule.next(at))
      due = at;
    if (due !== undefined) return due.toISOString();
    if (backMs >= keepForMs) break;
  }
  throw new UsageError(
    `no slot of ${shown(written.schedule)} was due in the last ${durationText(keepForMs)}: --slot names one`,
  );
}

/** Reads `failed,lost`. Throws a UsageError. */
export function statesIn(given: string, name: string): readonly RunState[] {
  const words = given.split(",");
  const found = words.flatMap((word) => runStates.find((state) => state === word) ?? []);
  if (found.length === words.length) return found;
  throw new UsageError(`${name} is "${given}"; allowed: ${runStates.join(", ")}, with commas between`);
}

const styles: Readonly<Partial<Record<RunState | TaskState, Style>>> = {
  ...({ running: "cyan", succeeded: "green", failed: "red", lost: "red", parked: "red" } as const),
  ...({ skipped: "dim", cancelled: "dim" } as const),
};

/** The state of a run or a task, in its colour. */
export function stateCell(state: RunState | TaskState, text: string = state): Cell {
  return { text, style: styles[state] };
}

/** `EXHAUSTED` needs a person; `failed` and `lost` are retried. */
export function stateText({ state, exhausted }: JobRun): string {
  return exhausted ? "EXHAUSTED" : state;
}

/** The times of an attempt; of the latest, where a run is given. */
type AttemptTimes = Pick<JobRun, "state" | "startedAt" | "endedAt">;

/** How long an attempt took, or takes so far; undefined for a skipped slot, and if its times are not known. */
export function tookMs({ state, startedAt, endedAt }: AttemptTimes, now: number): number | undefined {
  if (startedAt === undefined || state === "skipped") return undefined;
  const end = state === "running" ? now : endedAt;
  return end === undefined ? undefined : Math.max(0, end - startedAt);
}

export function tookText(attempt: AttemptTimes, now: number): string {
  if (attempt.startedAt === undefined || attempt.state === "skipped") return "—";
  const ms = tookMs(attempt, now);
  return ms === undefined ? "?" : durationText(ms);
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

export function runColumns(maxAttempts: number, now: number): readonly Column<JobRun>[] {
  return [
    { title: "SLOT (UTC)", cell: ({ slot }) => slotText(slot) },
    { title: "STATE", cell: (run) => stateCell(run.state, stateText(run)) },
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
