// How a call of the command line ends: the exit codes, and the code of each error and each signal. Scripts rely on
// them: they never change.

import { constants } from "node:os";

/** Exit codes: those of sysexits(3) where they fit, else as flock(1) and timeout(1) have them. */
export const exitCodes = {
  done: 0,
  /** Nobody holds it; nothing was found. */
  nothing: 1,
  /** `doctor` or `conformance` has found something broken. */
  broken: 2,
  /** Unknown flag, bad value, confirmation impossible. */
  usage: 64,
  /** DynamoDB does not answer, throttles, fails or rejects a request, or something else answers in its place. */
  unavailable: 69,
  /** A fault of this program. */
  fault: 70,
  /** A file cannot be made, read or written. */
  file: 74,
  /** Held by another. */
  held: 75,
  /** The lease was lost, or the token is no longer the holder's. */
  lost: 76,
  /** Access denied, or --read-only. */
  denied: 77,
  /** No region, no credentials, no such table, not a lease table, or an item that is no lease. */
  configuration: 78,
  /** The slot is done. */
  slotDone: 80,
  /** The child has run for too long, as with timeout(1). */
  tooLong: 124,
  /** The child cannot be run. */
  cannotRun: 126,
  /** The child is not found. */
  notFound: 127,
  /** SIGINT has ended this command. */
  interrupted: 130,
} as const;

/** An error for the user: its message says what happened and what to do, and no stack trace is shown. */
export class CommandError extends Error {
  override readonly name = "CommandError";

  readonly exitCode: number;

  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The command line itself is wrong. Nothing was sent. */
export class UsageError extends CommandError {
  constructor(message: string) {
    super(message, exitCodes.usage);
  }
}

const codesOfErrors: Readonly<Record<string, number>> = {
  LEASE_UNAVAILABLE: exitCodes.held,
  LEASE_QUEUE_FULL: exitCodes.held,
  LEASE_LOST: exitCodes.lost,
  LEASE_TASK_LOST: exitCodes.lost,
  LEASE_ACCESS_DENIED: exitCodes.denied,
  LEASE_TABLE_NOT_FOUND: exitCodes.configuration,
  LEASE_TABLE_MISMATCH: exitCodes.configuration,
  LEASE_ITEM_UNREADABLE: exitCodes.configuration,
  LEASE_REGION_MISSING: exitCodes.configuration,
  LEASE_CREDENTIALS_MISSING: exitCodes.configuration,
  LEASE_RUNS_EXHAUSTED: exitCodes.nothing,
  LEASE_SLOT_NOT_DUE: exitCodes.usage,
  LEASE_SLOT_DONE: exitCodes.slotDone,
  LEASE_THROTTLED: exitCodes.unavailable,
  LEASE_CONFLICT: exitCodes.unavailable,
  LEASE_SERVICE_FAILED: exitCodes.unavailable,
  LEASE_NO_ANSWER: exitCodes.unavailable,
  LEASE_REQUEST_REJECTED: exitCodes.unavailable,
  LEASE_INVALID_OPTIONS: exitCodes.usage,
  INVALID_SCHEDULE: exitCodes.usage,
  LEASE_ABORTED: exitCodes.interrupted,
  ENGINE_START_FAILED: exitCodes.unavailable,
};

/** The code of an error, such as `LEASE_LOST`; a program can throw any value. */
export function codeOf(error: unknown): string | undefined {
  const { code } = Object(error) as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** The exit code of an error; another code for errors that a user can fix than for faults. */
export function exitCodeOf(error: unknown): number {
  return error instanceof CommandError
    ? error.exitCode
    : (codesOfErrors[codeOf(error) ?? ""] ?? exitCodes.fault);
}

/** The message of an error; a program can throw any value. The caller escapes it for the terminal. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether an error says that a package is not installed. A file that the package itself misses is another error. */
export function isMissingPackage(error: unknown, name: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return /^(ERR_)?MODULE_NOT_FOUND$/.test(code ?? "") && message.includes(`'${name}'`);
}

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
