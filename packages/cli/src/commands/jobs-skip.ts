import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { text } from "../flags.ts";
import { jobRunsOf, limitFlags, slotIn } from "../jobs/job-flags.ts";
import { slotText, stateText } from "../jobs/run-view.ts";
import { shown } from "../terminal/text.ts";
import { agreed } from "./shared/intervention.ts";

export default command({
  usage: "jobs skip JOB SLOT",
  details: `
Records that a slot is not to run: no attempt begins any more, and it is not missed. Refused while an attempt runs, and for
a slot that has succeeded (80). 1 request.

  leasehold jobs skip daily-report 2026-11-21T08:00Z --reason holiday`,
  writes: true,
  operands: [2, 2],
  flags: { reason: text("TEXT", "why: the run's remark"), ...limitFlags },
  async run(call) {
    const { operands, flags, connect, terminal, by } = call;
    const [job = "", given = ""] = operands;
    const slot = slotIn(given);
    const { client } = await connect();
    const runs = jobRunsOf(client, job, flags);
    const run = await runs.get(slot);
    const name = `${slotText(slot)} UTC of ${shown(job)}`;
    terminal.say(run === undefined ? `${name} was never begun.` : `${name}: ${stateText(run)}.`);
    await agreed(call, { question: "Skip it?" });
    await runs.skip(slot, flags.reason, { by });
    terminal.say(`${name} is skipped.`);
    return exitCodes.done;
  },
});
