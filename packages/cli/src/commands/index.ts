// Every command by its name, and the module that is loaded for it: so no command slows down another's start.

import type { Command, CommandEntry, Commands } from "../command.ts";

const handles = () => import("./handles.ts");
const intervene = () => import("./intervene.ts");
const jobs = () => import("./jobs.ts");
const jobSlots = () => import("./job-slots.ts");
const tasks = () => import("./tasks.ts");
const table = () => import("./table.ts");
const toCopy = () => import("./to-copy.ts");
const help = () => import("./help.ts");
const history = () => import("./history.ts");
const pages = () => import("./console.ts");
const doctor = () => import("./doctor.ts");
const conformance = () => import("./conformance.ts");

export const commands: Commands = {
  ls: entry("look", "the locks of the table", () => import("./ls.ts"), "ls"),
  get: entry("look", "everything about one key", () => import("./get.ts"), "get"),
  wait: entry("look", "wait until a key is free", () => import("./wait.ts"), "wait"),
  history: entry("look", "what has happened to a key", history, "history"),
  audit: entry("look", "what operators have done, and why", history, "audit"),
  console: entry("look", "pages that show it all, on this machine", pages, "consoleCommand"),
  run: entry("work", "run a command under a lease", () => import("./run.ts"), "run"),
  acquire: entry("work", "take a lease and leave it held; prints its handle", handles, "acquire"),
  renew: entry("work", "prolong the lease of a handle", handles, "renew"),
  release: entry("work", "release the lease of a handle", handles, "release"),
  check: entry("work", "whether a handle still holds its lease", handles, "check"),
  stop: entry("intervene", "ask a holder to stop", intervene, "stop"),
  break: entry("intervene", "take a lease from its holder", intervene, "breakCommand"),
  pause: entry("intervene", "keep a key closed for a while", intervene, "pause"),
  resume: entry("intervene", "end a pause", intervene, "resume"),
  jobs: entry("jobs", "how the jobs do", jobs, "jobs"),
  "jobs runs": entry("jobs", "the runs of a job", jobs, "jobsRuns"),
  "jobs show": entry("jobs", "one run of a job", jobs, "jobsShow"),
  "jobs missed": entry("jobs", "slots that were due and not done", jobs, "jobsMissed"),
  "jobs skip": entry("jobs", "record that a slot is not to run (WRITES)", jobSlots, "jobsSkip"),
  "jobs run": entry("jobs", "run the slot that is due, once on all hosts (WRITES)", jobSlots, "jobsRun"),
  "jobs backfill": entry("jobs", "run the missed slots (WRITES)", jobSlots, "jobsBackfill"),
  tasks: entry("jobs", "how a set of tasks does", tasks, "tasks"),
  "tasks ls": entry("jobs", "the tasks of a set", tasks, "tasksLs"),
  "tasks add": entry("jobs", "add tasks from stdin (WRITES)", tasks, "tasksAdd"),
  "tasks requeue": entry("jobs", "let tasks start again (WRITES)", tasks, "tasksRequeue"),
  "tasks drop": entry("jobs", "cancel a task that waits (WRITES)", tasks, "tasksDrop"),
  "tasks work": entry("jobs", "run a command for each task (WRITES)", tasks, "tasksWork"),
  "table create": entry("table", "a new lease table (WRITES)", table, "tableCreate"),
  "table show": entry("table", "a table's settings", table, "tableShow"),
  "table check": entry("table", "what is wrong with them", table, "tableCheck"),
  "table set": entry("table", "change them (WRITES)", table, "tableSet"),
  "table cfn": entry("table", "the table for CloudFormation", toCopy, "tableCfn"),
  "table terraform": entry("table", "the table for Terraform", toCopy, "tableTerraform"),
  "table cdk": entry("table", "the table for the AWS CDK", toCopy, "tableCdk"),
  "table policy": entry("table", "policies of IAM for it", toCopy, "tablePolicy"),
  doctor: entry("table", "what is wrong with table, permissions, clock", doctor, "doctor"),
  conformance: entry("table", "whether a table does what leases need (WRITES)", conformance, "conformance"),
  cost: entry("table", "dollars a month", () => import("./cost.ts"), "cost"),
  dev: entry("more", "DynamoDB on this machine, with a table", () => import("./dev.ts"), "dev"),
  completion: entry(
    "more",
    "completion for bash, zsh or fish",
    () => import("./completion.ts"),
    "completion",
  ),
  help: entry("more", "what a command does", help, "help"),
  "help errors": entry("more", "what an error means, and what to do", help, "helpErrors"),
  schema: entry("more", "what --json prints, as JSON Schema", help, "schema"),
  version: entry("more", "this command's version, as --version and -V", help, "versionCommand"),
};

function entry<Module>(
  group: CommandEntry["group"],
  summary: string,
  load: () => Promise<Module>,
  name: keyof Module,
): CommandEntry {
  return { group, summary, load: async () => (await load())[name] as Command };
}
