// The commands about sets of tasks.

import { once } from "node:events";
import { createInterface } from "node:readline";
import { ifOperational, isOperational, parsedJson } from "@leasehold/client/internal";
import {
  FinalFailureError,
  type Task,
  type TaskInput,
  type TaskRecord,
  TaskSet,
  type TaskState,
} from "@leasehold/jobs";
import { agreed, type Call, command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { choice, defined, duration, text, usually, whole, yes } from "../flags.ts";
import { stateCell, taskStates } from "../jobs/job-flags.ts";
import type { Column } from "../terminal/table.ts";
import { ageText, shown } from "../terminal/text.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import { type Child, checkExecutable, type EndingCall, endingBySignals } from "../work/child.ts";
import { usualLeaseMs } from "../work/hold.ts";
import { checkGrace, childFlags, runUnderLease } from "../work/supervision.ts";

/** Since when a task has been in its state, in epoch milliseconds. */
function sinceOf({ state, addedAt, startedAt, endedAt }: TaskRecord): number {
  return (state === "running" ? startedAt : endedAt) ?? addedAt;
}

function taskColumns(now: number): readonly Column<TaskRecord>[] {
  return [
    { title: "ID", cell: ({ id }) => id, gives: true },
    { title: "STATE", cell: ({ state }) => stateCell(state) },
    { title: "ATTEMPTS", cell: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}`, align: "right" },
    { title: "OWNER", cell: ({ owner }) => owner ?? "—", gives: true },
    { title: "SINCE", cell: (task) => ageText(Math.max(0, now - sinceOf(task))), align: "right" },
    { title: "REMARK", cell: ({ remark }) => remark, gives: true },
  ];
}

interface Selection {
  readonly state: TaskState | undefined;
  /** A part of the remark. @default - any remark */
  readonly match?: string | undefined;
  readonly limit?: number | undefined;
}

async function listed(
  tasks: TaskSet,
  { state, match = "", limit = Number.POSITIVE_INFINITY }: Selection,
): Promise<readonly TaskRecord[]> {
  const found: TaskRecord[] = [];
  for await (const task of tasks.list(defined({ state }))) {
    if (!task.remark.includes(match)) continue;
    found.push(task);
    if (found.length >= limit) break;
  }
  return found;
}

export const tasks = command({
  usage: "tasks SET",
  details: `
How many tasks of a set are in each state, and since when the oldest ones wait or run; exit 1 for a set without tasks. Reads
the whole set, a megabyte a request.`,
  writes: false,
  flags: {},
  async run({ connect, printer }, set) {
    const { client } = await connect();
    const counts: Record<TaskState, number> = {
      ...{ waiting: 0, running: 0, succeeded: 0, failed: 0, parked: 0, cancelled: 0 },
    };
    const oldest: Partial<Record<TaskState, number>> = {};
    for await (const task of new TaskSet(client, set).list()) {
      const { state } = task;
      counts[state] += 1;
      oldest[state] = Math.min(oldest[state] ?? Number.POSITIVE_INFINITY, sinceOf(task));
    }
    const now = serviceNow(client);
    const record = { set, counts, oldestWaiting: oldest.waiting, oldestClaim: oldest.running };
    const total = taskStates.reduce((sum, state) => sum + counts[state], 0);
    printer.document("tasks", record, () => {
      const states = taskStates.filter((state) => counts[state] > 0 || state !== "cancelled");
      const age = (what: string, at: number | undefined): string[] =>
        at === undefined ? [] : [`oldest ${what} ${ageText(Math.max(0, now - at))}`];
      const ages = [...age("waiting", oldest.waiting), ...age("claim", oldest.running)];
      if (total === 0) return [`${shown(set)} has no tasks`];
      return [
        `${states.map((state) => `${state} ${counts[state]}`).join("   ")}          ${ages.join(", ")}`,
      ];
    });
    return total === 0 ? exitCodes.nothing : exitCodes.done;
  },
});

export const tasksLs = command({
  usage: "tasks ls SET",
  details: `
A line for each task. Reads the open tasks, the ended ones, or both: a megabyte a request.

  leasehold tasks ls orders/today --state parked`,
  writes: false,
  flags: {
    state: choice(taskStates, `only: ${taskStates.join(", ")}`, { placeholder: "STATE" }),
    match: text("TEXT", "only where the remark holds this text"),
    limit: whole("at most so many lines", { least: 1 }),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
  },
  async run({ flags, connect, printer }, set) {
    const { client } = await connect();
    const rows = await listed(new TaskSet(client, set), flags);
    printer.list({
      kind: "task",
      rows,
      columns: taskColumns(serviceNow(client)),
      key: ({ id }) => id,
    });
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});

/** This many tasks are sent before more are read. */
const batchSize = 1_000;

export const tasksAdd = command({
  usage: "tasks add SET < TASKS",
  details: `
Adds tasks from stdin, one a line: {"id": "orders.csv", "payload": {…}, "maxAttempts": 3, "delayMs": 0,
"serialKey": "customer-42"}, of which only the id is needed. Ids that the set knows stay as they are, so it may be called again. 1 request for every 50 tasks.`,
  writes: true,
  flags: { "max-attempts": whole("attempts of those that name none (default 3)", { least: 1, most: 1_000 }) },
  async run({ flags, connect, terminal, printer, signal }, set) {
    const { client } = await connect();
    const tasks = new TaskSet(client, set, defined({ maxAttempts: flags["max-attempts"] }));
    let [added, known, line] = [0, 0, 0];
    let batch: TaskInput[] = [];
    const send = async (): Promise<void> => {
      signal.throwIfAborted();
      const result = await tasks.add(batch);
      added += result.added;
      known += result.known;
      batch = [];
    };
    const { stdin: input } = terminal;
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY, signal })) {
      line += 1;
      if (text.trim() === "") continue;
      batch.push(taskIn(text, line));
      if (batch.length >= batchSize) await send();
    }
    // An interruption ends the lines, too.
    signal.throwIfAborted();
    if (batch.length > 0) await send();
    printer.document("tasksAdded", { set, added, known }, () => [`${added} added, ${known} known before`]);
    return exitCodes.done;
  },
});

function taskIn(text: string, line: number): TaskInput {
  const task = parsedJson(text)?.value;
  if (typeof task === "object" && task !== null && !Array.isArray(task)) return task as TaskInput;
  throw new UsageError(
    `line ${line} is ${shown(text.slice(0, 40))}; allowed: {"id": "orders.csv", "payload": …}; tasks of the lines before may be there`,
  );
}

const longestList = 20;

export const tasksRequeue = command({
  usage: "tasks requeue SET (ID… | --state STATE [--match TEXT])",
  details: `
Lets tasks that have failed, were parked or were cancelled start again, with all their attempts. One that has changed in the
meantime stays as it is.

  leasehold tasks requeue orders/today doc-33
  leasehold tasks requeue orders/today --state parked --match 'worker lost'`,
  writes: true,
  operands: [1, 1_000],
  flags: {
    state: choice(["failed", "parked", "cancelled"], "all that are in this state"),
    match: text("TEXT", "with --state: only where the remark holds this text"),
    reason: text("TEXT", "why: kept in the trace"),
    limit: whole("with --state: at most so many", { least: 1 }),
    "max-attempts": whole("attempts that they have this time (default: as many as before)", {
      least: 1,
      most: 1_000,
    }),
  },
  async run(call, set, ...ids) {
    const { flags, connect, terminal, by, signal } = call;
    const { state, match } = flags;
    if (ids.length > 0 === (state !== undefined)) throw new UsageError("give either ids, or --state");
    if (match !== undefined && state === undefined) throw new UsageError("--match goes with --state");
    const { client } = await connect();
    const tasks = new TaskSet(client, set);
    const options = { by, ...defined({ reason: flags.reason, maxAttempts: flags["max-attempts"] }) };
    const found = state === undefined ? [] : await listed(tasks, flags);
    const seen = new Set([...ids, ...found.map(({ id }) => id)]);
    if (seen.size === 0) throw new CommandError(`${shown(set)} has no such task`, exitCodes.nothing);
    const named = [...seen].slice(0, longestList).map(shown).join(", ");
    terminal.say(`${seen.size} of ${shown(set)}: ${named}${seen.size > longestList ? ", …" : ""}`);
    await agreed(call, { question: "Let them start again?" });
    // Only the tasks that were shown.
    const filter = ({ id }: TaskRecord): boolean => {
      signal.throwIfAborted();
      return seen.has(id);
    };
    let requeued: number | undefined = 0;
    try {
      if (state === undefined) {
        for (const id of seen) {
          signal.throwIfAborted();
          if (await tasks.requeue(id, options)) requeued += 1;
          else terminal.complain(`${shown(id)} has neither failed nor was it parked or cancelled: unchanged`);
        }
      } else requeued = await tasks.requeueAll({ ...options, state, filter });
    } catch (error) {
      if (state !== undefined && isOperational(error)) {
        const left = await listed(tasks, { state }).catch(ifOperational(undefined));
        requeued = left && seen.size - left.filter(({ id }) => seen.has(id)).length;
      }
      if (requeued === undefined) terminal.say(`Some of ${seen.size} may wait again.`);
      else if (requeued > 0) terminal.say(`${requeued} of ${seen.size} wait again.`);
      throw error;
    }
    terminal.say(`${requeued} of ${seen.size} wait again.`);
    return requeued === seen.size ? exitCodes.done : exitCodes.nothing;
  },
});

export const tasksDrop = command({
  usage: "tasks drop SET ID",
  details: `
Cancels a task that waits: no worker claims it any more, and adding its id again changes nothing. tasks requeue undoes it.
Exit 75 while a worker has it, 1 where it has ended or is not known. 2 requests.

  leasehold tasks drop orders/today doc-54 --reason 'wrong file'`,
  writes: true,
  flags: { reason: text("TEXT", "why: the task's remark") },
  async run(call, set, id) {
    const { flags, connect, terminal } = call;
    const { client } = await connect();
    const tasks = new TaskSet(client, set);
    const name = `${shown(id)} of ${shown(set)}`;
    const task = await tasks.get(id);
    if (task === undefined) throw new CommandError(`there is no ${name}`, exitCodes.nothing);
    const { state, attempts, maxAttempts, owner } = task;
    const by = state === "running" && owner !== undefined ? ` by ${shown(owner)}` : "";
    terminal.say(`${name} is ${state}${by}, attempt ${attempts} of ${maxAttempts}.`);
    if (state === "running") {
      throw new CommandError(`${name} is running${by}: wait for its end. Nothing done`, exitCodes.held);
    }
    if (state !== "waiting" && state !== "cancelled") {
      throw new CommandError(`${name} has ended: ${state}. Nothing done`, exitCodes.nothing);
    }
    await agreed(call, { question: "Cancel it?" });
    if (!(await tasks.cancel(id, flags.reason, { by: call.by }))) {
      throw new CommandError(`${name} has changed in the meantime: look again`, exitCodes.lost);
    }
    terminal.say(`${name} is cancelled.`);
    return exitCodes.done;
  },
});

const longestRemark = 1_000;

const flags = {
  concurrency: usually(whole("how many tasks at a time (default 1)", { least: 1, most: 1_000 }), 1),
  lease: usually(duration("how long a claim lasts unless it is renewed (default 30s)"), usualLeaseMs),
  until: usually(
    choice(["drained", "idle", "never"], "when it ends by itself (default drained: no task waits or runs)"),
    "drained",
  ),
  "retry-after": duration("how long a task waits after it has failed (default: longer each time)"),
  "park-exit": whole("exit code of CMD after which another attempt is of no use: the task is parked", {
    least: 1,
    most: 255,
  }),
  ...childFlags,
};

type WorkCall = Call<typeof flags>;

export const tasksWork = command({
  usage: "tasks work SET [flags] -- CMD [ARG…]",
  details: `
Claims one task after the other and runs CMD for each: its payload, as JSON, is on stdin. Exit code 0 ends the task with
success, every other one is a failed attempt; the last line of stdout is the remark. CMD gets LEASEHOLD_TASK_ID,
LEASEHOLD_ATTEMPT, LEASEHOLD_KEY and LEASEHOLD_FENCING_TOKEN. A signal goes on to the children, and no more tasks are claimed.

  leasehold tasks work orders/today --concurrency 4 -- ./do-one.sh`,
  writes: true,
  child: "required",
  flags,
  async run(call, set) {
    const { connect, terminal, printer, child: commandLine = [], env } = call;
    const { concurrency, lease, until } = call.flags;
    checkGrace(call.flags, { leaseMs: lease, heartbeat: true });
    checkExecutable(commandLine[0] ?? "", env);
    const { client } = await connect();
    const tasks = new TaskSet(client, set, { leaseDurationMs: lease });
    const running = endingBySignals(call);
    const summary = await tasks.process((task) => runTask(running, set, task), {
      concurrency,
      until,
      signal: running.signal,
      ...defined({ retryAfterMs: call.flags["retry-after"] }),
    });
    const { succeeded, failed, parked, returned, lost } = summary;
    printer.document("tasksWorked", { set, ...summary }, () => [
      `succeeded ${succeeded}   failed ${failed}   parked ${parked}   given back ${returned}   lost ${lost}`,
    ]);
    terminal.sayIf(
      running.signal.aborted ? `leasehold: interrupted; ${shown(set)} may have more tasks` : undefined,
    );
    return running.exitCode() ?? (failed + parked + lost > 0 ? exitCodes.nothing : exitCodes.done);
  },
});

/** Returns the remark of a success; throws for a failure. */
async function runTask(running: EndingCall<WorkCall>, set: string, task: Task): Promise<string> {
  const { flags, child: commandLine = [], terminal } = running;
  let last = "";
  const end = await runUnderLease(running, {
    commandLine,
    variables: {
      LEASEHOLD_KEY: set,
      LEASEHOLD_TASK_ID: task.id,
      LEASEHOLD_ATTEMPT: String(task.attempt),
      LEASEHOLD_FENCING_TOKEN: String(task.fencingToken),
    },
    key: `${set} ${task.id}`,
    lease: task,
    leaseMs: flags.lease,
    flags,
    attend: async (child) => {
      const read = readLines(child, (line) => {
        if (line.trim() !== "") last = line;
        terminal.complain(`${shown(task.id)}: ${shown(line)}`);
      });
      // No error if a child does not read its payload.
      child.stdin?.on("error", () => {});
      child.stdin?.end(task.payload === undefined ? "" : `${JSON.stringify(task.payload)}\n`);
      await read;
    },
  });
  const remark = last.slice(0, longestRemark);
  if (end.code === 0 && !end.isTooLong) return remark;
  if (running.signal.aborted) throw running.signal.reason;
  const reason = `the command exited ${end.code}${remark === "" ? "" : `: ${remark}`}`;
  throw end.code === flags["park-exit"] ? new FinalFailureError(reason) : new Error(reason);
}

/** A line may have no end: of a longer one, only the beginning is kept. */
const longestLine = 1_000_000;

/** Reads a child's stdout line by line; resolves at its end, or when it is not waited for any longer. */
async function readLines(child: Child, onLine: (line: string) => void): Promise<void> {
  let rest = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    const [first = "", ...lines] = chunk.split("\n");
    if (rest.length < longestLine) rest += first;
    const last = lines.pop();
    if (last === undefined) return;
    onLine(rest);
    lines.forEach(onLine);
    rest = last;
  });
  if (child.stdout) await once(child.stdout, "close");
  if (rest !== "") onLine(rest);
}
