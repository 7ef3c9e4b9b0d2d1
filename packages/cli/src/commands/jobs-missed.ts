import type { MissedSlot } from "@leasehold/jobs";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { jobRunsOf, limitFlags, rangeFlags, rangeOf, scheduleFlags, scheduleOf } from "../jobs/job-flags.ts";
import { remarkText, slotText, stateText } from "../jobs/run-view.ts";
import { serviceNow } from "../view/service-time.ts";

export default command({
  usage: "jobs missed JOB",
  details: `
The slots that were due and have neither succeeded nor been skipped, oldest first. 1 request for each 250 runs of the range.

  leasehold jobs missed daily-report --schedule 'cron(0 8 ? * MON-FRI *)' --tz Europe/Berlin --since 7d`,
  writes: false,
  operands: [1, 1],
  flags: {
    ...scheduleFlags,
    ...rangeFlags,
    "fail-if-empty": yes("exit with 1 where nothing is missed"),
    ...limitFlags,
  },
  async run({ operands: [job = ""], flags, connect, printer, terminal, signal }) {
    const { client } = await connect();
    const schedule = await scheduleOf(client, job, flags);
    const rows: MissedSlot[] = [];
    const range = rangeOf(flags, serviceNow(client));
    for await (const missed of jobRunsOf(client, job, flags).missed({ schedule, ...range })) {
      signal.throwIfAborted();
      rows.push(missed);
    }
    printer.list({
      kind: "missed",
      rows,
      columns: [
        { title: "SLOT (UTC)", cell: ({ slot }) => slotText(slot) },
        {
          title: "STATE",
          cell: ({ run }) => ({ text: run === undefined ? "never begun" : stateText(run), style: "red" }),
        },
        {
          title: "REMARK / PROGRESS",
          cell: ({ run }) => (run === undefined ? "—" : remarkText(run)),
          gives: true,
        },
      ],
      record: (row) => row,
      key: ({ slot }) => slot,
    });
    terminal.say(`${rows.length} missed`);
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
