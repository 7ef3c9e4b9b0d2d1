// One slot of a job, run by a command under the slot's own lease, or by the job's Lambda function.

import { parsedJson } from "@leasehold/client/internal";
import type { JobRuns, RunContext } from "@leasehold/jobs";
import type { Call } from "../command.ts";
import type { Connection } from "../connection.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { defined, text, type Values } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { checkExecutable, type EndingCall } from "../work/child.ts";
import { leaseMsOf } from "../work/hold.ts";
import { type ChildEnd, checkGrace, childFlags, leaseVariables, runUnderLease } from "../work/supervision.ts";
import { slotText, stateText } from "./job-flags.ts";

/** How a slot is run. */
export const howFlags = {
  invoke: text("FUNCTION", "the Lambda function that runs the job"),
  ...childFlags,
};

export type RunningCall = Pick<Call, "env" | "clock" | "terminal" | "child" | "global"> & {
  readonly flags: Values<typeof howFlags> & { readonly lease?: number | undefined };
};

/** Refuses a call that does not say how, before anything is sent. */
export function checkHow({ flags, child, env }: RunningCall, isNeeded: boolean): void {
  if (isNeeded && (flags.invoke === undefined) === (child === undefined)) {
    throw new UsageError("give either --invoke FUNCTION, or -- CMD");
  }
  checkGrace(flags, { leaseMs: leaseMsOf(flags), heartbeat: true });
  if (child !== undefined) checkExecutable(child[0] ?? "", env);
}

/** The command has not succeeded. The message becomes the run's remark. */
export class SlotFailure extends CommandError {}

function failureOf({ code, isLost, isTooLong }: ChildEnd): SlotFailure | undefined {
  const text = `the command exited ${code}`;
  if (isLost && code !== 0) return new SlotFailure(`the lease was lost, and ${text}`, exitCodes.lost);
  if (isTooLong) return new SlotFailure(`it ran for longer than --max, and ${text}`, exitCodes.tooLong);
  // After a loss, the run's own end says whether the success counts.
  return code === 0 ? undefined : new SlotFailure(text, code);
}

/** Rejects with a SlotFailure, and with a CommandError (126, 127). */
export async function runSlotCommand(
  running: EndingCall,
  call: RunningCall,
  { tableName }: Connection,
  { job, slot, attempt, lease }: RunContext,
): Promise<void> {
  const { child: commandLine = [], flags } = call;
  const end = await runUnderLease(running, call, {
    commandLine,
    variables: {
      ...leaseVariables(job, lease, { tableName, slot }),
      LEASEHOLD_ATTEMPT: String(attempt),
    },
    key: job,
    lease,
    leaseMs: leaseMsOf(flags),
    flags,
  });
  const failure = failureOf(end);
  if (failure !== undefined) throw failure;
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
export async function invoker({ flags, global }: RunningCall, { region }: Connection, runs: JobRuns) {
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
    const { code, message } = error as NodeJS.ErrnoException;
    const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
    // A file that the package itself misses is another error.
    if (!isMissing || !message.includes(`'${packageName}'`)) throw error;
    const advice = `npm install ${packageName}, beside @leasehold/cli; or give a command behind -- in its place`;
    throw new CommandError(`--invoke needs ${packageName}: ${advice}`, exitCodes.configuration, {
      cause: error,
    });
  }
}

/** A function that has failed answers with its error's message. */
function errorIn(payload: InvokeOutput["Payload"]): string {
  const text = payload === undefined ? "" : Buffer.from(payload as Uint8Array).toString("utf8");
  const { errorType, errorMessage } = Object(parsedJson(text)?.value) as Record<string, unknown>;
  return shown([errorType, errorMessage].filter(Boolean).join(": ") || text);
}

/** `2026-11-21 08:00 UTC of daily-report`. */
export function nameOf({ job }: JobRuns, slot: string): string {
  return `${slotText(slot)} UTC of ${shown(job)}`;
}

/** Says how a slot's run is. */
export async function sayRun({ terminal }: Pick<Call, "terminal">, runs: JobRuns, slot: string) {
  const run = await runs.get(slot);
  const name = nameOf(runs, slot);
  terminal.say(run === undefined ? `${name} was never begun.` : `${name}: ${stateText(run)}.`);
  return { run, name };
}
