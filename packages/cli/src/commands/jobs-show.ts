import { command } from "../command.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { jobRunsOf, limitFlags, slotIn } from "../jobs/job-flags.ts";
import { slotText, stateText, tookText } from "../jobs/run-view.ts";
import { timeText } from "../terminal/durations.ts";
import { fieldLines } from "../terminal/fields.ts";
import { shown } from "../terminal/text.ts";
import { serviceNow } from "../view/service-time.ts";

export default command({
  usage: "jobs show JOB SLOT",
  details: `
All that is known of one run; exit 1 where it was neither begun nor skipped. 1 consistent read.`,
  writes: false,
  operands: [2, 2],
  flags: limitFlags,
  async run({ operands: [job = "", given = ""], flags, connect, printer, terminal }) {
    const slot = slotIn(given);
    const { client } = await connect();
    const run = await jobRunsOf(client, job, flags).get(slot);
    if (run === undefined) {
      throw new CommandError(`${shown(job)} has no run of ${slotText(slot)} UTC`, exitCodes.nothing);
    }
    const at = (time: number | undefined): string => (time === undefined ? "—" : `${timeText(time)} UTC`);
    printer.document("run", run, () => [
      `${shown(job)}  ${slotText(slot)} UTC  ${stateText(run)}`,
      ...fieldLines(
        [
          ["attempt", `${run.attempt} of ${flags["max-attempts"] ?? 3} (${run.lostAttempts} lost)`],
          ["owner", run.owner ?? "—"],
          ["started", at(run.startedAt)],
          ["ended", at(run.endedAt)],
          ["took", tookText(run, serviceNow(client))],
          ...(run.expiresAt === undefined ? [] : [["lease ends", at(run.expiresAt)] as const]),
          ["fencing", String(run.fencingToken ?? "—")],
          ["remark", run.remark ?? "—"],
          ["progress", run.progress === undefined ? "—" : JSON.stringify(run.progress)],
        ],
        terminal.columns,
      ),
    ]);
    return exitCodes.done;
  },
});
