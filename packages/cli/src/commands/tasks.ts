import { TaskSet, type TaskState } from "@leasehold/jobs";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { sinceOf, taskStates } from "../tasks/task-view.ts";
import { ageText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { serviceNow } from "../view/service-time.ts";

export default command({
  usage: "tasks SET",
  details: `
How many tasks of a set are in each state, and since when the oldest ones wait or run; exit 1 for a set without tasks. Reads
the whole set, a megabyte a request.`,
  writes: false,
  operands: [1, 1],
  flags: {},
  async run({ operands: [set = ""], connect, printer, signal }) {
    const { client } = await connect();
    const counts: Record<TaskState, number> = {
      waiting: 0,
      running: 0,
      succeeded: 0,
      failed: 0,
      parked: 0,
      cancelled: 0,
    };
    const oldest: Partial<Record<TaskState, number>> = {};
    for await (const task of new TaskSet(client, set).list()) {
      signal.throwIfAborted();
      const { state } = task;
      counts[state] += 1;
      oldest[state] = Math.min(oldest[state] ?? Number.POSITIVE_INFINITY, sinceOf(task));
    }
    const now = serviceNow(client);
    const record = { set, counts, oldestWaiting: oldest.waiting, oldestClaim: oldest.running };
    const total = taskStates.reduce((sum, state) => sum + counts[state], 0);
    printer.document("tasks", record, () => {
      const states = taskStates.filter((state) => counts[state] > 0 || state !== "cancelled");
      const ages = [
        ...(oldest.waiting === undefined
          ? []
          : [`oldest waiting ${ageText(Math.max(0, now - oldest.waiting))}`]),
        ...(oldest.running === undefined
          ? []
          : [`oldest claim ${ageText(Math.max(0, now - oldest.running))}`]),
      ];
      if (total === 0) return [`${shown(set)} has no tasks`];
      return [
        `${states.map((state) => `${state} ${counts[state]}`).join("   ")}          ${ages.join(", ")}`,
      ];
    });
    return total === 0 ? exitCodes.nothing : exitCodes.done;
  },
});
