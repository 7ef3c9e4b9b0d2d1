// The pages of jobs and tasks.

import type { JobRun, TaskRecord, TaskState } from "@leasehold/jobs";
import { ageText, durationText } from "../terminal/text.ts";
import { quoted } from "../view/next-steps.ts";
import { foldedPayload, type Html, html, offer, payload, time } from "./html.ts";
import type { Page } from "./server.ts";

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

/** A set of tasks, counted. */
export interface SetCounts {
  readonly set: string;
  readonly counts: Readonly<Record<TaskState, number>>;
}

const mostTasks = 300;

function setAddress(set: string, state?: string): string {
  return `/tasks/set?${new URLSearchParams(state === undefined ? { set } : { set, state })}`;
}

/** The sets of tasks, each with its states. */
export function tasksPage(sets: readonly SetCounts[], more: number): Page {
  const states = Object.keys(sets[0]?.counts ?? {}) as TaskState[];
  const rows = sets.map(
    ({ set, counts }) =>
      html`<tr><td><a href="${setAddress(set)}" data-focus="${`set ${set}`}">${set}</a></td>${states.map(
        (state) =>
          html`<td class="number${state === "parked" && counts[state] > 0 ? " bad" : ""}">${
            counts[state] === 0 ? "0" : html`<a href="${setAddress(set, state)}">${counts[state]}</a>`
          }</td>`,
      )}</tr>`,
  );
  return {
    title: "Tasks",
    main: html`<h1>Tasks</h1>${
      rows.length === 0
        ? html`<p class="dim">No tasks are kept in this table.</p>`
        : html`<div class="wrap"><table><thead><tr><th>Set</th>${states.map((state) => html`<th class="number">${state}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`
    }${more > 0 ? html`<p class="dim">${more} more sets are not shown.</p>` : ""}`,
  };
}

/** The tasks of a set, or those in one state, and the actions on tasks that ended without success. */
export function setPage(
  set: string,
  state: TaskState | undefined,
  tasks: readonly TaskRecord[],
  { now, isReadOnly }: { readonly now: number; readonly isReadOnly: boolean },
): Page {
  const shown = tasks.slice(0, mostTasks);
  const rows = shown.map(
    (
      task,
    ) => html`<tr><td>${task.id}</td><td class="${task.state === "parked" || task.state === "failed" ? "bad" : ""}">${task.state}</td>
<td class="number">${task.attempts}/${task.maxAttempts}</td><td class="wide">${task.owner ?? ""}</td><td class="number">${ageText(Math.max(0, now - (task.endedAt ?? task.startedAt ?? task.addedAt)))}</td>
<td>${task.remark}</td><td class="wide">${foldedPayload(task.payload, `payload ${task.id}`)}</td></tr>`,
  );
  return {
    title: set,
    main: html`<h1>${set}</h1><p>${state === undefined ? "All tasks" : `Those that are ${state}`} · <a href="${setAddress(set)}">all of the set</a> · <a href="/tasks">all sets</a></p>
${
  rows.length === 0
    ? html`<p class="dim">None.</p>`
    : html`<div class="wrap"><table><thead><tr><th>Task</th><th>State</th><th class="number">Attempts</th><th class="wide">Worker</th><th class="number">For</th><th>Remark</th><th class="wide">Payload</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}${tasks.length > shown.length ? html`<p class="dim">More are not shown.</p>` : ""}
<h2>What you can do</h2><ul>${[...requeueOffers(set, shown, isReadOnly)]}</ul><p class="dim">Read at ${time(now)}</p>`,
  };
}

/** One offer for each group of ended tasks with the same remark. */
function* requeueOffers(set: string, tasks: readonly TaskRecord[], isReadOnly: boolean): Generator<Html> {
  const groups = new Map<string, TaskRecord[]>();
  for (const task of tasks) {
    if (task.state !== "parked" && task.state !== "failed") continue;
    const name = `${task.state} ${task.remark}`;
    groups.set(name, [...(groups.get(name) ?? []), task]);
  }
  if (groups.size === 0) yield html`<li class="dim">Nothing: no task here has ended without success.</li>`;
  for (const [index, group] of [...groups.values()].entries()) {
    const [first] = group;
    if (first === undefined) continue;
    const { state, remark } = first;
    const match = remark === "" ? "" : ` --match ${quoted(remark)}`;
    const given = {
      action: "requeue",
      title: `Requeue ${group.length} ${state}: ${remark || "without a remark"}`,
      explanation: "They wait again, with all their attempts.",
      fields: { set, state, remark, ids: JSON.stringify(group.slice(0, 100).map(({ id }) => id)) },
      inputs: [{ name: "reason", label: "Reason", isOptional: true }],
      commandLine: `leasehold tasks requeue ${quoted(set)} --state ${state}${match}`,
    };
    yield offer(`requeue-${index}`, given, isReadOnly);
  }
}
