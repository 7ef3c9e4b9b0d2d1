// Completion scripts for shells. They contain every word, from the registry itself. Only for a key, a job or a set they
// start this program, which looks for a moment at the table.
//
// Keys come from other processes, and may be written to harm: no shell may read one as anything but a word. So bash gets
// them by `printf %q`, and never by `compgen -W`, which expands its words; zsh and fish quote what they insert.

import { parseArgs } from "node:util";
import { LeaseAdmin } from "@leasehold/client/admin";
import { coreOf, everyItem, scan } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { registeredJobs } from "@leasehold/jobs";
import { type Call, type Command, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { defined, type Flag, type Flags, type GlobalValues, globalFlags, parseOptions } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { commands } from "./index.ts";

type NamedFlag = Flag<unknown> & { readonly name: string };

/** A command, and its own flags. */
interface Words {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly NamedFlag[];
  /** What its first operand names; undefined for an operand that is not in the table. */
  readonly names: TableName | undefined;
}

/** The names that a table knows, as the usage of commands calls them. */
type TableName = "KEY" | "JOB" | "SET";

const shells = ["bash", "zsh", "fish"] as const;
const globals = named(globalFlags);

function named(flags: Flags): readonly NamedFlag[] {
  return Object.entries(flags).map(([name, flag]) => ({ ...flag, name }));
}

function namedBy({ usage }: Command): TableName | undefined {
  const [, names] = /^[a-z ]+ \[?(KEY|JOB|SET)\b/.exec(usage) ?? [];
  return names as TableName | undefined;
}

/** The words of every command, which is loaded for that. */
async function allWords(): Promise<readonly Words[]> {
  return await Promise.all(
    Object.entries(commands).map(async ([name, { summary, load }]) => {
      const loaded = await load();
      return { name, summary, flags: named(loaded.flags), names: namedBy(loaded) };
    }),
  );
}

/** The possible words of a flag's value. A choice has lower-case words; other placeholders are upper-case. */
function valuesOf({ placeholder = "" }: NamedFlag): string {
  return /^[a-z0-9-]+(\|[a-z0-9-]+)+$/.test(placeholder) ? placeholder.replaceAll("|", " ") : "";
}

function spelled({ name, short }: NamedFlag): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

/** The second words of commands after a first word: for `table`, create, show and so on. */
function secondWords(all: readonly Words[], first: string): string[] {
  return all.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));
}

function firstWords(all: readonly Words[]): string[] {
  return [...new Set(all.map(({ name }) => name.split(" ")[0] ?? ""))];
}

/** The common part of bash and zsh: a function that returns the words after the given words. */
function posix(shell: "bash" | "zsh", words: readonly Words[]): string {
  const flags = [...globals, ...words.flatMap((one) => one.flags)];
  const valued = new Set(flags.filter(({ placeholder }) => placeholder !== undefined).flatMap(spelled));
  // The same name may have other words in another command; the last flag with words counts.
  const choices = new Map(flags.filter((flag) => valuesOf(flag) !== "").map((flag) => [flag.name, flag]));
  const ofAll = globals.flatMap(spelled);
  const namers = words.filter(({ names }) => names !== undefined).map(({ name }) => quoted(name));
  const pairs = words.filter(({ name }) => name.includes(" ")).map(({ name }) => quoted(name));
  const cases = [...new Set([...firstWords(words), ...words.map(({ name }) => name)])].map((name) => {
    const own = words.find((one) => one.name === name)?.flags.flatMap(spelled) ?? [];
    return `    ${quoted(name)}) _leasehold_words=${quoted([...secondWords(words, name), ...own, ...ofAll].join(" "))} ;;`;
  });
  return `${shell === "zsh" ? "#compdef leasehold\n" : ""}# Completion of leasehold for ${shell}. To use it: ${shell === "zsh" ? "source <(leasehold completion zsh)" : "source <(leasehold completion bash)"}
# Gives, in _leasehold_words, what may follow the words that it is called with; nothing behind --. _leasehold_names is
# not empty where a name of the table may follow too.
_leasehold_lookup() {
  local command= previous= word skip= operands=
  _leasehold_names=
  for word in "$@"; do
    previous=$word
    if [ -n "$skip" ]; then skip=; continue; fi
    case $word in
    --) _leasehold_words=; return 1 ;;
    ${[...valued].join("|")}) skip=1 ;;
    -*) ;;
    *)
      case "$command $word" in
      ${pairs.join("|")}) command="$command $word" ;;
      *) if [ -n "$command" ]; then operands=1; else command=$word; fi ;;
      esac
      ;;
    esac
  done
  if [ -n "$skip" ]; then
    case $previous in
${[...choices.values()].map((flag) => `    ${spelled(flag).join("|")}) _leasehold_words=${quoted(valuesOf(flag))} ;;`).join("\n")}
    *) _leasehold_words=; return 1 ;;
    esac
    return 0
  fi
  [ -n "$operands" ] || case $command in
    ${namers.join("|")}) _leasehold_names=1 ;;
  esac
  case $command in
    '') _leasehold_words=${quoted([...firstWords(words), ...ofAll].join(" "))} ;;
${cases.join("\n")}
    *) _leasehold_words= ;;
  esac
}
${shell === "bash" ? bashPart : zshPart}`;
}

const bashPart = `_leasehold() {
  local line=$COMP_LINE rest word current name bare head= words=()
  COMPREPLY=()
  # Bash splits at colons and equal signs: what stands together is one word.
  for word in "\${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    rest=\${line#"\${line%%[![:blank:]]*}"}
    if [ "\${#words[@]}" -gt 0 ] && [ "$rest" = "$line" ]; then words[\${#words[@]}-1]+=$word; else words+=("$word"); fi
    line=\${rest#"$word"}
  done
  current=\${words[\${#words[@]}-1]}
  _leasehold_lookup "\${words[@]:1:\${#words[@]}-2}" || return 0
  case $current in -*) _leasehold_names= ;; esac
  # Flags beside names only where they are asked for.
  COMPREPLY=($(compgen -X "\${_leasehold_names:+-*}" -W "$_leasehold_words" -- "$current"))
  [ -n "$_leasehold_names" ] || return 0
  [ "$current" = "\${COMP_WORDS[COMP_CWORD]}" ] || head=\${current%"\${current##*[:=]}"}
  bare=\${current#[\\"\\']}
  while IFS= read -r name; do
    case $current in
    \\'*) case $name in *\\'*) continue ;; esac ;;
    \\"*) case $name in *[\\"\\$\\\`\\\\\\!]*) continue ;; esac ;;
    *) name=$(printf %q "$name") ;;
    esac
    COMPREPLY+=("\${name#"$head"}")
  done < <(leasehold completion names -- "\${words[@]:1:\${#words[@]}-2}" "\${bare//\\\\/}" 2>/dev/null)
}
complete -o default -F _leasehold leasehold
`;

const zshPart = `_leasehold() {
  _leasehold_lookup "\${(@)words[2,CURRENT-1]}" || { _files; return }
  local -a all=(\${=_leasehold_words}) names
  [[ -n $_leasehold_names && $PREFIX != -* ]] || { compadd -- $all; return }
  names=("\${(@f)$(leasehold completion names -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  compadd -- \${all:#-*} "\${(@)names:#}"
}
compdef _leasehold leasehold
`;

function fish(words: readonly Words[]): string {
  const summaryOf = (name: string): string =>
    words.find((one) => one.name === name)?.summary ?? secondWords(words, name).join(", ");
  const lines = [
    "# Completion of leasehold for fish. To use it: leasehold completion fish | source",
    "complete -c leasehold -f",
    "function __leasehold_names",
    "  leasehold completion names -- (commandline -opc)[2..-1] (commandline -ct | string unescape) 2>/dev/null",
    "end",
    ...firstWords(words).flatMap((name) => fishNames(name, words)),
    ...globals.map((flag) => fishFlag(flag)),
    ...firstWords(words).map(
      (name) =>
        `complete -c leasehold -n __fish_use_subcommand -a ${quoted(name)} -d ${quoted(summaryOf(name))}`,
    ),
    ...words.flatMap((command) => fishCommand(command, words)),
  ];
  return `${lines.join("\n")}\n`;
}

function fishCommand({ name, summary, flags }: Words, words: readonly Words[]): string[] {
  const [first = "", second] = name.split(" ");
  const seen = `__fish_seen_subcommand_from ${first}`;
  if (second === undefined) return flags.map((flag) => fishFlag(flag, seen));
  const offered = `${seen}; and not __fish_seen_subcommand_from ${secondWords(words, first).join(" ")}`;
  const condition = `${seen}; and __fish_seen_subcommand_from ${second}`;
  return [
    `complete -c leasehold -n ${quoted(offered)} -a ${quoted(second)} -d ${quoted(summary)}`,
    ...flags.map((flag) => fishFlag(flag, condition)),
  ];
}

/** What offers the names of the table behind a first word. The program knows where a name may stand. */
function fishNames(first: string, words: readonly Words[]): string[] {
  const all = words.filter(({ name }) => name.split(" ")[0] === first);
  if (all.every(({ names }) => names === undefined)) return [];
  return [`complete -c leasehold -n '__fish_seen_subcommand_from ${first}' -a '(__leasehold_names)'`];
}

function fishFlag(flag: NamedFlag, condition?: string): string {
  const { name, short, placeholder, help } = flag;
  const values = valuesOf(flag);
  return [
    "complete -c leasehold",
    ...(condition === undefined ? [] : [`-n ${quoted(condition)}`]),
    `-l ${name}`,
    ...(short === undefined ? [] : [`-s ${short}`]),
    ...(placeholder === undefined ? [] : [`-x${values === "" ? "" : ` -a ${quoted(values)}`}`]),
    `-d ${quoted(help)}`,
  ].join(" ");
}

/** A reader at the shell waits for it: a table that does not answer within this gives nothing. */
const longestLookMs = 900;
const requestMs = 700;
const mostNames = 100;

/** The names of the table that may stand at the last of these words, unquoted; none without a table that is named. */
async function namesFor(call: Call, words: readonly string[]): Promise<readonly string[]> {
  const prefix = words.at(-1) ?? "";
  const parse = (flags: Flags) =>
    parseArgs({
      args: words.slice(0, -1),
      options: parseOptions(flags),
      strict: false,
      allowPositionals: true,
    });
  const [first = "", second = ""] = parse(globalFlags).positionals;
  const name = [`${first} ${second}`, first].find((one) => Object.hasOwn(commands, one)) ?? "";
  const command = await commands[name]?.load();
  const what = command && namedBy(command);
  const { values, positionals } = parse({ ...globalFlags, ...command?.flags });
  const { table = call.global.table, region, profile, endpoint } = values as Partial<GlobalValues>;
  // Finding the table by its tag takes many requests.
  if (what === undefined || table === undefined || positionals.join(" ") !== name) return [];
  const connection = await call.connect({
    ...defined({ table, region, profile, endpoint }),
    timeout: requestMs,
  });
  const found = (await tableNames[what](connection, prefix)).filter((one) => one.startsWith(prefix));
  // A name that a terminal may act on is not offered.
  return [...new Set(found)]
    .filter((one) => shown(one) === one)
    .toSorted()
    .slice(0, mostNames);
}

/** How the names are found: 1 request each, which reads a megabyte at most. */
const tableNames: Readonly<Record<TableName, (connection: Connection, prefix: string) => Promise<string[]>>> =
  {
    async KEY({ client }, prefix) {
      for await (const { leases } of new LeaseAdmin(client).listPages({ prefix }))
        return leases.map(({ key }) => key);
      return [];
    },
    async JOB({ client }) {
      return (await registeredJobs(client)).map(({ job }) => job);
    },
    async SET({ client }) {
      const { items } = await scan(coreOf(client), everyItem());
      const { partitionKey, sortKey } = attributeNames;
      const isTask = (one: string): boolean => one.startsWith("task#") || one.startsWith("done#");
      return items.flatMap((item) => (isTask(String(item[sortKey])) ? [String(item[partitionKey])] : []));
    },
  };

/** A text in single quotes, as all three shells read it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export const completion = command({
  usage: "completion bash|zsh|fish | names -- WORD…",
  details: `
Prints a script that completes commands and flags in a shell, and keys, jobs and sets of the table that -t or
LEASEHOLD_TABLE_NAME names. For these it calls names, which reads a megabyte of the table at most, for less than a second.

  echo 'source <(leasehold completion bash)' >> ~/.bashrc
  echo 'source <(leasehold completion zsh)' >> ~/.zshrc        # behind compinit
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish`,
  writes: false,
  operands: [1, 1_000],
  flags: {},
  async run(call) {
    const {
      operands: [given = "", ...typed],
      terminal,
      clock,
    } = call;
    if (given === "names") {
      // Also while credentials are looked for, which no request's limit ends.
      const stop = clock.schedule(() => process.exit(exitCodes.unavailable), longestLookMs);
      try {
        for (const name of await namesFor(call, typed)) terminal.print(name);
      } finally {
        stop();
      }
      return exitCodes.done;
    }
    if (typed.length > 0) throw new UsageError("give one shell: bash, zsh or fish");
    const shell = shells.find((one) => one === given);
    if (shell === undefined) {
      throw new UsageError(`"${shown(given)}" has no completion; allowed: ${shells.join(", ")}`);
    }
    const words = await allWords();
    const script = shell === "fish" ? fish(words) : posix(shell, words);
    for (const line of script.trimEnd().split("\n")) terminal.print(line);
    return exitCodes.done;
  },
});
