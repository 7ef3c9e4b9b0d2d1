// The pages of jobs: when they are due, how their last runs went, and one run.

import type { LeaseClient } from "@leasehold/client";
import {
  type JobRun,
  type JobRunAttempt,
  JobRuns,
  type RegisteredJob,
  registeredJobs,
} from "@leasehold/jobs";
import { readableSchedule, tookMs } from "../jobs/job-flags.ts";
import { ageText, durationText } from "../terminal/text.ts";
import { keysOf } from "../view/key-rows.ts";
import { quoted } from "../view/next-steps.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import * as column from "./columns.ts";
import { badge, facts, type Html, html, named, offer, payloadOf, remarked, section, time } from "./html.ts";
import { list, paged } from "./list.ts";
import type { PageRequest } from "./server.ts";
import type { MakePage } from "./table-reader.ts";

/** A job, and its latest slots, the latest first. A slot that was due and has no run is missed. */
interface JobLook {
  readonly job: string;
  readonly slots: readonly JobSlot[];
  /** Undefined if the table does not know when the job is due. */
  readonly registered: RegisteredJob | undefined;
  /** When it is due next: epoch milliseconds. */
  readonly next: number | undefined;
  readonly now: number;
}

interface JobSlot {
  readonly slot: string;
  readonly state: JobRun["state"] | "missed" | "exhausted";
  readonly run: JobRun | undefined;
}

const dayMs = 24 * 60 * 60 * 1_000;
/** A slot that was due this recently may still begin. */
const beginsWithinMs = 60_000;

/** Reads the last slots of a job: those with a run, and those of the last day that were missed. */
async function lookAtJob(
  client: LeaseClient,
  job: string,
  jobs: readonly RegisteredJob[],
  limit: number,
): Promise<JobLook> {
  const jobRuns = new JobRuns(client, job);
  const slots: JobSlot[] = [];
  for await (const run of jobRuns.runs({ descending: true, limit })) {
    slots.push({ slot: run.slot, state: run.exhausted ? "exhausted" : run.state, run });
  }
  const now = serviceNow(client);
  const registered = jobs.find((one) => one.job === job);
  const schedule = registered && readableSchedule(registered);
  // Before the last run that is read, a slot without one may have had a run.
  const oldest = slots.length < limit ? undefined : slots.at(-1)?.slot;
  const since = new Date(Math.max(now - dayMs, Date.parse(oldest ?? "") || 0));
  const until = new Date(now - beginsWithinMs);
  const missed = schedule && (await Array.fromAsync(jobRuns.missed({ schedule, since, until })));
  for (const { slot, run } of missed ?? []) if (run === undefined) slots.push({ slot, state: "missed", run });
  slots.sort((one, other) => (one.slot > other.slot ? -1 : 1));
  const next = schedule?.next(new Date(now))?.getTime();
  return { job, slots: slots.slice(0, limit), registered, next, now };
}

const signs: Readonly<Record<JobSlot["state"], string>> = {
  succeeded: "✓",
  failed: "!",
  exhausted: "✗",
  lost: "?",
  skipped: "–",
  running: "▸",
  missed: "○",
};

const legend = html`<p class="legend dim">${Object.entries(signs).map(
  ([state, sign]) =>
    html`<span><span class="mark ${state}" aria-hidden="true">${sign}</span> ${state}</span> `,
)}</p>`;

function marks(job: string, slots: readonly JobSlot[]): Html {
  const drawn = slots.toReversed().map(({ slot, state }) => {
    const told = `${slot}: ${state}`;
    return html`<a class="mark ${state}" href="${runAddress(job, slot)}" title="${told}" aria-label="${told}" data-row="${slot}">${signs[state]}</a>`;
  });
  return html`<div class="strip">${drawn}</div>`;
}

function runAddress(job: string, slot: string): string {
  return `/jobs/run?${new URLSearchParams({ job, slot })}`;
}

export function jobAddress(job: string): string {
  return `/jobs/job?${new URLSearchParams({ job })}`;
}

/** How long the latest attempt of a slot took, or takes so far. */
function slotMs({ run }: JobSlot, now: number): number | undefined {
  return run && tookMs(run, now);
}

/** The median of the successes. */
function usualMs({ slots, now }: JobLook): number | undefined {
  const took = slots.flatMap((slot) => (slot.state === "succeeded" ? (slotMs(slot, now) ?? []) : []));
  return took.sort((one, other) => one - other)[Math.floor(took.length / 2)];
}

function scheduleText({ registered }: JobLook): Html {
  return registered === undefined
    ? html`<span class="dim">not known</span>`
    : html`<code>${registered.schedule}</code> <span class="dim">${registered.timeZone ?? "UTC"}</span>`;
}

function nextText({ next, now }: JobLook): Html | undefined {
  return next === undefined
    ? undefined
    : html`${time(next)} <span class="dim">in ${ageText(Math.max(0, next - now))}</span>`;
}

const jobColumns: readonly column.Column<JobLook>[] = [
  column.key("Job", ({ job }) => job, jobAddress),
  { title: "Schedule", cell: scheduleText },
  { title: "Next run", kind: "time", cell: nextText, by: ({ next }) => next },
  {
    title: "Last run",
    kind: "time",
    cell: ({ slots: [last] }) => last && html`${badge(last.state)}<div>${time(Date.parse(last.slot))}</div>`,
    by: ({ slots: [last] }) => last && `${last.state} ${last.slot}`,
  },
  {
    title: "Took",
    kind: "number",
    cell: (look) => {
      const [took, usual] = [look.slots[0] && slotMs(look.slots[0], look.now), usualMs(look)];
      return html`${took !== undefined && durationText(took)}${usual !== undefined && html` <span class="dim">usual ${durationText(usual)}</span>`}`;
    },
    by: ({ slots: [last], now }) => last && slotMs(last, now),
  },
  { title: "Last runs", kind: "marks", cell: ({ job, slots }) => marks(job, slots) },
];

/** Each job costs at least one request at each look. */
const jobsPerPage = 30;
const slotsInList = 24;

/** The jobs of one page of names, each with its last runs. */
export const jobsPage: MakePage = async (request, { connection: { client }, table }) => {
  const names = keysOf("job", (await table.get()).keys);
  const { shown, pages } = paged(names, { caption: "jobs", request, size: jobsPerPage });
  const registered = await registeredJobs(client);
  const looks = await Promise.all(shown.map((job) => lookAtJob(client, job, registered, slotsInList)));
  return {
    title: "Jobs",
    main: html`<h1>Jobs</h1><section class="card">${list({
      caption: "A job in each row",
      columns: jobColumns,
      isPart: pages !== undefined,
      rows: looks,
      empty: "No runs of jobs are kept in this table.",
      id: ({ job }) => job,
      version: ({ slots: [last] }) => `${last?.slot} ${last?.state}`,
      request,
    })}${pages}${looks.length > 0 && legend}</section>`,
  };
};

const slotColumns = ({ job, now }: JobLook): readonly column.Column<JobSlot>[] => [
  {
    title: "Slot",
    kind: "key",
    cell: ({ slot }) =>
      html`<a href="${runAddress(job, slot)}" title="${slot}">${time(Date.parse(slot))}</a>`,
    by: ({ slot }) => slot,
  },
  column.state("State", ({ state }) => state),
  column.number("Attempt", ({ run }) => run?.attempt),
  column.name("By", ({ run }) => run?.owner),
  column.time("Started", ({ run }) => run?.startedAt),
  column.age("Took", (slot) => slotMs(slot, now)),
  column.text("Remark", ({ run }) => run?.remark),
  column.data("Progress", ({ run }) => run?.progress),
];

const slotsOnPage = 300;

/** One job: its schedule and its last slots. */
export const jobPage: MakePage = async (request, { connection: { client } }) => {
  const job = request.query.get("job");
  if (!job) return undefined;
  const look = await lookAtJob(client, job, await registeredJobs(client), slotsOnPage);
  const { slots } = look;
  const usual = usualMs(look);
  return {
    title: job,
    main: html`<h1>${named(job)}</h1><p><a href="/jobs">All jobs</a></p><section class="card">${facts([
      ["Schedule", scheduleText(look)],
      ["Next run", nextText(look)],
      ["A success usually takes", usual !== undefined && durationText(usual)],
    ])}${marks(job, slots.slice(0, 60))}${legend}</section><section class="card">${list({
      caption: "A slot in each row, the latest first",
      columns: slotColumns(look),
      rows: slots,
      empty: "No runs of this job are kept.",
      id: ({ slot }) => slot,
      version: ({ state }) => state,
      request,
    })}</section>`,
    readAt: look.now,
  };
};

const attemptColumns: readonly column.Column<JobRunAttempt>[] = [
  column.number("Attempt", ({ attempt }) => attempt),
  column.state("State", ({ state }) => state),
  column.name("By", ({ owner }) => owner),
  column.time("Started", ({ startedAt }) => startedAt),
  column.time("Ended", ({ endedAt }) => endedAt),
  column.text("Remark", ({ remark }) => remark),
];

function attemptList(attempts: readonly JobRunAttempt[], request: PageRequest): Html {
  return html`<section class="card">${list({
    caption: "An attempt in each row",
    columns: attemptColumns,
    rows: attempts,
    empty: "No attempt has begun.",
    id: ({ attempt }) => String(attempt),
    version: ({ state }) => state,
    request,
  })}</section>`;
}

export const runPage: MakePage = async (request, { connection: { client }, isReadOnly }) => {
  const [job, slot] = [request.query.get("job"), request.query.get("slot")];
  if (!job || !slot) return undefined;
  const run = await new JobRuns(client, job).get(slot);
  const isOpen = run === undefined || run.state === "failed" || run.state === "lost";
  const skip = {
    action: "skip",
    title: "Skip this slot",
    explanation: "It is recorded as skipped, and is not run any more.",
    fields: { job, slot },
    inputs: [{ name: "reason", label: "Reason" }],
    commandLine: `leasehold jobs skip ${quoted(job)} ${quoted(slot)} --reason …`,
  };
  const state =
    run === undefined
      ? "no attempt has begun"
      : html`${badge(run.exhausted ? "exhausted" : run.state)}${run.exhausted && " no attempts are left"}`;
  const took =
    run?.startedAt === undefined || run.endedAt === undefined ? undefined : run.endedAt - run.startedAt;
  const offers = isOpen
    ? html`<ul class="offers">${offer(skip, isReadOnly)}<li><p>Run it again</p><pre tabindex="0">leasehold jobs run ${quoted(job)} --slot ${quoted(slot)} -- COMMAND</pre></li></ul>`
    : html`<p class="dim">Nothing: the slot is done.</p>`;
  return {
    title: `${job} ${slot}`,
    main: html`<h1>${named(job)} <span class="dim">${named(slot)}</span></h1><p><a href="${jobAddress(job)}">All of its runs</a> · <a href="/jobs">All jobs</a></p>
<div class="columns main"><section class="card" aria-label="The run">${facts([
      ["State", state],
      ["Slot", html`${time(Date.parse(slot))}`],
      ["Attempt", run?.attempt],
      ["Lost attempts", run?.lostAttempts],
      ["By", named(run?.owner, 200)],
      ["Started", run?.startedAt !== undefined && time(run.startedAt)],
      ["Took", took !== undefined && durationText(took)],
      ["Remark", remarked(run?.remark)],
      ["Progress", payloadOf(run?.progress)],
    ])}</section>${section("What you can do", offers)}</div>${run !== undefined && run.attempts.length > 1 && attemptList(run.attempts, request)}`,
  };
};
