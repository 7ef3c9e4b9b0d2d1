// The looks at jobs and their runs.

import { type JobRun, type JobRuns, type RunState, registeredJobs, type Schedule } from "@leasehold/jobs";
import { command } from "../command.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { custom, defined, usually, whole, yes } from "../flags.ts";
import {
  givenSchedule,
  jobRunsOf,
  limitFlags,
  rangeFlags,
  rangeOf,
  readableSchedule,
  remarkText,
  runColumns,
  runStates,
  scheduleFlags,
  scheduleOf,
  slotIn,
  slotText,
  statesIn,
  stateText,
  tookText,
} from "../jobs/job-flags.ts";
import type { Cell } from "../terminal/table.ts";
import { ageText, fieldLines, shown, timeText } from "../terminal/text.ts";
import { keysOf } from "../view/key-rows.ts";
import { costText } from "../view/read-cost.ts";
import { readTable, serviceNow, toldNow, usualMostItems } from "../view/table-snapshot.ts";

interface JobSummary {
  readonly job: string;
  readonly lastRun: JobRun | undefined;
  readonly lastSuccess: JobRun | undefined;
  /** By the slots of the last 24 hours; exhausted runs are counted as failed or lost too. */
  readonly last24h: Readonly<Record<RunState | "exhausted", number>>;
  /** Slots of the last 24 hours that were due and not done; undefined without a known schedule. */
  readonly missed: number | undefined;
}

const dayMs = 24 * 3_600_000;
/** A success before this many runs is not looked for. */
const mostRuns = 5_000;

/** Reads a job's runs, the latest first, until it has seen a day of them and a success. */
async function summaryOf(runs: JobRuns, now: number, schedule: Schedule | undefined): Promise<JobSummary> {
  const since = new Date(now - dayMs);
  const counts = { running: 0, succeeded: 0, failed: 0, lost: 0, skipped: 0, exhausted: 0 };
  let lastRun: JobRun | undefined;
  let lastSuccess: JobRun | undefined;
  for await (const run of runs.runs({ descending: true, limit: mostRuns })) {
    const isToday = run.slot >= since.toISOString();
    if (!isToday && lastSuccess !== undefined) break;
    lastRun ??= run;
    if (run.state === "succeeded") lastSuccess ??= run;
    if (!isToday) continue;
    counts[run.state] += 1;
    if (run.exhausted) counts.exhausted += 1;
  }
  const missed = schedule && (await Array.fromAsync(runs.missed({ schedule, since })));
  return { job: runs.job, lastRun, lastSuccess, last24h: counts, missed: missed?.length };
}

export const jobs = command({
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
  async run({ flags, connect, printer, terminal }, ...named) {
    const given = givenSchedule(flags);
    const { client, place, describeTable } = await connect();
    const registered = new Map((await registeredJobs(client)).map((one) => [one.job, one]));
    let jobs: readonly string[] = named.length > 0 ? named : [...registered.keys()];
    if (jobs.length === 0 || (flags.scan && named.length === 0)) {
      const mostItems = flags.scan ? Number.POSITIVE_INFINITY : usualMostItems;
      const snapshot = await readTable(client, { mostItems, describeTable });
      jobs = keysOf("job", snapshot.keys);
      terminal.say(`${jobs.length} jobs.  ${place} · ${costText(snapshot.cost)}`);
    } else if (named.length === 0) {
      terminal.say(`${jobs.length} registered jobs (--scan finds others).  ${place}`);
    }
    const rows: JobSummary[] = [];
    for (const job of jobs) {
      const known = registered.get(job);
      const schedule = given ?? (known && readableSchedule(known));
      if (known !== undefined && schedule === undefined)
        terminal.say(`${shown(job)}: its schedule ${shown(known.schedule)} cannot be read here`);
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
      key: ({ job }) => job,
    });
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});

export const jobsRuns = command({
  usage: "jobs runs JOB",
  details: `
The runs of a job, the latest slot first. Reads the range: 1 request for each 250 runs.

  leasehold jobs runs daily-report --state failed,lost --since 7d`,
  writes: false,
  flags: {
    state: custom("STATES", `only in these states: ${runStates.join(", ")}`, statesIn),
    ...rangeFlags,
    limit: usually(whole("at most so many (default 20)", { least: 1 }), 20),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
    ...limitFlags,
  },
  async run({ flags, connect, printer, terminal }, job) {
    const { client } = await connect();
    const { state, limit } = flags;
    const range = rangeOf(flags, await toldNow(client, job));
    const query = { ...range, descending: true, limit, ...defined({ state }) };
    const rows = await Array.fromAsync(jobRunsOf(client, job, flags).runs(query));
    printer.list({
      kind: "run",
      rows,
      columns: runColumns(flags["max-attempts"] ?? 3, serviceNow(client)),
      key: ({ slot }) => slot,
    });
    if (rows.length === 0) terminal.say("no such run in this range (--since tells where it begins)");
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});

export const jobsShow = command({
  usage: "jobs show JOB SLOT",
  details: `
All that is known of one run, with its attempts; exit 1 where it was neither begun nor skipped. 1 consistent read.`,
  writes: false,
  flags: limitFlags,
  async run({ flags, connect, printer, terminal }, job, given) {
    const slot = slotIn(given);
    const { client } = await connect();
    const run = await jobRunsOf(client, job, flags).get(slot);
    if (run === undefined) {
      throw new CommandError(`${shown(job)} has no run of ${slotText(slot)} UTC`, exitCodes.nothing);
    }
    const now = serviceNow(client);
    const at = (time: number | undefined): string => (time === undefined ? "—" : `${timeText(time)} UTC`);
    printer.document("run", run, () => [
      `${shown(job)}  ${slotText(slot)} UTC  ${stateText(run)}`,
      ...fieldLines(
        [
          ["attempt", `${run.attempt} of ${flags["max-attempts"] ?? 3} (${run.lostAttempts} lost)`],
          ["owner", run.owner ?? "—"],
          ["started", at(run.startedAt)],
          ["ended", at(run.endedAt)],
          ["took", tookText(run, now)],
          ["lease ends", run.expiresAt === undefined ? undefined : at(run.expiresAt)],
          ["fencing", String(run.fencingToken ?? "—")],
          ["remark", run.remark ?? "—"],
          ["progress", run.progress === undefined ? "—" : JSON.stringify(run.progress)],
          ...run.attempts
            .slice(0, -1)
            .map((one): readonly [string, string] => [
              `attempt ${one.attempt}`,
              `${one.state} · ${one.owner ?? "—"} · ${at(one.startedAt)}, ${tookText(one, now)}${one.remark === undefined ? "" : ` · ${one.remark}`}`,
            ]),
        ],
        terminal.columns,
      ),
    ]);
    return exitCodes.done;
  },
});

export const jobsMissed = command({
  usage: "jobs missed JOB",
  details: `
The slots that were due and have neither succeeded nor been skipped, oldest first. 1 request for each 250 runs of the range.

  leasehold jobs missed daily-report --schedule 'cron(0 8 ? * MON-FRI *)' --tz Europe/Berlin --since 7d`,
  writes: false,
  flags: {
    ...scheduleFlags,
    ...rangeFlags,
    "fail-if-empty": yes("exit with 1 where nothing is missed"),
    ...limitFlags,
  },
  async run({ flags, connect, printer, terminal }, job) {
    const { client } = await connect();
    const schedule = await scheduleOf(client, job, flags);
    const range = rangeOf(flags, await toldNow(client, job));
    const rows = await Array.fromAsync(jobRunsOf(client, job, flags).missed({ schedule, ...range }));
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
      key: ({ slot }) => slot,
    });
    terminal.say(`${rows.length} missed`);
    return rows.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
