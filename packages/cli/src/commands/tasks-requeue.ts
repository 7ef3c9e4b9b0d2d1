import { TaskSet } from "@leasehold/jobs";
import { command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { choice, text, whole } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { agreed } from "./shared/intervention.ts";

const longestList = 20;

export default command({
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
  async run(call) {
    const { operands, flags, connect, terminal, by } = call;
    const [set = "", ...ids] = operands;
    const { state, match = "", limit = Number.POSITIVE_INFINITY } = flags;
    if (ids.length > 0 === (state !== undefined)) throw new UsageError("give either ids, or --state");
    if (match !== "" && state === undefined) throw new UsageError("--match goes with --state");
    const { client } = await connect();
    const tasks = new TaskSet(client, set);
    const maxAttempts = flags["max-attempts"];
    const options = {
      by,
      ...(flags.reason === undefined ? {} : { reason: flags.reason }),
      ...(maxAttempts === undefined ? {} : { maxAttempts }),
    };
    const seen = new Set<string>(ids);
    if (state !== undefined) {
      for await (const { id, remark } of tasks.list({ state })) {
        if (remark.includes(match)) seen.add(id);
        if (seen.size >= limit) break;
      }
    }
    if (seen.size === 0) throw new CommandError(`${shown(set)} has no such task`, exitCodes.nothing);
    const named = [...seen].slice(0, longestList).map(shown).join(", ");
    terminal.say(`${seen.size} of ${shown(set)}: ${named}${seen.size > longestList ? ", …" : ""}`);
    await agreed(call, { question: "Let them start again?" });
    let requeued = 0;
    if (state === undefined) {
      for (const id of seen) {
        if (await tasks.requeue(id, options)) requeued += 1;
        else terminal.complain(`${shown(id)} has neither failed nor was it parked or cancelled: unchanged`);
      }
    } else {
      // Only the tasks that were shown.
      requeued = await tasks.requeueAll({ ...options, state, filter: ({ id }) => seen.has(id) });
    }
    terminal.say(`${requeued} of ${seen.size} wait again.`);
    return requeued === seen.size ? exitCodes.done : exitCodes.nothing;
  },
});
