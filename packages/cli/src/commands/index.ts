// Every command by its name, and the module that is loaded for it: so no command slows down another's start.

import type { Command } from "../command.ts";
import type { DefinitionKind } from "../table/definition.ts";

/** A command that has not been loaded. */
export interface CommandEntry {
  /** A line for the list of commands. */
  readonly summary: string;
  readonly group: "look" | "work" | "intervene" | "jobs" | "table" | "more";
  readonly load: () => Promise<Command>;
}

/** The commands, in the order in which they are listed. The names of some have two words. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  ls: entry("look", "the locks of the table", () => import("./ls.ts")),
  get: entry("look", "everything about one key", () => import("./get.ts")),
  wait: entry("look", "wait until a key is free", () => import("./wait.ts")),
  history: entry("look", "what has happened to a key", () => import("./history.ts")),
  audit: entry("look", "what operators have done, and why", () => import("./audit.ts")),
  console: entry("look", "pages that show it all, on this machine", () => import("./console.ts")),
  run: entry("work", "run a command under a lease", () => import("./run.ts")),
  acquire: entry("work", "take a lease and leave it held; prints its handle", () => import("./acquire.ts")),
  renew: entry("work", "prolong the lease of a handle", () => import("./renew.ts")),
  release: entry("work", "release the lease of a handle", () => import("./release.ts")),
  check: entry("work", "whether a handle still holds its lease", () => import("./check.ts")),
  stop: entry("intervene", "ask a holder to stop", () => import("./stop.ts")),
  break: entry("intervene", "take a lease from its holder", () => import("./break.ts")),
  pause: entry("intervene", "keep a key closed for a while", () => import("./pause.ts")),
  resume: entry("intervene", "end a pause", () => import("./resume.ts")),
  jobs: entry("jobs", "how the jobs do", () => import("./jobs.ts")),
  "jobs runs": entry("jobs", "the runs of a job", () => import("./jobs-runs.ts")),
  "jobs show": entry("jobs", "one run of a job", () => import("./jobs-show.ts")),
  "jobs missed": entry("jobs", "slots that were due and not done", () => import("./jobs-missed.ts")),
  "jobs skip": entry("jobs", "record that a slot is not to run (WRITES)", () => import("./jobs-skip.ts")),
  "jobs retry": entry("jobs", "run a slot once more (WRITES)", () => import("./jobs-retry.ts")),
  "jobs backfill": entry("jobs", "run the missed slots (WRITES)", () => import("./jobs-backfill.ts")),
  tasks: entry("jobs", "how a set of tasks does", () => import("./tasks.ts")),
  "tasks ls": entry("jobs", "the tasks of a set", () => import("./tasks-ls.ts")),
  "tasks add": entry("jobs", "add tasks from stdin (WRITES)", () => import("./tasks-add.ts")),
  "tasks requeue": entry("jobs", "let tasks start again (WRITES)", () => import("./tasks-requeue.ts")),
  "tasks drop": entry("jobs", "cancel a task that waits (WRITES)", () => import("./tasks-drop.ts")),
  "tasks work": entry("jobs", "run a command for each task (WRITES)", () => import("./tasks-work.ts")),
  "table create": entry("table", "a new lease table (WRITES)", () => import("./table-create.ts")),
  "table show": entry("table", "a table's settings", () => import("./table-show.ts")),
  "table check": entry("table", "what is wrong with them", () => import("./table-check.ts")),
  "table set": entry("table", "change them (WRITES)", () => import("./table-set.ts")),
  "table cfn": entry("table", "the table for CloudFormation", () => definition("cfn")),
  "table terraform": entry("table", "the table for Terraform", () => definition("terraform")),
  "table cdk": entry("table", "the table for the AWS CDK", () => definition("cdk")),
  doctor: entry("table", "what is wrong with table, permissions, clock", () => import("./doctor.ts")),
  conformance: entry(
    "table",
    "whether a table does what leases need (WRITES)",
    () => import("./conformance.ts"),
  ),
  iam: entry("table", "policies to copy", () => import("./iam.ts")),
  cost: entry("table", "dollars a month", () => import("./cost.ts")),
  dev: entry("more", "DynamoDB on this machine, with a table", () => import("./dev.ts")),
  completion: entry("more", "completion for bash, zsh or fish", () => import("./completion.ts")),
  help: entry("more", "what a command does", () => import("./help.ts")),
  "help errors": entry("more", "what an error means, and what to do", () => import("./help-errors.ts")),
  schema: entry("more", "what --json prints, as JSON Schema", () => import("./schema.ts")),
  version: entry("more", "this command's version, as --version and -V", () => import("./version.ts")),
};

/** The titles of the groups in the list of commands. */
export const groups: Readonly<Record<CommandEntry["group"], string>> = {
  look: "Look",
  work: "Work under a lease",
  intervene: "Intervene (WRITES)",
  jobs: "Jobs and tasks",
  table: "Table, health, money",
  more: "More",
};

function entry(
  group: CommandEntry["group"],
  summary: string,
  load: () => Promise<{ readonly default: unknown }>,
): CommandEntry {
  return { group, summary, load: async () => (await load()).default as Command };
}

async function definition(kind: DefinitionKind): Promise<{ readonly default: unknown }> {
  const { definitionCommand } = await import("./table-definition.ts");
  return { default: definitionCommand(kind) };
}
