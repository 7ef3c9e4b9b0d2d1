// What the command line says of itself: its commands, their flags, its errors, its records and its version.

import { type Command, type CommandEntry, type Commands, command, entryOf } from "../command.ts";
import { texts } from "../error-texts.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { type Flags, globalFlags, nearest } from "../flags.ts";
import { jsonSchemaOf, type RecordKind, recordKinds, schemaName } from "../terminal/record-kinds.ts";
import { docsAddress, jsonText, shown } from "../terminal/text.ts";
import { version } from "../version.ts";

const groups: Readonly<Record<CommandEntry["group"], string>> = {
  look: "Look",
  work: "Work under a lease",
  intervene: "Intervene (WRITES)",
  jobs: "Jobs and tasks",
  table: "Table, health, money",
  more: "More",
};

/** The list of commands, and the flags of all of them. */
export function overview(commands: Commands): string[] {
  const width = Math.max(...Object.keys(commands).map(({ length }) => length));
  const listed = Object.entries(groups).flatMap(([group, title]) => {
    const own = Object.entries(commands).filter(([, entry]: [string, CommandEntry]) => entry.group === group);
    if (own.length === 0) return [];
    return ["", title, ...own.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)];
  });
  return [
    "leasehold: leases on DynamoDB, from a shell",
    "",
    "Usage: leasehold COMMAND [flags]",
    ...listed,
    "",
    "Flags of every command",
    ...flagLines(globalFlags),
    "",
    "leasehold COMMAND --help tells more of each. Exit codes: 0 done, 1 nothing there, 64 usage, 69 DynamoDB fails,",
    "75 held by another, 76 lost, 77 denied, 78 configuration, 80 slot done, else the child's own.",
  ];
}

export function helpOf(name: string, { summary }: CommandEntry, command: Command): string[] {
  const { usage, details, writes, flags } = command;
  // Skip flags that are already listed.
  const further = (there: string, mark: string): string =>
    there.includes(mark) ? there : `${there} ${mark}`;
  return [
    `leasehold ${name}: ${writes ? further(summary, "(WRITES)") : summary}`,
    "",
    `Usage: leasehold ${Object.keys(flags).length > 0 ? further(usage, "[flags]") : usage}`,
    ...(details === undefined ? [] : ["", ...details.trim().split("\n")]),
    ...(Object.keys(flags).length === 0 ? [] : ["", "Flags", ...flagLines(flags)]),
    "",
    "leasehold --help has the flags of every command.",
  ];
}

function flagLines(flags: Flags): string[] {
  const lines = Object.entries(flags).map(([name, { short, placeholder, help, variable }]) => {
    const spelled = `${short === undefined ? "    " : `-${short}, `}--${name}${placeholder === undefined ? "" : ` ${placeholder}`}`;
    return [spelled, variable === undefined ? help : `${help} [${variable}]`] as const;
  });
  const width = Math.min(34, Math.max(...lines.map(([spelled]) => spelled.length)));
  return lines.map(([spelled, help]) => `  ${spelled.padEnd(width)}  ${help}`);
}

export const help = command({
  usage: "help [COMMAND]",
  details: "The same as leasehold COMMAND --help. leasehold help errors CODE says what an error means.",
  writes: false,
  operands: [0, 2],
  flags: {},
  async run({ commands, terminal }, ...words) {
    const name = words.join(" ");
    const entry = name === "" ? undefined : entryOf(commands, name);
    const lines = entry === undefined ? overview(commands) : helpOf(name, entry, await entry.load());
    for (const line of lines) terminal.print(line);
    return exitCodes.done;
  },
});

export const helpErrors = command({
  usage: "help errors [CODE]",
  details: "Says what an error's code means, when it comes and what to do. Without a CODE it lists them.",
  writes: false,
  flags: {},
  async run({ printer, terminal }, given?: string) {
    const codes = Object.keys(texts);
    if (given === undefined) {
      if (printer.isForPeople) for (const code of codes) terminal.print(code);
      else terminal.print(jsonText(codes, 2));
      return exitCodes.done;
    }
    const code = given.toUpperCase();
    const text = Object.hasOwn(texts, code) ? texts[code] : undefined;
    if (text === undefined) {
      throw new UsageError(
        `${shown(given)} is no error code${nearest(code, codes)}; leasehold help errors lists them`,
      );
    }
    const address = docsAddress(`errors.md#${code.toLowerCase()}`);
    printer.document("error", { code, text, docs: address }, () => [
      code,
      "",
      ...text.split("\n"),
      "",
      `see ${address}`,
    ]);
    return exitCodes.done;
  },
});

export const schema = command({
  usage: "schema [KIND]",
  details: `
Prints the JSON Schema of what --json and --ndjson print. Each record says its kind and its version: "schema": "lock/1". A new
field makes no new version. Without KIND it lists the kinds.

  leasehold schema lock`,
  writes: false,
  flags: {},
  async run({ terminal }, given?: string) {
    const kinds = Object.keys(recordKinds) as RecordKind[];
    if (given === undefined) {
      for (const kind of kinds)
        terminal.print(`${schemaName(kind).padEnd(16)}${recordKinds[kind].description}`);
      return exitCodes.done;
    }
    const kind = kinds.find((one) => one === given || schemaName(one) === given);
    if (kind === undefined) {
      throw new UsageError(`${shown(given)} is no kind${nearest(given, kinds)}; leasehold schema lists them`);
    }
    terminal.print(jsonText(jsonSchemaOf(kind), 2));
    return exitCodes.done;
  },
});

export const versionCommand = command({
  usage: "version",
  writes: false,
  flags: {},
  async run({ printer }) {
    printer.document("version", { version, node: process.versions.node }, () => [version]);
    return exitCodes.done;
  },
});
