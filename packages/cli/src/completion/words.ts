// What can be completed: the commands and their flags, from the registry itself.

import { type CommandEntry, commands } from "../commands/index.ts";
import { type Flags, globalFlags } from "../flags.ts";

/** A flag, and the words that its value may be. */
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

/** All that can be completed. */
export interface Words {
  readonly commands: readonly CommandWords[];
  readonly globalFlags: readonly FlagWords[];
}

/** Loads every command, and gives its words. */
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
    // Words of a choice are small; other placeholders are large.
    values: /^[a-z0-9-]+(\|[a-z0-9-]+)+$/.test(placeholder ?? "") ? (placeholder ?? "").split("|") : [],
    help,
  }));
}

/** The words of a command's name that follow another one: of `table`, create, show and so on. */
export function secondWords({ commands: all }: Words, first: string): string[] {
  return all
    .filter(({ name }) => name.startsWith(`${first} `))
    .map(({ name }) => name.slice(first.length + 1));
}

/** The first words of all commands. */
export function firstWords({ commands: all }: Words): string[] {
  return [...new Set(all.map(({ name }) => name.split(" ")[0] ?? ""))];
}
