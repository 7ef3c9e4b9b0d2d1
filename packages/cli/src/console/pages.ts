// The pages by their addresses, and what they read.

import type { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import {
  type JobRun,
  JobRuns,
  type RegisteredJob,
  registeredJobs,
  type TaskRecord,
  TaskSet,
  type TaskState,
} from "@leasehold/jobs";
import type { Connection } from "../connection.ts";
import { defined } from "../flags.ts";
import { registeredSchedule } from "../jobs/job-flags.ts";
import type { Finding } from "../table/findings.ts";
import { holdEnds } from "../view/history.ts";
import { primitivesOf } from "../view/key-rows.ts";
import { pauseAfter } from "../view/read-cost.ts";
import { readTable, serviceNow, type TableSnapshot } from "../view/table-snapshot.ts";
import { keyPage, type Span } from "./key-page.ts";
import type { Page, PageRequest } from "./server.ts";
import { auditPage, nowPage, tablePage } from "./table-pages.ts";
import { type JobStrip, jobsPage, runPage, setPage, tasksPage } from "./work-pages.ts";

/** How the console reads its table. */
export interface TableReaderOptions {
  /** The shortest pause between two looks. */
  readonly everyMs: number;
  /** The most read units a second: a larger table is read less often. */
  readonly mostUnitsPerSecond: number;
  readonly monotonicMs: () => number;
  /** The most items of one look. */
  readonly mostItems: number;
}

/** Reads the whole table, at most once in a while, however many tabs are open. */
export class TableReader {
  readonly #client: LeaseClient;
  readonly #options: TableReaderOptions;
  #last: { readonly at: number; readonly snapshot: Promise<TableSnapshot> } | undefined;
  #everyMs: number;

  constructor(client: LeaseClient, options: TableReaderOptions) {
    this.#client = client;
    this.#options = options;
    this.#everyMs = options.everyMs;
  }

  /** The pause between two looks, by the cost of the last look. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** The table as it is now, or as it was a moment ago. */
  async read(): Promise<TableSnapshot> {
    const { monotonicMs, mostItems } = this.#options;
    const now = monotonicMs();
    if (this.#last === undefined || now - this.#last.at >= this.#everyMs) {
      const snapshot = readTable(this.#client, { mostItems });
      this.#last = { at: now, snapshot };
      // Ignored: the reader gets the error. A failed look is not kept, so that its error does not stay on the page.
      snapshot.then(
        ({ cost }) => {
          this.#everyMs = pauseAfter(cost, this.#options);
        },
        () => this.forget(),
      );
    }
    return await this.#last.snapshot;
  }

  /** Makes the next look read again, after a write. */
  forget(): void {
    this.#last = undefined;
  }
}

/** The pages, in the order of the navigation. */
export const navigation = [
  { path: "/", name: "Locks" },
  { path: "/jobs", name: "Jobs" },
  { path: "/tasks", name: "Tasks" },
  { path: "/table", name: "Table" },
  { path: "/audit", name: "Audit" },
] as const;

/** The sources of the pages. */
export interface PageContext {
  readonly reader: TableReader;
  readonly isReadOnly: boolean;
  readonly connection: Connection;
  /** The findings on the table's settings. */
  readonly health: () => Promise<readonly Finding[]>;
}

/** Each job or set costs at least one request at each look. */
const mostNames = 30;
const runsInStrip = 60;
const mostTasksRead = 1_000;

type MakePage = (request: PageRequest, context: PageContext) => Promise<Page | undefined>;

const pages: Readonly<Record<string, MakePage>> = {
  "/": async ({ query }, { reader }) => nowPage(await reader.read(), query),
  "/audit": async (_, { reader }) => auditPage(await reader.read()),
  "/table": async (_, context) => await tablePage(context),
  "/key": async ({ query }, { connection: { client }, isReadOnly }) => {
    const key = query.get("key");
    if (!key) return undefined;
    // A read needs no person's name.
    const operator = new LeaseOperator(client, { by: "console" });
    const details = await operator.describe(key);
    return keyPage(details, await pastSpans(operator, key), isReadOnly);
  },
  "/jobs": async (_, { connection: { client }, reader }) => {
    const jobs = await namesOf(reader, "job");
    const registered = new Map((await registeredJobs(client)).map((one) => [one.job, one]));
    const shown = jobs.slice(0, mostNames);
    const strips = await Promise.all(shown.map((job) => stripOf(client, job, registered.get(job))));
    return jobsPage(strips, Math.max(0, jobs.length - mostNames));
  },
  "/jobs/run": async ({ query }, { connection: { client }, isReadOnly }) => {
    const [job, slot] = [query.get("job"), query.get("slot")];
    if (!job || !slot) return undefined;
    return runPage(job, slot, await new JobRuns(client, job).get(slot), isReadOnly);
  },
  "/tasks": async (_, { connection: { client }, reader }) => {
    const sets = await namesOf(reader, "tasks");
    const counted = sets
      .slice(0, mostNames)
      .map(async (set) => ({ set, counts: await new TaskSet(client, set).counts() }));
    return tasksPage(await Promise.all(counted), Math.max(0, sets.length - mostNames));
  },
  "/tasks/set": async ({ query }, { connection: { client }, isReadOnly }) => {
    const set = query.get("set");
    if (!set) return undefined;
    const state = (query.get("state") ?? undefined) as TaskState | undefined;
    const tasks: TaskRecord[] = [];
    for await (const task of new TaskSet(client, set).list(defined({ state }))) {
      tasks.push(task);
      if (tasks.length >= mostTasksRead) break;
    }
    return setPage(set, state, tasks, { now: serviceNow(client), isReadOnly });
  },
};

/** Makes the page at an address; undefined without one. */
export async function makePage(request: PageRequest, context: PageContext): Promise<Page | undefined> {
  return Object.hasOwn(pages, request.path) ? await pages[request.path]?.(request, context) : undefined;
}

async function namesOf(reader: TableReader, primitive: "job" | "tasks"): Promise<readonly string[]> {
  const { keys } = await reader.read();
  return keys.filter((key) => primitivesOf(key).includes(primitive)).map(({ key }) => key);
}

const dayMs = 24 * 60 * 60 * 1_000;
/** A slot that was due this recently may still begin. */
const beginsWithinMs = 60_000;

async function stripOf(
  client: LeaseClient,
  job: string,
  registered: RegisteredJob | undefined,
): Promise<JobStrip> {
  const jobRuns = new JobRuns(client, job);
  const runs: JobRun[] = [];
  for await (const run of jobRuns.runs({ descending: true, limit: runsInStrip })) runs.push(run);
  const missed: string[] = [];
  if (registered !== undefined) {
    const now = serviceNow(client);
    const schedule = registeredSchedule(registered);
    const range = { since: new Date(now - dayMs), until: new Date(now - beginsWithinMs) };
    for await (const { slot, run } of jobRuns.missed({ schedule, ...range })) {
      if (run === undefined) missed.push(slot);
      if (missed.length >= runsInStrip) break;
    }
  }
  return { job, runs: runs.reverse(), missed };
}

const mostChanges = 100;
/** The holders in the key's history, the earliest first; none if the table keeps no history. */
async function pastSpans(operator: LeaseOperator, key: string): Promise<readonly Span[]> {
  const spans: Span[] = [];
  for await (const change of operator.history(key, { newestFirst: true, limit: mostChanges })) {
    const { what, sortKey, owner, acquiredAt, at } = change;
    if (sortKey === "lease" && holdEnds.includes(what))
      spans.push({ owner, from: acquiredAt, to: at, end: what });
  }
  return spans.reverse();
}
