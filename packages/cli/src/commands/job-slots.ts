// The writes of jobs that are no single run: a slot is skipped, and missed slots are run.

import type { JobRuns, MissedQuery } from "@leasehold/jobs";
import { type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { exitCodes, messageOf } from "../exit-codes.ts";
import { text, whole, yes } from "../flags.ts";
import {
  jobRunsOf,
  limitFlags,
  rangeFlags,
  rangeOf,
  scheduleFlags,
  scheduleOf,
  slotIn,
  slotText,
} from "../jobs/job-flags.ts";
import { checkHow, howFlags, invoker, runSlotCommand, sayRun } from "../jobs/run-slot.ts";
import { shown } from "../terminal/text.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import { endingBySignals } from "../work/child.ts";
import { agreed } from "./shared/intervention.ts";

export const jobsSkip = command({
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
    const { name } = await sayRun(call, runs, slot);
    await agreed(call, { question: "Skip it?" });
    await runs.skip(slot, flags.reason, { by });
    terminal.say(`${name} is skipped.`);
    return exitCodes.done;
  },
});

const usualLimit = 100;

const flags = {
  ...scheduleFlags,
  ...rangeFlags,
  limit: whole(`at most so many slots (default ${usualLimit})`, { least: 1 }),
  "stop-on-failure": yes("run no later slot when one has failed"),
  ...limitFlags,
  ...howFlags,
};

type BackfillCall = Call<typeof flags>;

export const jobsBackfill = command({
  usage: "jobs backfill JOB [flags] (--invoke FUNCTION | -- CMD [ARG…])",
  details: `
Runs the slots that a job has missed, oldest first and one after the other. CMD gets LEASEHOLD_SLOT; --invoke calls the Lambda
function with { "scheduledTime": SLOT }. Several hosts may do it at once: they share the slots. --dry-run lists them.

  leasehold jobs backfill daily-report --schedule 'cron(0 8 ? * MON-FRI *)' --since 3d -- ./report.sh`,
  writes: true,
  operands: [1, 1],
  child: "optional",
  flags,
  async run(call) {
    const { operands, connect, terminal, global } = call;
    const [job = ""] = operands;
    const { limit = usualLimit } = call.flags;
    checkHow(call, !global["dry-run"]);
    const connection = await connect();
    const schedule = await scheduleOf(connection.client, job, call.flags);
    const runs = jobRunsOf(connection.client, job, call.flags);
    const query = { schedule, ...rangeOf(call.flags, serviceNow(connection.client)) };
    const slots = await slotsToRun(runs, query, limit);
    for (const slot of slots)
      global["dry-run"] ? terminal.print(slot) : terminal.say(`  ${slotText(slot)} UTC`);
    terminal.say(
      `${slots.length} missed slots of ${shown(job)} to run${slots.length === limit ? " (--limit)" : ""}`,
    );
    if (global["dry-run"] || slots.length === 0) return exitCodes.done;
    await agreed(call, { question: "Run them?" });
    return call.child !== undefined
      ? await byCommand(call, connection, runs, { ...query, limit })
      : await byFunction(call, connection, runs, slots);
  },
});

/** Without the slots whose attempts are used up. */
async function slotsToRun(runs: JobRuns, query: MissedQuery, limit: number): Promise<readonly string[]> {
  const slots: string[] = [];
  for await (const { slot, run } of runs.missed(query)) {
    if (run?.exhausted) continue;
    slots.push(slot);
    if (slots.length >= limit) break;
  }
  return slots;
}

async function byCommand(
  call: BackfillCall,
  connection: Connection,
  runs: JobRuns,
  query: MissedQuery & { readonly limit: number },
): Promise<number> {
  const { terminal } = call;
  const running = endingBySignals(call);
  const report = await runs.backfill(
    { ...query, stopOnFailure: call.flags["stop-on-failure"], signal: running.signal },
    async (context) => {
      terminal.say(`leasehold: running ${slotText(context.slot)} UTC`);
      await runSlotCommand(running, call, connection, context);
    },
  );
  for (const { slot, error } of report.failed) {
    terminal.complain(`${slotText(slot)} UTC: ${shown(messageOf(error))}`);
  }
  const counts = `${report.succeeded.length} succeeded, ${report.failed.length} failed, ${report.left.length} left`;
  terminal.say(`${counts}${report.complete ? "" : "; not all of the range was gone through"}`);
  return running.exitCode() ?? (report.failed.length > 0 ? exitCodes.nothing : exitCodes.done);
}

async function byFunction(
  call: BackfillCall,
  connection: Connection,
  runs: JobRuns,
  slots: readonly string[],
): Promise<number> {
  const { terminal, signal, flags: given } = call;
  const invoke = await invoker(call, connection, runs);
  let failed = 0;
  for (const slot of slots) {
    signal.throwIfAborted();
    const { failure, state, isDone } = await invoke(slot);
    terminal.say(`${slotText(slot)} UTC: ${failure ?? state}`);
    if (isDone) continue;
    failed += 1;
    if (given["stop-on-failure"]) break;
  }
  return failed > 0 ? exitCodes.nothing : exitCodes.done;
}
