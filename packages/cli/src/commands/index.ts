// Every command by its name, and the module that it is loaded from when it is called: so none costs another one its start.

import type { Command } from "../command.ts";
import type { DefinitionKind } from "../table/definition.ts";

/** A command that has not been loaded. */
export interface CommandEntry {
  /** A line for the list of commands. */
  readonly summary: string;
  readonly group: "look" | "work" | "intervene" | "jobs" | "table" | "more";
  readonly load: () => Promise<Command>;
}

const as = async (loaded: Promise<{ readonly default: unknown }>): Promise<Command> =>
  (await loaded).default as Command;

const definition = async (kind: DefinitionKind): Promise<Command> =>
  (await import("./table-definition.ts")).definitionCommand(kind) as Command;

/** The commands, in the order in which they are listed. The names of some have two words. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  ls: { group: "look", summary: "the locks of the table", load: () => as(import("./ls.ts")) },
  run: { group: "work", summary: "run a command under a lease", load: () => as(import("./run.ts")) },
  "table create": {
    group: "table",
    summary: "a new lease table (WRITES)",
    load: () => as(import("./table-create.ts")),
  },
  "table show": { group: "table", summary: "a table's settings", load: () => as(import("./table-show.ts")) },
  "table check": {
    group: "table",
    summary: "what is wrong with them",
    load: () => as(import("./table-check.ts")),
  },
  "table set": { group: "table", summary: "change them (WRITES)", load: () => as(import("./table-set.ts")) },
  "table cfn": { group: "table", summary: "the table for CloudFormation", load: () => definition("cfn") },
  "table sam": { group: "table", summary: "the table for AWS SAM", load: () => definition("sam") },
  "table terraform": {
    group: "table",
    summary: "the table for Terraform",
    load: () => definition("terraform"),
  },
  "table cdk": { group: "table", summary: "the table for the AWS CDK", load: () => definition("cdk") },
  doctor: {
    group: "table",
    summary: "table, permissions, clock: what is wrong, and what to do",
    load: () => as(import("./doctor.ts")),
  },
  iam: { group: "table", summary: "policies to copy", load: () => as(import("./iam.ts")) },
  cost: { group: "table", summary: "dollars a month", load: () => as(import("./cost.ts")) },
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
