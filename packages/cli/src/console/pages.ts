// The pages by their addresses.

import type { LeaseClient } from "@leasehold/client";
import { type LeaseChange, LeaseOperator } from "@leasehold/client/admin";
import {
  JobRuns,
  type RegisteredJob,
  registeredJobs,
  type TaskRecord,
  TaskSet,
  type TaskState,
} from "@leasehold/jobs";
import { defined } from "../flags.ts";
import { readableSchedule } from "../jobs/job-flags.ts";
import { primitivesOf } from "../view/key-rows.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import { type JobLook, type JobSlot, jobPage, jobsPage, runPage } from "./job-pages.ts";
import { keyPage } from "./key-page.ts";
import type { Page } from "./layout.ts";
import { paged } from "./list.ts";
import type { PageRequest } from "./server.ts";
import { auditPage, locksPage, tablePage } from "./table-pages.ts";
import type { PageContext, TableReader } from "./table-reader.ts";
import { setPage, tasksPage } from "./task-pages.ts";

/** Each job or set costs at least one request at each look. */
const namesPerPage = 30;
const slotsInList = 24;
const slotsOnPage = 300;
const mostTasksRead = 1_000;
const mostChanges = 200;

type MakePage = (request: PageRequest, context: PageContext) => Promise<Page | undefined>;

const pages: Readonly<Record<string, MakePage>> = {
  "/": async (request, { reader }) => locksPage(await reader.read(), request),
  "/audit": async (request, { reader }) => auditPage(await reader.read(), request),
  "/table": tablePage,
  "/key": async (request, { connection: { client }, isReadOnly }) => {
    const key = request.query.get("key");
    if (!key) return undefined;
    // A read needs no person's name.
    const operator = new LeaseOperator(client, { by: "console" });
    const details = await operator.describe(key);
    const changes: LeaseChange[] = [];
    const latest = operator.history(key, { newestFirst: true, limit: mostChanges });
    for await (const change of latest) changes.push(change);
    return keyPage({ details, changes, request, isReadOnly });
  },
  "/jobs": async (request, { connection: { client }, reader }) => {
    const { shown, pages } = await namesOf(reader, "job", request);
    const registered = await registeredJobs(client);
    const looks = shown.map((job) => lookAtJob(client, job, registered, slotsInList));
    return jobsPage(await Promise.all(looks), pages, request);
  },
  "/jobs/job": async (request, { connection: { client } }) => {
    const job = request.query.get("job");
    if (!job) return undefined;
    return jobPage(await lookAtJob(client, job, await registeredJobs(client), slotsOnPage), request);
  },
  "/jobs/run": async (request, { connection: { client }, isReadOnly }) => {
    const [job, slot] = [request.query.get("job"), request.query.get("slot")];
    if (!job || !slot) return undefined;
    return runPage(job, slot, { run: await new JobRuns(client, job).get(slot), request, isReadOnly });
  },
  "/tasks": async (request, { connection: { client }, reader }) => {
    const { shown, pages } = await namesOf(reader, "tasks", request);
    const counted = shown.map(async (set) => ({ set, counts: await new TaskSet(client, set).counts() }));
    return tasksPage(await Promise.all(counted), pages, request);
  },
  "/tasks/set": async (request, { connection: { client }, isReadOnly }) => {
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
    return setPage({ set, counts, tasks, now: serviceNow(client), request, isReadOnly });
  },
};

/** Makes the page at an address; undefined without one. */
export async function makePage(request: PageRequest, context: PageContext): Promise<Page | undefined> {
  return Object.hasOwn(pages, request.path) ? await pages[request.path]?.(request, context) : undefined;
}

/** One page of the names of all jobs, or of all sets of tasks. */
async function namesOf(reader: TableReader, primitive: "job" | "tasks", request: PageRequest) {
  const { keys } = await reader.read();
  const names = keys.filter((key) => primitivesOf(key).includes(primitive)).map(({ key }) => key);
  return paged(names, { caption: primitive === "job" ? "jobs" : "sets", request, size: namesPerPage });
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
  if (schedule === undefined) return { job, slots, registered, next: undefined, now };
  // Before the last run that is read, a slot without one may have had a run.
  const oldest = slots.length < limit ? undefined : slots.at(-1)?.slot;
  const since = new Date(Math.max(now - dayMs, Date.parse(oldest ?? "") || 0));
  for await (const { slot, run } of jobRuns.missed({
    schedule,
    since,
    until: new Date(now - beginsWithinMs),
  })) {
    if (run === undefined) slots.push({ slot, state: "missed", run });
  }
  slots.sort((one, other) => (one.slot > other.slot ? -1 : 1));
  return {
    job,
    slots: slots.slice(0, limit),
    registered,
    next: schedule.next(new Date(now))?.getTime(),
    now,
  };
}
