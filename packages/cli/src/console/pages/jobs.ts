import type { JobRun } from "@leasehold/jobs";
import { durationText } from "../../terminal/durations.ts";
import { quoted } from "../../view/command-lines.ts";
import { type Html, html } from "../html.ts";
import { offer, payload, time } from "../parts.ts";
import type { Page } from "../server.ts";

/** A job, and its latest runs, the latest last; a slot that was due and has no run is missed. */
export interface JobStrip {
  readonly job: string;
  readonly runs: readonly JobRun[];
  readonly missed: readonly string[];
}

const signs: Readonly<Record<JobRun["state"] | "missed" | "exhausted", string>> = {
  succeeded: "✓",
  failed: "!",
  exhausted: "✗",
  lost: "?",
  skipped: "–",
  running: "▸",
  missed: "○",
};

/** A calendar strip for each job. */
export function jobsPage(strips: readonly JobStrip[], more: number): Page {
  const legend = Object.entries(signs).map(
    ([state, sign]) => html`<span class="cell ${state}">${sign}</span> ${state} `,
  );
  return {
    title: "Jobs",
    main: html`<h1>Jobs</h1>${strips.length === 0 ? html`<p class="dim">No runs of jobs are kept in this table.</p>` : html`<p class="strip">${legend}</p>`}
${strips.map(strip)}${more > 0 ? html`<p class="dim">${more} more jobs are not shown.</p>` : ""}`,
  };
}

function strip({ job, runs, missed }: JobStrip): Html {
  const cells = [
    ...runs.map((run) => ({ slot: run.slot, state: run.exhausted ? ("exhausted" as const) : run.state })),
    ...missed.map((slot) => ({ slot, state: "missed" as const })),
  ].sort((one, other) => (one.slot < other.slot ? -1 : 1));
  const last = runs.at(-1);
  const drawn = cells.map(
    ({
      slot,
      state,
    }) => html`<a class="cell ${state}" href="${runAddress(job, slot)}" data-focus="${`${job} ${slot}`}"
 title="${`${slot}: ${state}`}" aria-label="${`${slot}: ${state}`}">${signs[state]}</a>`,
  );
  return html`<section><h2>${job}</h2><div class="strip">${drawn}</div>
<p class="dim">${last === undefined ? "no run" : html`last run ${last.slot}: ${last.state}${last.remark === undefined ? "" : `, ${last.remark}`}`}</p></section>`;
}

function runAddress(job: string, slot: string): string {
  return `/jobs/run?${new URLSearchParams({ job, slot })}`;
}

/** One run of a job. */
export function runPage(job: string, slot: string, run: JobRun | undefined, isReadOnly: boolean): Page {
  const fields = { job, slot, attempt: String(run?.attempt ?? 0), "ended-at": String(run?.endedAt ?? "") };
  const words = `${quoted(job)} ${quoted(slot)}`;
  const isOpen = run === undefined || run.state === "failed" || run.state === "lost";
  const skip = {
    action: "skip",
    title: "Skip this slot",
    explanation: "It is recorded as skipped, and is not run any more.",
    fields,
    inputs: [{ name: "reason", label: "Reason" }],
    commandLine: `leasehold jobs skip ${words} --reason …`,
  };
  const facts: readonly (readonly [string, Html | string | number | undefined])[] = [
    [
      "State",
      run === undefined
        ? "no attempt has begun"
        : run.exhausted
          ? `${run.state}, and no attempts are left`
          : run.state,
    ],
    ["Attempt", run?.attempt],
    ["Lost attempts", run?.lostAttempts],
    ["By", run?.owner],
    ["Started", run?.startedAt === undefined ? undefined : time(run.startedAt)],
    [
      "Took",
      run?.startedAt === undefined || run.endedAt === undefined
        ? undefined
        : durationText(run.endedAt - run.startedAt),
    ],
    ["Remark", run?.remark],
    ["Progress", run?.progress === undefined ? undefined : payload(run.progress)],
  ];
  const shown = facts.flatMap(([name, value]) =>
    value === undefined ? [] : [html`<dt>${name}</dt><dd>${value}</dd>`],
  );
  return {
    title: `${job} ${slot}`,
    main: html`<h1>${job}</h1><p><code>${slot}</code> · <a href="/jobs">all jobs</a></p><dl>${shown}</dl>
<h2>What you can do</h2><ul>${isOpen ? offer("skip", skip, isReadOnly) : html`<li class="dim">Nothing: the slot is done.</li>`}
${isOpen ? html`<li>Run it again: <code>leasehold jobs retry ${words} -- COMMAND</code></li>` : ""}</ul>`,
  };
}
