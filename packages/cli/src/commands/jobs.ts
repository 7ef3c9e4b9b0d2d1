import { registeredJobs } from "@leasehold/jobs";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import {
  givenSchedule,
  jobRunsOf,
  limitFlags,
  registeredSchedule,
  scheduleFlags,
} from "../jobs/job-flags.ts";
import { type JobSummary, summaryOf } from "../jobs/job-summary.ts";
import { stateText } from "../jobs/run-view.ts";
import { ageText } from "../terminal/durations.ts";
import type { Cell } from "../terminal/table.ts";
import { costText } from "../view/read-cost.ts";
import { serviceNow } from "../view/service-time.ts";
import { readTable, usualMostItems } from "../view/table-snapshot.ts";
import { priceOfTable } from "./shared/table-price.ts";

export default command({
  usage: "jobs [JOB…]",
  details: `
A line for each job: its last runs, and how those of the last 24 hours have ended. Without names it shows the jobs that are
registered, which JobRuns with a schedule are. Where none is, and with --scan, it reads the whole table, a megabyte a
request; above ${usualMostItems.toLocaleString("en-US")} items it tells the price, and stops. Then 1 request for each job.`,
  writes: false,
  operands: [0, 100],
  flags: {
    scan: yes("read the table however large it is"),
    ...scheduleFlags,
    ...limitFlags,
    "fail-if-empty": yes("exit with 1 where there is no job"),
  },
  async run({ operands, flags, connect, printer, terminal, signal }) {
    const given = givenSchedule(flags);
    const { client, place, describeTable } = await connect();
    const registered = new Map((await registeredJobs(client)).map((one) => [one.job, one]));
    let jobs: readonly string[] = operands.length > 0 ? operands : [...registered.keys()];
    if (jobs.length === 0 || (flags.scan && operands.length === 0)) {
      const mostItems = flags.scan ? Number.POSITIVE_INFINITY : usualMostItems;
      const snapshot = await priceOfTable(describeTable, () => readTable(client, { mostItems, signal }));
      jobs = snapshot.keys.filter(({ items }) => (items.run ?? 0) > 0).map(({ key }) => key);
      terminal.say(`${jobs.length} jobs.  ${place} · ${costText(snapshot.cost)}`);
    } else if (operands.length === 0) {
      terminal.say(`${jobs.length} registered jobs (--scan finds others).  ${place}`);
    }
    const rows: JobSummary[] = [];
    for (const job of jobs) {
      signal.throwIfAborted();
      const known = registered.get(job);
      const schedule = given ?? (known && registeredSchedule(known));
      rows.push(await summaryOf(jobRunsOf(client, job, flags), serviceNow(client), schedule));
    }
    const now = serviceNow(client);
    const count = (number: number | undefined, isBad = false): Cell =>
      number === undefined
        ? "—"
        : number > 0 && isBad
          ? { text: String(number), style: "red" }
          : String(number);
    printer.list({
      kind: "job",
      rows,
      columns: [
        { title: "JOB", cell: ({ job }) => job, gives: true },
        {
          title: "LAST SUCCESS",
          cell: ({ lastSuccess }) =>
            lastSuccess?.endedAt === undefined
              ? "—"
              : `${ageText(Math.max(0, now - lastSuccess.endedAt))} ago`,
        },
        {
          title: "LAST RUN",
          cell: ({ lastRun }) => {
            if (lastRun === undefined) return "—";
            const { startedAt, endedAt } = lastRun;
            const at = endedAt ?? startedAt;
            const ago = at === undefined ? "" : `${ageText(Math.max(0, now - at))} ago `;
            const text = `${ago}${stateText(lastRun)}`;
            return lastRun.state === "failed" || lastRun.state === "lost" ? { text, style: "red" } : text;
          },
        },
        { title: "24H: OK", cell: ({ last24h }) => count(last24h.succeeded), align: "right" },
        { title: "FAILED", cell: ({ last24h }) => count(last24h.failed, true), align: "right" },
        { title: "LOST", cell: ({ last24h }) => count(last24h.lost, true), align: "right" },
        { title: "EXHAUSTED", cell: ({ last24h }) => count(last24h.exhausted, true), align: "right" },
        { title: "SKIPPED", cell: ({ last24h }) => count(last24h.skipped), align: "right" },
        { title: "MISSED", cell: ({ missed }) => count(missed, true), align: "right" },
      ],
      record: (row) => row,
      key: ({ job }) => job,
    });
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
