// One call of the command line, from its arguments to its exit code. It gets its whole environment as arguments.

import { hostname, userInfo } from "node:os";
import type { Clock, LeaseError } from "@leasehold/client";
import { systemClock } from "@leasehold/client/internal";
import { type Call, type Command, type CommandEntry, entryOf, operandsIn } from "./command.ts";
import { commands } from "./commands/index.ts";
import {
  type Connection,
  connect,
  DryRunEnd,
  type OpenStore,
  openStore,
  unlessInterrupted,
} from "./connection.ts";
import {
  CommandError,
  exitCodeOf,
  exitCodeOfAbort,
  exitCodes,
  messageOf,
  type SignalSource,
  UsageError,
} from "./exit-codes.ts";
import { type GlobalValues, globalFlags, parseFlags, readLoosely } from "./flags.ts";
import { ownCommand } from "./table/place.ts";
import { Printer } from "./terminal/printer.ts";
import { Terminal, type TerminalParts } from "./terminal/terminal.ts";
import { jsonText, shown } from "./terminal/text.ts";

/** The environment of a call. */
export interface Surroundings extends TerminalParts {
  readonly clock?: Clock;
  readonly open?: OpenStore;
  readonly signals: SignalSource;
}

/** Runs one command line, and resolves to its exit code. Never rejects. */
export async function runCommandLine(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { env, signals } = surroundings;
  const { signal } = signals;
  const terminal = new Terminal(surroundings);
  let connection: Promise<Connection> | undefined;
  let opened: Connection | undefined;
  let isVerbose = false;
  const run = async (): Promise<number> => {
    const end = args.indexOf("--");
    const before = end < 0 ? args : args.slice(0, end);
    const behind = end < 0 ? undefined : args.slice(end + 1);
    const found = commandIn(before);
    if (found === undefined) {
      const { values } = parseFlags(before, globalFlags, env);
      const { overview } = await import("./commands/help.ts");
      for (const line of overview(commands)) values.help ? terminal.print(line) : terminal.complain(line);
      return values.help ? exitCodes.done : exitCodes.usage;
    }
    const { name, entry, rest } = found;
    const command = await entry.load();
    const { values, operands: named } = parseFlags(rest, { ...globalFlags, ...command.flags }, env);
    // After `--` comes a child's command line, or an operand that begins like a flag.
    const takesChild = (command.child ?? "none") !== "none";
    const operands = takesChild ? named : [...named, ...(behind ?? [])];
    const child = takesChild ? behind : undefined;
    const global = values as GlobalValues;
    isVerbose = global.verbose;
    terminal.configure({
      color: global["no-color"] ? "never" : (global.color ?? "auto"),
      quiet: global.quiet,
    });
    if (global.help) {
      const { helpOf } = await import("./commands/help.ts");
      for (const line of helpOf(name, entry, command)) terminal.print(line);
      return exitCodes.done;
    }
    checkUsage(name, command, operands, child);
    if (command.writes && global["read-only"]) {
      throw new CommandError(`${name} writes, and --read-only (LEASEHOLD_READ_ONLY) is on`, exitCodes.denied);
    }
    const format = global.json
      ? "json"
      : global.ndjson
        ? "ndjson"
        : (global.output ?? (global.null ? "key" : "table"));
    if (global.null && format !== "key")
      throw new UsageError(`-0 goes with --output key, and not with ${format}`);
    if (global.null && terminal.isLive) {
      throw new UsageError(
        "-0 gives keys as they are, which a terminal may act on: send it to a file or to a pipe",
      );
    }
    const { clock = systemClock, open = openStore } = surroundings;
    // `ls --owner` selects the owner to look for.
    const by = (command.flags.owner === undefined ? global.owner : env.LEASEHOLD_OWNER) || whoIs(env);
    const printDryRun = global["dry-run"]
      ? (request: object) => terminal.print(jsonText(request, 2))
      : undefined;
    const call: Call = {
      commands,
      flags: values,
      global,
      child,
      env,
      clock,
      terminal,
      printer: new Printer(terminal, format, global.null),
      signal,
      redirectSignals: (listener) => signals.redirect(listener),
      by,
      connect: (other) => {
        // `wait --timeout` limits the wait.
        const timeout = command.flags.timeout === undefined ? global.timeout : undefined;
        const terms = { env, clock, signal, open, by, printDryRun };
        connection ??= connect({ ...global, timeout, ...other }, terms).then((made) => {
          opened = made;
          return made;
        });
        return unlessInterrupted(connection, terms);
      },
    };
    return await command.run(call, ...operands);
  };
  try {
    const code = await run();
    await terminal.flush();
    if (terminal.failure === undefined) return code;
    throw new CommandError(`stdout cannot be written: ${terminal.failure.message}`, exitCodes.file);
  } catch (error) {
    return report(error, terminal, surroundings, isVerbose);
  } finally {
    if (opened !== undefined) {
      await opened.close().catch((error: unknown) => terminal.complain(shownLines(messageOf(error))));
      if (isVerbose) terminal.say(`${opened.requests}`);
    }
  }
}

/**
 * Finds the command's name, of one word or two, wherever the flags are. Without a name, --version and -V ask for that
 * command. Throws a UsageError for an unknown name.
 */
function commandIn(
  args: readonly string[],
): { readonly name: string; readonly entry: CommandEntry; readonly rest: readonly string[] } | undefined {
  const { tokens } = readLoosely(args, globalFlags);
  const [first, second] = tokens.filter(({ kind }) => kind === "positional");
  if (first?.kind !== "positional") {
    const asked = tokens.find((token) => token.kind === "option" && /^(--version|-V)$/.test(token.rawName));
    return asked && commandIn(["version", ...args.filter((_, index) => index !== asked.index)]);
  }
  const isPair = second?.kind === "positional" && `${first.value} ${second.value}` in commands;
  const name = isPair ? `${first.value} ${second.value}` : first.value;
  const further = Object.keys(commands).filter((one) => one.startsWith(`${name} `));
  if (!Object.hasOwn(commands, name) && further.length > 0) {
    throw new UsageError(`${name} needs a second word: ${further.join(", ")}`);
  }
  const entry = entryOf(commands, name);
  const taken = new Set([first.index, ...(isPair ? [second.index] : [])]);
  return { name, entry, rest: args.filter((_, index) => !taken.has(index)) };
}

function checkUsage(
  name: string,
  { operands: allowed, child: takesChild = "none", usage }: Command,
  operands: readonly string[],
  child: readonly string[] | undefined,
): void {
  const [least, most] = allowed ?? operandsIn(usage);
  const advice = `usage: leasehold ${usage}; leasehold ${name} --help tells more`;
  if (operands.length < least) throw new UsageError(`something is missing; ${advice}`);
  if (operands.length > most)
    throw new UsageError(`"${shown(operands[most] ?? "")}" is one too many; ${advice}`);
  if (takesChild === "required" && !child?.length)
    throw new UsageError(`no command stands behind --; ${advice}`);
}

/** Reports an error. A fault of this program shows its stack. */
function report(
  error: unknown,
  terminal: Terminal,
  { env, signals: { signal } }: Surroundings,
  isVerbose: boolean,
): number {
  if (error instanceof DryRunEnd) return exitCodes.done;
  if (signal.aborted && isOf(error, signal.reason)) return exitCodeOfAbort(signal);
  const code = exitCodeOf(error);
  terminal.complain(`leasehold: ${shownLines(messageOf(error))}`);
  const { code: name, docs } = Object(error) as Partial<LeaseError>;
  if (docs !== undefined) terminal.say(`${ownCommand(env)} help errors ${name} says what to do`);
  if (code === exitCodes.fault || isVerbose) terminal.complain(shownLines((error as Error)?.stack ?? ""));
  return code;
}

/** Whether a signal has led to an error. An older AWS SDK does not say whose signal has ended its request. */
function isOf(error: unknown, reason: unknown): boolean {
  if (error === reason) return true;
  return error instanceof Error && (error.name === "AbortError" || isOf(error.cause, reason));
}

function shownLines(text: string): string {
  return text.split("\n").map(shown).join("\n");
}

/** `alice@laptop (cli)`: the user and the host. */
function whoIs(env: NodeJS.ProcessEnv): string {
  return `${env.USER || env.LOGNAME || userName()}@${hostname()} (cli)`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // Ignored: containers may run as a user without a name.
    return "somebody";
  }
}
