// Runs a slot by a command, under the run's own lease. The command's exit code decides whether the slot has succeeded.

import type { RunContext } from "@leasehold/jobs";
import type { Call } from "../command.ts";
import type { Values } from "../flags.ts";
import { type EndingCall, runChild } from "../work/run-child.ts";
import { type childFlags, superviseChild } from "../work/supervision.ts";

/** The call of the command that runs a slot. */
export interface SlotCommand {
  readonly commandLine: readonly string[];
  readonly flags: Values<typeof childFlags>;
  readonly leaseMs: number;
}

/** The command has ended with another code than 0, which becomes the run's remark. */
export class SlotFailure extends Error {
  override readonly name = "SlotFailure";
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`the command exited ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Rejects with a SlotFailure, and with a CommandError (126, 127). */
export async function runSlotCommand(
  running: EndingCall,
  { env, clock, terminal }: Pick<Call, "env" | "clock" | "terminal">,
  { commandLine, flags, leaseMs }: SlotCommand,
  { job, slot, attempt, lease }: RunContext,
): Promise<void> {
  const added = {
    LEASEHOLD_KEY: job,
    LEASEHOLD_SLOT: slot,
    LEASEHOLD_ATTEMPT: String(attempt),
    LEASEHOLD_TOKEN: lease.token,
    LEASEHOLD_FENCING_TOKEN: String(lease.fencingToken),
  };
  const say = (line: string): void => terminal.complain(line);
  const end = await runChild(running, { commandLine, env: { ...env, ...added }, fd: flags.fd }, (child) =>
    superviseChild(child, { key: job, lease, leaseMs, flags, clock, say }),
  );
  if (end.code !== 0 || end.isTooLong) throw new SlotFailure(end.code);
}
