import { createInterface } from "node:readline";
import { type TaskInput, TaskSet } from "@leasehold/jobs";
import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { whole } from "../flags.ts";
import { shown } from "../terminal/text.ts";

/** This many tasks are sent before more are read. */
const batchSize = 1_000;

export default command({
  usage: "tasks add SET < TASKS",
  details: `
Adds tasks from stdin, one a line: {"id": "orders.csv", "payload": {…}, "maxAttempts": 3, "delayMs": 0}, of which only the id
is needed. Ids that the set knows stay as they are, so it may be called again. 1 request for every 50 tasks.`,
  writes: true,
  operands: [1, 1],
  flags: {
    "max-attempts": whole("attempts of those that name none (default 3)", { least: 1, most: 1_000 }),
  },
  async run({ operands: [set = ""], flags, connect, terminal, printer, signal }) {
    const { client } = await connect();
    const maxAttempts = flags["max-attempts"];
    const tasks = new TaskSet(client, set, maxAttempts === undefined ? {} : { maxAttempts });
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
  try {
    const task: unknown = JSON.parse(text);
    if (typeof task === "object" && task !== null && !Array.isArray(task)) return task as TaskInput;
  } catch {
    // Ignored: the kind of the other value does not matter.
  }
  throw new UsageError(
    `line ${line} is ${shown(text.slice(0, 40))}; allowed: {"id": "orders.csv", "payload": …}; tasks of the lines before may be there`,
  );
}
