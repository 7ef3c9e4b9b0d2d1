// Starts a command, and passes this process's signals on to it while it runs.

import type { Call } from "../command.ts";
import { exitCodeOfAbort, Interruption } from "../interruption.ts";
import { Child } from "./child.ts";

/** These signals end the command that runs children one after the other, and not only the present child. */
const ending: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGHUP"]);

/** A call that passes its signals on to its children, and ends by them when the children have ended. */
export type EndingCall = Pick<Call, "terminal" | "redirectSignals" | "signal"> & {
  /** The exit code after a signal has ended it; undefined before. */
  readonly exitCode: () => number | undefined;
};

/** Lets signals end a command that runs children one after the other, or several at once. */
export function endingBySignals(call: Pick<Call, "terminal" | "redirectSignals" | "signal">): EndingCall {
  const stop = new AbortController();
  const listeners = new Set<(name: NodeJS.Signals) => void>();
  let stopRedirecting = (): void => {};
  const signal = AbortSignal.any([call.signal, stop.signal]);
  return {
    terminal: call.terminal,
    signal,
    redirectSignals: (listener) => {
      if (listeners.size === 0) {
        stopRedirecting = call.redirectSignals((name) => {
          if (ending.has(name)) stop.abort(new Interruption(name));
          for (const one of listeners) one(name);
        });
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) stopRedirecting();
      };
    },
    exitCode: () => (signal.aborted ? exitCodeOfAbort(signal) : undefined),
  };
}

/** Runs a command until `watch` has seen its end. Rejects with a CommandError (126, 127) if it cannot be started. */
export async function runChild<T>(
  { terminal, redirectSignals, signal }: Pick<Call, "terminal" | "redirectSignals" | "signal">,
  {
    commandLine,
    env,
    fd,
    isPiped,
  }: {
    readonly commandLine: readonly string[];
    readonly env: NodeJS.ProcessEnv;
    readonly fd?: number | undefined;
    readonly isPiped?: boolean;
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
      ...(isPiped === undefined ? {} : { isPiped }),
      onUnguarded: () =>
        terminal.say("leasehold: there is no /bin/sh: if this process is killed, the child goes on"),
    });
    for (const name of early) child.passOn(name);
    return await watch(child);
  } finally {
    stopPassing();
  }
}
