import { type TaskRecord, TaskSet } from "@leasehold/jobs";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { text, whole, yes } from "../flags.ts";
import { taskColumns, taskStateIn } from "../tasks/task-view.ts";
import { serviceNow } from "../view/service-time.ts";

export default command({
  usage: "tasks ls SET",
  details: `
A line for each task. Reads the open tasks, the ended ones, or both: a megabyte a request.

  leasehold tasks ls orders/today --state parked`,
  writes: false,
  operands: [1, 1],
  flags: {
    state: text("STATE", "only: waiting, running, succeeded, failed, parked, cancelled"),
    match: text("TEXT", "only where the remark holds this text"),
    limit: whole("at most so many lines", { least: 1 }),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
  },
  async run({ operands: [set = ""], flags, connect, printer, signal }) {
    const state = taskStateIn(flags.state);
    const { client } = await connect();
    const { limit = Number.POSITIVE_INFINITY, match = "" } = flags;
    const rows: TaskRecord[] = [];
    for await (const task of new TaskSet(client, set).list(state === undefined ? {} : { state })) {
      signal.throwIfAborted();
      if (!task.remark.includes(match)) continue;
      rows.push(task);
      if (rows.length >= limit) break;
    }
    printer.list({
      kind: "task",
      rows,
      columns: taskColumns(serviceNow(client)),
      record: (task) => task,
      key: ({ id }) => id,
    });
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
