import type { TaskRecord, TaskState } from "@leasehold/jobs";
import type { WorkReport } from "../../../functions/claim-tasks/worker.ts";
import {
  type Grant,
  type LoggedLeaseEvent,
  overlaps,
  ranOut,
  takenOver,
  type WasCutShort,
} from "../leases.ts";
import { type Check, check, listed, type Outcome, promise } from "../scenario.ts";

/**
 * What befalls a worker, each time as the ending of a task is on its way to the table.
 *
 * - `killed`: SIGKILL. Another worker does the task.
 * - `killedLast`: SIGKILL in the last attempt of the task. It is parked.
 * - `frozen`: SIGSTOP, until another worker has done the task.
 */
export type Mishap = "killed" | "killedLast" | "frozen";

/** A worker that was killed or frozen. */
export interface Casualty {
  readonly kind: Mishap;
  readonly worker: string;
  readonly taskId: string;
}

/** One call of the worker function, and what it reported. */
export interface Shift {
  readonly worker: string;
  readonly report: WorkReport | "died" | "failed" | "timedOut";
}

/** All that the audit looks at. */
export interface TasksEvidence {
  /** How many the set was given, and said that it added. */
  readonly given: number;
  readonly added: number;
  /** The tasks that cannot succeed, and those of them that are to be parked, in the order of their ids. */
  readonly bad: readonly string[];
  readonly hopeless: readonly string[];
  readonly mostAttempts: number;
  readonly casualties: readonly Casualty[];
  readonly shifts: readonly Shift[];
  /** The claims, as the table granted them; owners are the names of workers. */
  readonly grants: readonly Grant[];
  /** What all processes told of their claims. */
  readonly log: readonly LoggedLeaseEvent[];
  /** What is in the table in the end; owners are the names of workers. */
  readonly tasks: readonly TaskRecord[];
  /** Whether the frozen worker's ending was refused when it arrived after all. */
  readonly wasRefused: boolean;
}

/** Judges the end of each task, how often workers had it, and what the mishaps came to. */
export function judgeTasks(evidence: TasksEvidence): Outcome {
  return { checks: auditTasks(evidence), inShort: summarizeTasks(evidence), late: lateClaims(evidence) };
}

/** Checks the end of each task, and how often workers had it. */
function auditTasks(evidence: TasksEvidence): Check[] {
  const { given, added, bad, hopeless, mostAttempts, casualties, grants, tasks, wasRefused } = evidence;
  const claims = Map.groupBy(grants, ({ sortKey }) => idIn(sortKey, tasks));
  const inState = (...states: TaskState[]): TaskRecord[] =>
    tasks.filter(({ state }) => states.includes(state));
  const victims = casualties.filter(({ kind }) => kind !== "killedLast");
  const takenFrom = takenOver(grants, wasVictim(casualties));
  return [
    check("tasks added", given, added),
    check("tasks that have succeeded", given - bad.length, inState("succeeded").length),
    check(
      "bad tasks that have failed, with a remark",
      bad.length - hopeless.length,
      inState("failed").filter(({ id, remark }) => bad.includes(id) && remark.includes("SHA-256")).length,
    ),
    check("tasks parked, since no attempt can help them", listed(hopeless), ids(inState("parked"))),
    check("tasks left waiting or running", 0, inState("waiting", "running").length),
    promise("tasks in the table in the end", given, tasks.length),
    promise("good tasks that ended once, and no more", given - bad.length, endedOnce(evidence)),
    promise(
      "tasks ended under their last claim",
      given,
      tasks.filter((task) => isOfLast(task, claims)).length,
    ),
    check(
      "tasks whose attempts are their claims",
      given,
      tasks.filter((task) => isCounted(task, claims)).length,
    ),
    promise("most attempts of a task", mostAttempts, Math.max(...tasks.map(({ attempts }) => attempts))),
    check(
      "good tasks that took a second attempt",
      listed(victims.map(({ taskId }) => taskId).sort()),
      again(evidence),
    ),
    check("takeovers, from", listed(victims.map(({ worker }) => worker).sort()), listed(takenFrom.sort())),
    promise("claims of one task that overlapped in time", 0, overlaps(grants)),
    check(
      "workers killed",
      casualties.length - 1,
      evidence.shifts.filter(({ report }) => report === "died").length,
    ),
    promise("the frozen worker's ending, when it arrived", "refused", wasRefused ? "refused" : "landed"),
    check("tasks that the frozen worker reports as lost", 1, lostByFrozen(evidence)),
  ];
}

/** Says what came too late for the plan. */
function lateClaims({ casualties, grants, log, shifts }: TasksEvidence): string[] {
  const timedOut = shifts.flatMap(({ worker, report }) =>
    report === "timedOut" ? [`${worker} did not come to an end in its time`] : [],
  );
  return [...timedOut, ...ranOut(grants, log, wasVictim(casualties))];
}

/** Counts what happened, for the last line. */
function summarizeTasks({ tasks, grants }: TasksEvidence): string {
  const count = (state: TaskState): number => tasks.filter((task) => task.state === state).length;
  return (
    `${grants.length} claims of ${tasks.length} tasks: ${count("succeeded")} succeeded once each, ` +
    `${count("failed")} failed, ${count("parked")} parked`
  );
}

function ids(tasks: readonly TaskRecord[]): string {
  return listed(tasks.map(({ id }) => id));
}

function wasVictim(casualties: TasksEvidence["casualties"]): WasCutShort {
  return (owner) => casualties.some(({ worker }) => worker === owner);
}

/** The sort key of an open task ends with its id. */
function idIn(sortKey: string, tasks: readonly TaskRecord[]): string | undefined {
  return tasks.find(({ id }) => sortKey.endsWith(`#${id}`))?.id;
}

function endedOnce({ tasks, bad, log }: TasksEvidence): number {
  const good = tasks.filter(({ id }) => !bad.includes(id));
  const endings = log.flatMap(({ event }) =>
    event.type === "released" && event.confirmed ? [event.sortKey] : [],
  );
  return good.filter(({ id }) => endings.filter((sortKey) => sortKey.endsWith(`#${id}`)).length === 1).length;
}

type Claims = ReadonlyMap<string | undefined, readonly Grant[]>;

function isOfLast({ id, owner }: TaskRecord, claims: Claims): boolean {
  const inOrder = (claims.get(id) ?? []).toSorted((one, other) => one.fencingToken - other.fencingToken);
  return inOrder.at(-1)?.owner === owner;
}

function isCounted({ id, attempts }: TaskRecord, claims: Claims): boolean {
  return claims.get(id)?.length === attempts;
}

function again({ tasks, bad }: TasksEvidence): string {
  return listed(tasks.flatMap(({ id, attempts }) => (attempts === 1 || bad.includes(id) ? [] : [id])).sort());
}

function lostByFrozen({ casualties, shifts }: TasksEvidence): number {
  const frozen = casualties.find(({ kind }) => kind === "frozen")?.worker;
  const reports = shifts.filter(({ worker }) => worker === frozen).map(({ report }) => report);
  return reports.reduce((sum, report) => sum + (typeof report === "string" ? 0 : report.lost), 0);
}
