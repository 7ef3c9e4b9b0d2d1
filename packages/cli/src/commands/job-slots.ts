// The writes of jobs: a slot is run by a command under the slot's own lease or by the job's Lambda function, it is skipped,
// and missed slots are run.

import { parsedJson } from "@leasehold/client/internal";
import type { JobRuns, MissedQuery, RunContext } from "@leasehold/jobs";
import { agreed, type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { CommandError, exitCodes, isMissingPackage, messageOf, UsageError } from "../exit-codes.ts";
import { defined, duration, text, usually, whole, yes } from "../flags.ts";
import {
  dueSlot,
  givenSchedule,
  jobRunsOf,
  limitFlags,
  rangeFlags,
  rangeOf,
  scheduleFlags,
  scheduleOf,
  slotIn,
  slotText,
  stateText,
  writtenSchedule,
} from "../jobs/job-flags.ts";
import { jsonText, shown } from "../terminal/text.ts";
import { toldNow } from "../view/table-snapshot.ts";
import { checkExecutable, endingBySignals } from "../work/child.ts";
import { holdFlags, timeForCron, usualLeaseMs } from "../work/hold.ts";
import { type ChildEnd, checkGrace, childFlags, leaseVariables, runUnderLease } from "../work/supervision.ts";

/** How a slot is run. */
const howFlags = {
  invoke: text("FUNCTION", "the Lambda function that runs the job"),
  ...childFlags,
};

type RunningCall = Call<typeof howFlags> & { readonly flags: { readonly lease?: number | undefined } };

/** Refuses a call that does not say how, before anything is sent. */
function checkHow({ flags, child, env }: RunningCall, isNeeded: boolean): void {
  if (isNeeded && (flags.invoke === undefined) === (child === undefined)) {
    throw new UsageError("give either --invoke FUNCTION, or -- CMD");
  }
  checkGrace(flags, { leaseMs: flags.lease ?? usualLeaseMs, heartbeat: true });
  if (child !== undefined) checkExecutable(child[0] ?? "", env);
}

/** The command has not succeeded. The message becomes the run's remark. */
class SlotFailure extends CommandError {}

function failureOf({ code, isLost, isTooLong }: ChildEnd): SlotFailure | undefined {
  const text = `the command exited ${code}`;
  if (isLost && code !== 0) return new SlotFailure(`the lease was lost, and ${text}`, exitCodes.lost);
  if (isTooLong) return new SlotFailure(`it ran for longer than --max, and ${text}`, exitCodes.tooLong);
  // After a loss, the run's own end says whether the success counts.
  return code === 0 ? undefined : new SlotFailure(text, code);
}

/** Rejects with a SlotFailure, and with a CommandError (126, 127). */
async function runSlotCommand(
  running: RunningCall,
  { tableName }: Connection,
  { job, slot, attempt, lease }: RunContext,
): Promise<void> {
  const { child: commandLine = [], flags } = running;
  const end = await runUnderLease(running, {
    commandLine,
    variables: {
      ...leaseVariables(job, lease, { tableName, slot }),
      LEASEHOLD_ATTEMPT: String(attempt),
    },
    key: job,
    lease,
    leaseMs: flags.lease ?? usualLeaseMs,
    flags,
  });
  const failure = failureOf(end);
  if (failure !== undefined) throw failure;
}

const packageName = "@aws-sdk/client-lambda";

/**
 * Runs slots by the job's Lambda function, one after the other, and says how each has ended. With --dry-run the first
 * call is printed, and not sent. Rejects with a CommandError (78) if the package is not installed.
 */
async function runByFunction(
  { flags, global, signal, terminal }: RunningCall,
  { region }: Connection,
  runs: JobRuns,
  { slots, stopsOnFailure = false }: { readonly slots: readonly string[]; readonly stopsOnFailure?: boolean },
): Promise<number> {
  if (global["dry-run"]) {
    const request = { FunctionName: flags.invoke, Payload: { scheduledTime: slots[0] } };
    terminal.print(jsonText({ operation: "Invoke", request }, 2));
    return exitCodes.done;
  }
  const { LambdaClient, InvokeCommand } = await loadLambda();
  const client = new LambdaClient(defined({ region, profile: global.profile }));
  let code: number = exitCodes.done;
  for (const slot of slots) {
    const Payload = Buffer.from(JSON.stringify({ scheduledTime: slot }));
    signal.throwIfAborted();
    // The function goes on by itself when nobody waits for its end.
    const command = new InvokeCommand({ FunctionName: flags.invoke, Payload });
    const output = await client.send(command, { abortSignal: signal });
    const failure = output.FunctionError === undefined ? undefined : errorIn(output.Payload);
    const state = (await runs.get(slot))?.state ?? "not recorded";
    terminal.say(`${nameOf(runs, slot)}: ${failure ?? "the function has ended"}; the run is ${state}.`);
    if (failure === undefined && state === "succeeded") continue;
    code = exitCodes.nothing;
    if (stopsOnFailure) break;
  }
  return code;
}

/** The package is loaded only for --invoke, and need not be installed otherwise. */
async function loadLambda() {
  try {
    return await import("@aws-sdk/client-lambda");
  } catch (error) {
    if (!isMissingPackage(error, packageName)) throw error;
    const advice = `npm install ${packageName}, beside @leasehold/cli; or give a command behind -- in its place`;
    throw new CommandError(`--invoke needs ${packageName}: ${advice}`, exitCodes.configuration, {
      cause: error,
    });
  }
}

/** A function that has failed answers with its error's message. */
function errorIn(payload: Uint8Array = new Uint8Array()): string {
  const text = Buffer.from(payload).toString("utf8");
  const { errorType, errorMessage } = Object(parsedJson(text)?.value) as Record<string, unknown>;
  return shown([errorType, errorMessage].filter(Boolean).join(": ") || text);
}

/** `2026-11-21 08:00 UTC of daily-report`. */
function nameOf({ job }: JobRuns, slot: string): string {
  return `${slotText(slot)} UTC of ${shown(job)}`;
}

async function sayRun({ terminal }: Call, runs: JobRuns, slot: string) {
  const run = await runs.get(slot);
  const name = nameOf(runs, slot);
  terminal.say(run === undefined ? `${name} was never begun.` : `${name}: ${stateText(run)}.`);
  return { run, name };
}

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
  child: "optional",
  flags: runFlags,
  async run(call, job) {
    const { flags, connect } = call;
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
    const options = defined({ ...written, leaseDurationMs: flags.lease });
    const runs = jobRunsOf(client, job, flags, options);
    if (flags.again) await openAgain(call, runs, slot);
    return flags.invoke === undefined
      ? await runByCommand(call, connection, runs, slot)
      : await runByFunction(call, connection, runs, { slots: [slot] });
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
    const work = (context: RunContext) => runSlotCommand(running, connection, context);
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

export const jobsSkip = command({
  usage: "jobs skip JOB SLOT",
  details: `
Records that a slot is not to run: no attempt begins any more, and it is not missed. Refused while an attempt runs, and for
a slot that has succeeded (80). 1 request.

  leasehold jobs skip daily-report 2026-11-21T08:00Z --reason holiday`,
  writes: true,
  flags: { reason: text("TEXT", "why: the run's remark"), ...limitFlags },
  async run(call, job, given) {
    const { flags, connect, terminal, by } = call;
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

const backfillFlags = {
  ...scheduleFlags,
  ...rangeFlags,
  limit: usually(whole("at most so many slots (default 100)", { least: 1 }), 100),
  "stop-on-failure": yes("run no later slot when one has failed"),
  ...limitFlags,
  ...howFlags,
};

type BackfillCall = Call<typeof backfillFlags>;

export const jobsBackfill = command({
  usage: "jobs backfill JOB [flags] (--invoke FUNCTION | -- CMD [ARG…])",
  details: `
Runs the slots that a job has missed, oldest first and one after the other. CMD gets LEASEHOLD_SLOT; --invoke calls the Lambda
function with { "scheduledTime": SLOT }. Several hosts may do it at once: they share the slots. --dry-run lists them.

  leasehold jobs backfill daily-report --schedule 'cron(0 8 ? * MON-FRI *)' --since 3d -- ./report.sh`,
  writes: true,
  child: "optional",
  flags: backfillFlags,
  async run(call, job) {
    const { connect, terminal, global } = call;
    const { limit } = call.flags;
    checkHow(call, !global["dry-run"]);
    const connection = await connect();
    const schedule = await scheduleOf(connection.client, job, call.flags);
    const runs = jobRunsOf(connection.client, job, call.flags);
    const query = { schedule, ...rangeOf(call.flags, await toldNow(connection.client, job)) };
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
      : await runByFunction(call, connection, runs, { slots, stopsOnFailure: call.flags["stop-on-failure"] });
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
      await runSlotCommand(running, connection, context);
    },
  );
  for (const { slot, error } of report.failed) {
    terminal.complain(`${slotText(slot)} UTC: ${shown(messageOf(error))}`);
  }
  const counts = `${report.succeeded.length} succeeded, ${report.failed.length} failed, ${report.left.length} left`;
  terminal.say(`${counts}${report.complete ? "" : "; not all of the range was gone through"}`);
  return running.exitCode() ?? (report.failed.length > 0 ? exitCodes.nothing : exitCodes.done);
}
