// Every command by its name, and the module that it is loaded from when it is called: so none costs another one its start.

import type { Command } from "../command.ts";

/** A command that has not been loaded. */
export interface CommandEntry {
  /** A line for the list of commands. */
  readonly summary: string;
  readonly group: "look" | "work" | "intervene" | "jobs" | "table" | "more";
  readonly load: () => Promise<Command>;
}

const as = async (loaded: Promise<{ readonly default: unknown }>): Promise<Command> =>
  (await loaded).default as Command;

/** The commands, in the order in which they are listed. The names of some have two words. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  ls: { group: "look", summary: "the locks of the table", load: () => as(import("./ls.ts")) },
  get: { group: "look", summary: "everything about one key", load: () => as(import("./get.ts")) },
  wait: { group: "look", summary: "wait until a key is free", load: () => as(import("./wait.ts")) },
  audit: {
    group: "look",
    summary: "what operators have done, and why",
    load: () => as(import("./audit.ts")),
  },
  run: { group: "work", summary: "run a command under a lease", load: () => as(import("./run.ts")) },
  acquire: {
    group: "work",
    summary: "take a lease and leave it held; prints its handle",
    load: () => as(import("./acquire.ts")),
  },
  renew: { group: "work", summary: "prolong the lease of a handle", load: () => as(import("./renew.ts")) },
  release: {
    group: "work",
    summary: "release the lease of a handle",
    load: () => as(import("./release.ts")),
  },
  check: {
    group: "work",
    summary: "whether a handle still holds its lease",
    load: () => as(import("./check.ts")),
  },
  elect: {
    group: "work",
    summary: "run a command while this host leads",
    load: () => as(import("./elect.ts")),
  },
  leader: { group: "work", summary: "who leads", load: () => as(import("./leader.ts")) },
  stop: { group: "intervene", summary: "ask a holder to stop", load: () => as(import("./stop.ts")) },
  break: {
    group: "intervene",
    summary: "take a lease from its holder",
    load: () => as(import("./break.ts")),
  },
  pause: {
    group: "intervene",
    summary: "keep a key closed for a while",
    load: () => as(import("./pause.ts")),
  },
  resume: { group: "intervene", summary: "end a pause", load: () => as(import("./resume.ts")) },
  console: {
    group: "look",
    summary: "pages that show it all, on this machine",
    load: () => as(import("./console.ts")),
  jobs: { group: "jobs", summary: "how the jobs do", load: () => as(import("./jobs.ts")) },
  "jobs runs": { group: "jobs", summary: "the runs of a job", load: () => as(import("./jobs-runs.ts")) },
  "jobs show": { group: "jobs", summary: "one run of a job", load: () => as(import("./jobs-show.ts")) },
  "jobs missed": {
    group: "jobs",
    summary: "slots that were due and not done",
    load: () => as(import("./jobs-missed.ts")),
  },
  "jobs skip": {
    group: "jobs",
    summary: "record that a slot is not to run (WRITES)",
    load: () => as(import("./jobs-skip.ts")),
  },
  "jobs retry": {
    group: "jobs",
    summary: "run a slot once more (WRITES)",
    load: () => as(import("./jobs-retry.ts")),
  },
  "jobs backfill": {
    group: "jobs",
    summary: "run the slots that were missed (WRITES)",
    load: () => as(import("./jobs-backfill.ts")),
  },
  tasks: { group: "jobs", summary: "how a set of tasks does", load: () => as(import("./tasks.ts")) },
  "tasks ls": { group: "jobs", summary: "the tasks of a set", load: () => as(import("./tasks-ls.ts")) },
  "tasks requeue": {
    group: "jobs",
    summary: "let tasks start again (WRITES)",
    load: () => as(import("./tasks-requeue.ts")),
  },
  "tasks add": {
    group: "jobs",
    summary: "add tasks from stdin (WRITES)",
    load: () => as(import("./tasks-add.ts")),
  },
  "tasks drop": {
    group: "jobs",
    summary: "cancel a task that waits (WRITES)",
    load: () => as(import("./tasks-drop.ts")),
  },
  "tasks work": {
    group: "jobs",
    summary: "run a command for each task (WRITES)",
    load: () => as(import("./tasks-work.ts")),
  },
  dev: {
    group: "more",
    summary: "DynamoDB on this machine, with a table",
    load: () => as(import("./dev.ts")),
  },
  version: { group: "more", summary: "this command's version", load: () => as(import("./version.ts")) },
};

/** What the groups are called in the list of commands. */
export const groups: Readonly<Record<CommandEntry["group"], string>> = {
  look: "Look",
  work: "Work under a lease",
  intervene: "Intervene (WRITES)",
  jobs: "Jobs and tasks",
  table: "Table, health, money",
  more: "More",
};
