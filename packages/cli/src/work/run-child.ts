// Starts a command, and passes the signals of this process on to it for as long as it runs.

import type { Call } from "../command.ts";
import { Child } from "./child.ts";

/** Runs a command until `watch` has seen its end. Rejects with a CommandError (126, 127) where it cannot be started. */
export async function runChild<T>(
  { terminal, redirectSignals, signal }: Pick<Call, "terminal" | "redirectSignals" | "signal">,
  {
    commandLine,
    env,
    fd,
  }: {
    readonly commandLine: readonly string[];
    readonly env: NodeJS.ProcessEnv;
    readonly fd?: number | undefined;
  },
  watch: (child: Child) => Promise<T>,
): Promise<T> {
  let child: Child | undefined;
  const early: NodeJS.Signals[] = [];
  const stopPassing = redirectSignals((name) => {
    if (child === undefined) early.push(name);
    else child.passOn(name);
  });
  try {
    signal.throwIfAborted();
    child = await Child.start(commandLine, {
      env,
      fd,
      onUnguarded: () =>
        terminal.say("leasehold: there is no /bin/sh: if this process is killed, the child goes on"),
    });
    for (const name of early) child.passOn(name);
    return await watch(child);
  } finally {
    stopPassing();
  }
}
