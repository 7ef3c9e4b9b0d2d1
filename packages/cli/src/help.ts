// What `leasehold --help` and `leasehold COMMAND --help` print.

import type { Command } from "./command.ts";
import { type CommandEntry, commands, groups } from "./commands/index.ts";
import { type Flags, globalFlags } from "./flags.ts";

/** The list of commands, and the flags of all of them. */
export function overview(): string[] {
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

/** The help of one command. */
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
