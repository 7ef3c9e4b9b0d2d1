// The job's next run, for cron, systemd and people: the slot that is due, or one that is named.

import type { JobRuns, RunContext } from "@leasehold/jobs";
import { type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { defined, duration, text, yes } from "../flags.ts";
import {
  dueSlot,
  givenSchedule,
  jobRunsOf,
  limitFlags,
  scheduleFlags,
  slotIn,
  writtenSchedule,
} from "../jobs/job-flags.ts";
import {
  checkHow,
  howFlags,
  invoker,
  nameOf,
  runSlotCommand,
  SlotFailure,
  sayRun,
} from "../jobs/run-slot.ts";
import { shown } from "../terminal/text.ts";
import { endingBySignals } from "../work/child.ts";
import { holdFlags, leaseMsOf, timeForCron } from "../work/hold.ts";
import { agreed } from "./shared/intervention.ts";

const runFlags = {
  ...scheduleFlags,
  slot: text("TIME", "this slot, in place of the last one that is due"),
  again: yes("also where it has succeeded or was skipped: opens the slot"),
  reason: text("TEXT", "with --again: why, the run's remark"),
  wait: duration("how long to wait while another process runs the slot (default 0: try once)", {
    short: "w",
  }),
  lease: holdFlags.lease,
  "skip-ok": yes("exit 0 where another process runs the slot, with a line on stderr"),
  ...limitFlags,
  ...howFlags,
};

type RunCall = Call<typeof runFlags>;

export const jobsRun = command({
  usage: "jobs run JOB [flags] (-- CMD [ARG…] | --invoke FUNCTION)",
  details: `
Runs the last slot that is due, unless it is done: the same line on every host, as often as you like. Exit code 0 makes the
run a success, every other one a failure, which the next call tries again while attempts are left. CMD gets what run gives
it, with LEASEHOLD_SLOT and LEASEHOLD_ATTEMPT. --schedule also registers the job, for jobs, jobs missed and the console.
--invoke calls a Lambda function with { "scheduledTime": SLOT }, and waits for its end.

The exit code is 0 where the run has succeeded, now or before, 1 where its attempts are used up, and else as with run.

  leasehold jobs run daily-report --schedule 'cron(0 8 * * ? *)' --tz Europe/Berlin -- ./report.sh
  leasehold jobs run daily-report --slot 2026-11-21T08:00Z --again -- ./report.sh`,
  writes: true,
  operands: [1, 1],
  child: "optional",
  flags: runFlags,
  async run(call) {
    const { operands, flags, connect } = call;
    const [job = ""] = operands;
    const given = flags.slot === undefined ? undefined : slotIn(flags.slot);
    const isScheduled = givenSchedule(flags) !== undefined;
    if (given !== undefined && isScheduled) {
      throw new UsageError("--slot and --schedule do not go together; give one of them");
    }
    checkHow(call, true);
    const connection = await connect();
    const { client } = connection;
    const written = given === undefined ? await writtenSchedule(client, job, flags) : undefined;
    const slot = written ? dueSlot(written, await timeForCron(client, job), flags.keep) : String(given);
    const options = defined({ ...written, leaseDurationMs: leaseMsOf(flags) });
    const runs = jobRunsOf(client, job, flags, options);
    if (flags.again) await openAgain(call, runs, slot);
    return flags.invoke === undefined
      ? await runByCommand(call, connection, runs, slot)
      : await runByFunction(call, connection, runs, slot);
  },
});

/** Opens a slot that is done, if the user agrees. */
async function openAgain(call: RunCall, runs: JobRuns, slot: string): Promise<void> {
  const { run, name } = await sayRun(call, runs, slot);
  if (run?.state !== "succeeded" && run?.state !== "skipped") return;
  await agreed(call, { question: "Run it again?" });
  if (await runs.takeBack(run, call.flags.reason)) return;
  throw new CommandError(`${name} has changed in the meantime: look again`, exitCodes.lost);
}

async function runByFunction(
  call: RunCall,
  connection: Connection,
  runs: JobRuns,
  slot: string,
): Promise<number> {
  const invoke = await invoker(call, connection, runs);
  const { failure, state, isDone } = await invoke(slot);
  const end = failure ?? "the function has ended";
  call.terminal.say(`${nameOf(runs, slot)}: ${end}; the run is ${state}.`);
  return isDone ? exitCodes.done : exitCodes.nothing;
}

async function runByCommand(
  call: RunCall,
  connection: Connection,
  runs: JobRuns,
  slot: string,
): Promise<number> {
  const { flags, terminal, global } = call;
  const running = endingBySignals(call);
  const { signal } = running;
  try {
    const work = (context: RunContext) => runSlotCommand(running, call, connection, context);
    await runs.run(slot, work, { signal, ...defined({ waitMs: flags.wait }) });
  } catch (error) {
    if (!(error instanceof SlotFailure)) return await refusedBy(error, call, runs, slot);
    terminal.complain(`leasehold: ${nameOf(runs, slot)}: ${error.message}`);
    return running.exitCode() ?? error.exitCode;
  }
  // A crontab's mail is only for failures.
  if (terminal.stderr.isTTY || global.verbose) terminal.say(`${nameOf(runs, slot)} has succeeded.`);
  return exitCodes.done;
}

/** Says why a slot was not run, and returns the exit code. Throws every error that is no refusal. */
async function refusedBy(
  error: unknown,
  { flags, terminal }: RunCall,
  runs: JobRuns,
  slot: string,
): Promise<number> {
  const name = nameOf(runs, slot);
  const { code, holder, attempts } = Object(error) as {
    readonly code?: unknown;
    readonly holder?: string;
    readonly attempts?: number;
  };
  if (code === "LEASE_SLOT_DONE") {
    const run = await runs.get(slot);
    const by = run?.owner === undefined ? "" : ` (${shown(run.owner)})`;
    terminal.say(`leasehold: ${name} is ${run?.state ?? "done"} already${by}: nothing to do`);
    return exitCodes.done;
  }
  if (code === "LEASE_UNAVAILABLE") {
    const line = `leasehold: ${name} is run by ${shown(holder ?? "another process")}`;
    if (flags["skip-ok"]) terminal.say(`${line}: nothing to do`);
    else terminal.complain(`${line}; --wait DUR waits for its end`);
    return flags["skip-ok"] ? exitCodes.done : exitCodes.held;
  }
  if (code !== "LEASE_RUNS_EXHAUSTED") throw error;
  // The calls that made the attempts have complained.
  const advice = `--max-attempts ${Number(attempts) + 1} allows another`;
  terminal.say(`leasehold: ${name} has had all of its ${attempts} attempts: ${advice}`);
  return exitCodes.nothing;
}
