// The signals of the process: they interrupt the command, or go to the command's child.

import { constants } from "node:os";
import { CommandError, exitCodes } from "./exit-codes.ts";

/** The exit code after a signal, as in shells: 130 for SIGINT, 143 for SIGTERM. */
export function exitCodeOfSignal(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}

/** A signal has ended the command. */
export class Interruption extends CommandError {
  constructor(name: NodeJS.Signals) {
    super(`interrupted by ${name}`, exitCodeOfSignal(name));
  }
}

/** The exit code of a command that a signal has interrupted. */
export function exitCodeOfAbort({ reason }: AbortSignal): number {
  return reason instanceof Interruption ? reason.exitCode : exitCodes.interrupted;
}

/** The receiver of the process's signals. */
export interface SignalSource {
  /** Aborts with an {@link Interruption} at the first signal that nobody else takes. */
  readonly signal: AbortSignal;
  /**
   * Sends all signals to a listener from now on, instead of interrupting the command. The returned function ends that.
   */
  redirect(listener: (name: NodeJS.Signals) => void): () => void;
}

const interrupting: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
const passedOn: readonly NodeJS.Signals[] = [...interrupting, "SIGQUIT", "SIGUSR1", "SIGUSR2"];

/**
 * The signals of this process. The first one that interrupts the command lets it end in order; the second one ends the
 * process at once.
 */
export class ProcessSignals implements SignalSource {
  readonly #interruption = new AbortController();

  constructor() {
    for (const name of interrupting) process.once(name, this.#interrupt);
  }

  get signal(): AbortSignal {
    return this.#interruption.signal;
  }

  redirect(listener: (name: NodeJS.Signals) => void): () => void {
    for (const name of interrupting) process.off(name, this.#interrupt);
    // The system never sends a signal that it does not have.
    const names = passedOn.filter((name) => name in constants.signals);
    for (const name of names) process.on(name, listener);
    return () => {
      for (const name of names) process.off(name, listener);
      for (const name of interrupting) process.once(name, this.#interrupt);
    };
  }

  readonly #interrupt = (name: NodeJS.Signals): void => this.#interruption.abort(new Interruption(name));
}
