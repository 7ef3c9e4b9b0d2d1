import { TaskSet } from "@leasehold/jobs";
import { command } from "../command.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { text } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { agreed } from "./shared/intervention.ts";

export default command({
  usage: "tasks drop SET ID",
  details: `
Cancels a task that waits: no worker claims it any more, and adding its id again changes nothing. tasks requeue undoes it.
Exit 75 while a worker has it, 1 where it has ended or is not known. 2 requests.

  leasehold tasks drop orders/today doc-54 --reason 'wrong file'`,
  writes: true,
  operands: [2, 2],
  flags: { reason: text("TEXT", "why: the task's remark") },
  async run(call) {
    const { operands, flags, connect, terminal } = call;
    const [set = "", id = ""] = operands;
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
