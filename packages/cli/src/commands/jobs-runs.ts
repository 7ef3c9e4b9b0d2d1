import type { JobRun } from "@leasehold/jobs";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { text, whole, yes } from "../flags.ts";
import { jobRunsOf, limitFlags, rangeFlags, rangeOf, statesIn } from "../jobs/job-flags.ts";
import { runColumns } from "../jobs/run-view.ts";
import { serviceNow } from "../view/service-time.ts";

const usualLimit = 20;

export default command({
  usage: "jobs runs JOB",
  details: `
The runs of a job, the latest slot first. Reads the range: 1 request for each 250 runs.

  leasehold jobs runs daily-report --state failed,lost --since 7d`,
  writes: false,
  operands: [1, 1],
  flags: {
    state: text("STATES", "only in these states: running, succeeded, failed, lost, skipped"),
    ...rangeFlags,
    limit: whole(`at most so many (default ${usualLimit})`, { least: 1 }),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
    ...limitFlags,
  },
  async run({ operands: [job = ""], flags, connect, printer, terminal, signal }) {
    const states = statesIn(flags.state);
    const { client } = await connect();
    const { limit = usualLimit } = flags;
    const range = rangeOf(flags, serviceNow(client));
    const rows: JobRun[] = [];
    const query = { ...range, descending: true, limit, ...(states === undefined ? {} : { state: states }) };
    for await (const run of jobRunsOf(client, job, flags).runs(query)) {
      signal.throwIfAborted();
      rows.push(run);
    }
    printer.list({
      kind: "run",
      rows,
      columns: runColumns(flags["max-attempts"] ?? 3, serviceNow(client)),
      record: (run) => run,
      key: ({ slot }) => slot,
    });
    if (rows.length === 0) terminal.say("no such run in this range (--since tells where it begins)");
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
