// The writes of jobs: a slot is skipped, or run by a command or by the job's own Lambda function.

import type { JobRuns, MissedQuery, RunContext } from "@leasehold/jobs";
import { type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { CommandError, exitCodes, messageOf, UsageError } from "../exit-codes.ts";
import { defined, text, type Values, whole, yes } from "../flags.ts";
import {
  jobRunsOf,
  limitFlags,
  rangeFlags,
  rangeOf,
  scheduleFlags,
  scheduleOf,
  slotIn,
  slotText,
  stateText,
} from "../jobs/job-flags.ts";
import { shown } from "../terminal/text.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import { checkExecutable, type EndingCall, endingBySignals } from "../work/child.ts";
import { checkGrace, childFlags, runUnderLease } from "../work/supervision.ts";
import { agreed } from "./shared/intervention.ts";

const leaseMs = 30_000;

/** How a slot is run. */
const howFlags = {
  invoke: text("FUNCTION", "the Lambda function that runs the job"),
  ...childFlags,
};

type RunningCall = Pick<Call, "env" | "clock" | "terminal" | "child" | "global"> & {
  readonly flags: Values<typeof howFlags>;
};

/** Refuses a call that does not say how, before anything is sent. */
function checkHow({ flags, child, env }: RunningCall, isNeeded: boolean): void {
  if (isNeeded && (flags.invoke === undefined) === (child === undefined)) {
    throw new UsageError("give either --invoke FUNCTION, or -- CMD");
  }
  checkGrace(flags, { leaseMs, heartbeat: true });
  if (child !== undefined) checkExecutable(child[0] ?? "", env);
}

/** The command has ended with another code than 0. The message becomes the run's remark. */
class SlotFailure extends CommandError {
  constructor(exitCode: number) {
    super(`the command exited ${exitCode}`, exitCode);
  }
}

/** Rejects with a SlotFailure, and with a CommandError (126, 127). */
async function runSlotCommand(
  running: EndingCall,
  call: RunningCall,
  { job, slot, attempt, lease }: RunContext,
): Promise<void> {
  const variables = {
    LEASEHOLD_KEY: job,
    LEASEHOLD_SLOT: slot,
    LEASEHOLD_ATTEMPT: String(attempt),
    LEASEHOLD_TOKEN: lease.token,
    LEASEHOLD_FENCING_TOKEN: String(lease.fencingToken),
  };
  const { child: commandLine = [], flags } = call;
  const end = await runUnderLease(running, call, { commandLine, variables, key: job, lease, leaseMs, flags });
  if (end.code !== 0 || end.isTooLong) throw new SlotFailure(end.code);
}

/** The part of the AWS SDK that is used here. It is loaded only for --invoke, and need not be installed otherwise. */
interface LambdaModule {
  readonly LambdaClient: new (config: object) => { send(command: object): Promise<InvokeOutput> };
  readonly InvokeCommand: new (input: object) => object;
}
interface InvokeOutput {
  readonly FunctionError?: string;
  readonly Payload?: { transformToString(): string } | Uint8Array;
}

const packageName = "@aws-sdk/client-lambda";

/**
 * Returns a function that runs a slot by the job's Lambda function, and waits for its end: it resolves to the error's
 * text, if there is one, and to the run's state. Rejects with a CommandError (78) if the package is not installed.
 */
async function invoker({ flags, global }: RunningCall, { region }: Connection, runs: JobRuns) {
  const { LambdaClient, InvokeCommand } = await loadLambda();
  const client = new LambdaClient(defined({ region, profile: global.profile }));
  return async (slot: string) => {
    const Payload = Buffer.from(JSON.stringify({ scheduledTime: slot }));
    const output = await client.send(new InvokeCommand({ FunctionName: flags.invoke, Payload }));
    const failure = output.FunctionError === undefined ? undefined : errorIn(output.Payload);
    const state = (await runs.get(slot))?.state ?? "not recorded";
    return { failure, state, isDone: failure === undefined && state === "succeeded" };
  };
}

async function loadLambda(): Promise<LambdaModule> {
  try {
    return (await import("@aws-sdk/client-lambda")) as LambdaModule;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    const advice = `npm install ${packageName}, beside @leasehold/cli; or give a command behind -- in its place`;
    throw new CommandError(`--invoke needs ${packageName}: ${advice}`, exitCodes.configuration, {
      cause: error,
    });
  }
}

/** A function that has failed answers with its error's message. */
function errorIn(payload: InvokeOutput["Payload"]): string {
  const text = payload === undefined ? "" : Buffer.from(payload as Uint8Array).toString("utf8");
  try {
    const { errorType, errorMessage } = JSON.parse(text) as Record<string, unknown>;
    return shown([errorType, errorMessage].filter(Boolean).join(": "));
  } catch {
    // Ignored: the function's answer is shown, whatever it is.
    return shown(text);
  }
}

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

/** Says how a slot's run is. */
async function sayRun({ terminal }: Pick<Call, "terminal">, runs: JobRuns, slot: string) {
  const run = await runs.get(slot);
  const name = `${slotText(slot)} UTC of ${shown(runs.job)}`;
  terminal.say(run === undefined ? `${name} was never begun.` : `${name}: ${stateText(run)}.`);
  return { run, name };
}

export const jobsRetry = command({
  usage: "jobs retry JOB SLOT [flags] (--invoke FUNCTION | -- CMD [ARG…])",
  details: `
Runs a slot once more. CMD is run under the slot's own lease, with LEASEHOLD_SLOT: exit code 0 makes it a success, every
other code a failure with a remark. --invoke calls the job's Lambda function with { "scheduledTime": SLOT } and waits for it.
A slot that has used up its attempts needs a larger --max-attempts; one that has succeeded or was skipped needs --again.

  leasehold jobs retry daily-report 2026-11-21T08:00Z --max-attempts 4 -- ./report.sh`,
  writes: true,
  operands: [2, 2],
  child: "optional",
  flags: {
    "max-attempts": whole("attempts that the slot may have now (default 3)", { least: 1, most: 1_000 }),
    keep: limitFlags.keep,
    again: yes("also where it has succeeded or was skipped"),
    reason: text("TEXT", "with --again: why, the run's remark"),
    ...howFlags,
  },
  async run(call) {
    const { operands, flags, connect, terminal } = call;
    const [job = "", given = ""] = operands;
    const slot = slotIn(given);
    checkHow(call, true);
    const connection = await connect();
    const runs = jobRunsOf(connection.client, job, flags);
    const { run, name } = await sayRun(call, runs, slot);
    const isDone = run?.state === "succeeded" || run?.state === "skipped";
    if (isDone && !flags.again) {
      throw new CommandError(`${name} is ${run.state}: --again runs it all the same`, exitCodes.slotDone);
    }
    if (run?.exhausted) {
      const advice = `--max-attempts ${run.attempt + 1} allows another`;
      throw new CommandError(
        `${name} has had all of its ${run.attempt} attempts: ${advice}`,
        exitCodes.nothing,
      );
    }
    await agreed(call, { question: "Run it?" });
    if (isDone && !(await runs.takeBack(run, flags.reason))) {
      throw new CommandError(`${name} has changed in the meantime: look again`, exitCodes.lost);
    }
    if (flags.invoke !== undefined) {
      const { failure, state, isDone } = await (await invoker(call, connection, runs))(slot);
      terminal.say(`${name}: ${failure ?? "the function has ended"}; the run is ${state}.`);
      return isDone ? exitCodes.done : exitCodes.nothing;
    }
    const running = endingBySignals(call);
    try {
      const { signal } = running;
      await runs.run(slot, (context) => runSlotCommand(running, call, context), { signal });
    } catch (error) {
      if (!(error instanceof SlotFailure)) throw error;
      terminal.say(`${name}: ${error.message}.`);
      return running.exitCode() ?? error.exitCode;
    }
    terminal.say(`${name} has succeeded.`);
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
      ? await byCommand(call, runs, { ...query, limit })
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
  runs: JobRuns,
  query: MissedQuery & { readonly limit: number },
): Promise<number> {
  const { terminal } = call;
  const running = endingBySignals(call);
  const report = await runs.backfill(
    { ...query, stopOnFailure: call.flags["stop-on-failure"], signal: running.signal },
    async (context) => {
      terminal.say(`leasehold: running ${slotText(context.slot)} UTC`);
      await runSlotCommand(running, call, context);
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
