// What a command is, what it gets when it is called, and how it asks before it writes.

import type { Clock } from "@leasehold/client";
import type { Connection } from "./connection.ts";
import { CommandError, exitCodes, UsageError } from "./exit-codes.ts";
import { type Flags, type GlobalValues, nearest, type Values } from "./flags.ts";
import type { Printer } from "./terminal/printer.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { shown } from "./terminal/text.ts";

export interface Call<F extends Flags = Flags> {
  /** All commands, for the help and the completion. */
  readonly commands: Commands;
  readonly flags: Values<F>;
  readonly global: GlobalValues;
  /** The arguments after `--`; undefined without `--`. */
  readonly child: readonly string[] | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly terminal: Terminal;
  /** Prints records in the format that --output names. */
  readonly printer: Printer;
  /** Aborts when the user interrupts the command (SIGINT, SIGTERM, SIGHUP). */
  readonly signal: AbortSignal;
  /** Sends the process's signals to a listener instead of interrupting the command. The returned function ends that. */
  redirectSignals(listener: (name: NodeJS.Signals) => void): () => void;
  /** The user's name for others to read: `alice@laptop (cli)`. */
  readonly by: string;
  /**
   * Connects, once: as the flags say, except for the given values. Throws a CommandError (78) without a table. Until the
   * first write nothing has to be put in order, so this and all reads reject with the signal's reason at once.
   */
  connect(other?: Partial<GlobalValues>): Promise<Connection>;
}

export interface Command<F extends Flags = Flags> {
  /** How it is called, without `leasehold`: `ls [PREFIX]`. */
  readonly usage: string;
  /** Further text for its help: a longer description, and examples. */
  readonly details?: string;
  /** Whether it writes to the table: then the help says so, and --read-only refuses it. */
  readonly writes: boolean;
  /** The least and the most number of operands. @default - as many as the usage names */
  readonly operands?: readonly [least: number, most: number];
  /** Whether a command line may follow `--`. With "none", operands may follow it. @default "none" */
  readonly child?: "none" | "optional" | "required";
  readonly flags: F;
  /** Gets what stands on the command line besides flags, as the usage names it. Resolves to the exit code. */
  run(call: Call<F>, ...operands: string[]): Promise<number>;
}

/** A command that has not been loaded. */
export interface CommandEntry {
  /** A line for the list of commands. */
  readonly summary: string;
  readonly group: "look" | "work" | "intervene" | "jobs" | "table" | "more";
  readonly load: () => Promise<Command>;
}

/** Commands by their names, in the order in which they are listed. The names of some have two words. */
export type Commands = Readonly<Record<string, CommandEntry>>;

/** The least and the most number of operands by a usage: `ls [PREFIX]` names none or one. */
export function operandsIn(usage: string): readonly [least: number, most: number] {
  const [own = ""] = usage.split(/ [<(]| \[?--/);
  const named = own.split(" ").filter((word) => /^\[?[A-Z]+\]?$/.test(word));
  return [named.filter((word) => !word.startsWith("[")).length, named.length];
}

/** The entry of a command. Throws a UsageError for an unknown name. */
export function entryOf(commands: Commands, name: string): CommandEntry {
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry !== undefined) return entry;
  throw new UsageError(
    `${shown(name)} is no command${nearest(name, Object.keys(commands))}; leasehold --help lists them`,
  );
}

/** Gives a command the types of its own flags. */
export function command<const F extends Flags>(definition: Command<F>): Command<F> {
  return definition;
}

/** A question to a person. With a word, the answer is that word, which is less likely by mistake than yes. */
interface Question {
  readonly question: string;
  readonly word?: string;
}

/** Asks a person to agree to a write. */
export async function confirm({ terminal, signal }: Call, { question, word }: Question): Promise<boolean> {
  const answer = await terminal.ask(word === undefined ? `${question} [y/N] ` : `${question}: `, signal);
  // A character that cannot be typed is typed in the form in which it is shown.
  return word === undefined
    ? /^y(es)?$/i.test(answer)
    : answer === word.trim() || answer === shown(word).trim();
}

/**
 * Asks unless the user has agreed already, or nothing is sent. Throws a CommandError (1) for a no, and the signal's
 * reason after an interruption: what was to be agreed to must not begin then.
 */
export async function agreed(call: Call, question: Question): Promise<void> {
  const { global, signal } = call;
  signal.throwIfAborted();
  if (global.yes || global["dry-run"]) return;
  if (await confirm(call, question)) return;
  throw new CommandError("nothing done", exitCodes.nothing);
}
