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
  top: {
    group: "look",
    summary: "the table on a full screen, again and again",
    load: () => as(import("./top.ts")),
  },
  watch: { group: "look", summary: "a line for each event", load: () => as(import("./watch.ts")) },
  wait: { group: "look", summary: "wait until a key is free", load: () => as(import("./wait.ts")) },
  history: {
    group: "look",
    summary: "what has happened to a key",
    load: () => as(import("./history.ts")),
  },
  audit: {
    group: "look",
    summary: "what operators have done, and why",
    load: () => as(import("./audit.ts")),
  },
  run: { group: "work", summary: "run a command under a lease", load: () => as(import("./run.ts")) },
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
