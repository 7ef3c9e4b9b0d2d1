// The pages of sets of tasks.

import { type TaskRecord, TaskSet, type TaskState } from "@leasehold/jobs";
import { defined } from "../flags.ts";
import { taskStates } from "../jobs/job-flags.ts";
import { cut } from "../terminal/text.ts";
import { keysOf } from "../view/key-rows.ts";
import { quoted } from "../view/next-steps.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import * as column from "./columns.ts";
import { type Html, html, named, offer, section } from "./html.ts";
import { list, paged, tabs } from "./list.ts";
import type { MakePage } from "./table-reader.ts";

interface SetCounts {
  readonly set: string;
  readonly counts: Readonly<Record<TaskState, number>>;
}

/** The address of a set of tasks, or of those in one state. */
export function setAddress(set: string, state?: string): string {
  return `/tasks/set?${new URLSearchParams(state === undefined ? { set } : { set, state })}`;
}

function totalOf(counts: SetCounts["counts"]): number {
  return taskStates.reduce((sum, state) => sum + counts[state], 0);
}

/** The states of a set as one bar; the numbers beside it say the same. */
function stateBar(counts: SetCounts["counts"]): Html {
  const total = Math.max(1, totalOf(counts));
  let x = 0;
  const parts = taskStates.map((state) => {
    const share = (counts[state] / total) * 100;
    x += share;
    return (
      share > 0 &&
      html`<rect class="${state}" x="${(x - share).toFixed(3)}%" width="${share.toFixed(3)}%" height="100%"/>`
    );
  });
  return html`<svg class="stack" role="img" aria-label="${taskStates.map((state) => `${counts[state]} ${state}`).join(", ")}">${parts}</svg>`;
}

const setColumns: readonly column.Column<SetCounts>[] = [
  column.key("Set", ({ set }) => set, setAddress),
  { title: "States", kind: "lane", cell: ({ counts }) => stateBar(counts) },
  ...taskStates.map((state): column.Column<SetCounts> => {
    const title = `${state.slice(0, 1).toUpperCase()}${state.slice(1)}`;
    const cell = ({ set, counts }: SetCounts) =>
      counts[state] === 0
        ? html`<span class="dim">0</span>`
        : html`<a href="${setAddress(set, state)}" class="count ${state}">${counts[state].toLocaleString("en-US")}</a>`;
    return { title, kind: "number", cell, by: ({ counts }) => counts[state] };
  }),
];

/** Each set costs at least one request at each look. */
const setsPerPage = 30;

/** The sets of tasks, each with its states. */
export const tasksPage: MakePage = async (request, { connection: { client }, table }) => {
  const names = keysOf("tasks", (await table.get()).keys);
  const { shown, pages } = paged(names, { caption: "sets", request, size: setsPerPage });
  const counted = shown.map(async (set) => ({ set, counts: await new TaskSet(client, set).counts() }));
  const sets = await Promise.all(counted);
  return {
    title: "Tasks",
    main: html`<h1>Tasks</h1><section class="card">${list({
      caption: "A set of tasks in each row",
      columns: setColumns,
      isPart: pages !== undefined,
      rows: sets,
      empty: "No tasks are kept in this table.",
      id: ({ set }) => set,
      version: ({ counts }) => Object.values(counts).join(" "),
      request,
    })}${pages}</section>`,
  };
};

const taskColumns = (now: number): readonly column.Column<TaskRecord>[] => {
  const forMs = ({ endedAt, startedAt, addedAt }: TaskRecord): number =>
    Math.max(0, now - (endedAt ?? startedAt ?? addedAt));
  return [
    column.key("Task", ({ id }) => id),
    column.state("State", ({ state }) => state),
    column.age("For", forMs),
    {
      title: "Attempts",
      kind: "number",
      cell: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}`,
      by: ({ attempts }) => attempts,
    },
    column.name("Worker", ({ owner }) => owner),
    column.text("Remark", ({ remark }) => remark),
    column.data("Payload", ({ payload }) => payload),
  ];
};

const mostTasksRead = 1_000;

/** The tasks of a set, or those in one state, and the actions on tasks that ended without success. */
export const setPage: MakePage = async (request, { connection: { client }, isReadOnly }) => {
  const set = request.query.get("set");
  if (!set) return undefined;
  const state = (request.query.get("state") ?? undefined) as TaskState | undefined;
  const taskSet = new TaskSet(client, set);
  const tasks: TaskRecord[] = [];
  for await (const task of taskSet.list(defined({ state }))) {
    tasks.push(task);
    if (tasks.length >= mostTasksRead) break;
  }
  const counts = await taskSet.counts();
  const now = serviceNow(client);
  const total = totalOf(counts);
  const states = taskStates.map((one) => ({ state: one, label: one, count: counts[one] }));
  const wanted = taskStates.find((one) => one === state);
  const inAll = wanted === undefined ? total : counts[wanted];
  return {
    title: set,
    main: html`<h1>${named(set)}</h1><p><a href="/tasks">All sets</a></p><section class="card">${stateBar(counts)}${tabs(request, [{ label: "all", count: total }, ...states])}
${inAll > tasks.length && html`<p class="dim">Here are ${tasks.length.toLocaleString("en-US")} of ${inAll.toLocaleString("en-US")}.</p>`}${list(
  {
    caption: "A task in each row",
    columns: taskColumns(now),
    rows: tasks,
    empty: "None.",
    id: ({ id }) => id,
    version: ({ state, attempts }) => `${state} ${attempts}`,
    request,
  },
)}</section>
${section("What you can do", html`<ul class="offers">${[...requeueOffers(set, tasks, isReadOnly)]}</ul>`)}`,
    readAt: now,
  };
};

/** A write names so many tasks at most. */
const mostRequeued = 100;

/** One offer for each group of ended tasks with the same remark. */
function* requeueOffers(set: string, tasks: readonly TaskRecord[], isReadOnly: boolean): Generator<Html> {
  const groups = Map.groupBy(
    tasks.filter(({ state }) => state === "parked" || state === "failed"),
    ({ state, remark }) => `${state} ${remark}`,
  );
  if (groups.size === 0) yield html`<li class="dim">Nothing: no task here has ended without success.</li>`;
  for (const [index, group] of [...groups.values()].entries()) {
    const [first] = group;
    if (first === undefined) continue;
    const { state, remark } = first;
    const ids = group.slice(0, mostRequeued).map(({ id }) => id);
    const given = {
      action: "requeue",
      title: `Requeue ${ids.length} ${state}: ${cut(remark, 80) || "without a remark"}`,
      explanation: "They wait again, with all their attempts.",
      fields: { set, state, remark, ids: JSON.stringify(ids) },
      inputs: [{ name: "reason", label: "Reason", isOptional: true }],
      commandLine: `leasehold tasks requeue ${quoted(set)} --state ${state}${remark === "" ? "" : ` --match ${quoted(remark)}`}`,
    };
    yield offer(given, isReadOnly, `requeue-${index}`);
  }
}
