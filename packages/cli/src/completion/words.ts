// The words of completion: the commands and their flags, from the registry itself.

import { type CommandEntry, commands } from "../commands/index.ts";
import { type Flags, globalFlags } from "../flags.ts";

/** A flag, and the possible words of its value. */
export interface FlagWords {
  readonly name: string;
  readonly short: string | undefined;
  readonly takesValue: boolean;
  readonly values: readonly string[];
  readonly help: string;
}

/** A command, and its own flags. */
export interface CommandWords {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly FlagWords[];
}

/** All words of completion. */
export interface Words {
  readonly commands: readonly CommandWords[];
  readonly globalFlags: readonly FlagWords[];
}

/** Loads every command, and returns its words. */
export async function completionWords(): Promise<Words> {
  const listed = await Promise.all(
    Object.entries(commands).map(async ([name, entry]: [string, CommandEntry]) => {
      const { flags } = await entry.load();
      return { name, summary: entry.summary, flags: flagWords(flags) };
    }),
  );
  return { commands: listed, globalFlags: flagWords(globalFlags) };
}

function flagWords(flags: Flags): FlagWords[] {
  return Object.entries(flags).map(([name, { short, placeholder, help }]) => ({
    name,
    short,
    takesValue: placeholder !== undefined,
    // A choice has lower-case words; other placeholders are upper-case.
    values: /^[a-z0-9-]+(\|[a-z0-9-]+)+$/.test(placeholder ?? "") ? (placeholder ?? "").split("|") : [],
    help,
  }));
}

/** The second words of commands after a first word: for `table`, create, show and so on. */
export function secondWords({ commands: all }: Words, first: string): string[] {
  return all
    .filter(({ name }) => name.startsWith(`${first} `))
    .map(({ name }) => name.slice(first.length + 1));
}

/** The first words of all commands. */
export function firstWords({ commands: all }: Words): string[] {
  return [...new Set(all.map(({ name }) => name.split(" ")[0] ?? ""))];
}
