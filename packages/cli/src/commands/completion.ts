// Completion scripts for shells. They contain every word, from the registry itself, so that completion starts no program.

import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { type Flags, globalFlags } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { type CommandEntry, commands } from "./index.ts";

/** A flag, and the possible words of its value. */
interface FlagWords {
  readonly name: string;
  readonly short: string | undefined;
  readonly takesValue: boolean;
  readonly values: readonly string[];
  readonly help: string;
}

/** A command, and its own flags. */
interface CommandWords {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly FlagWords[];
}

/** All words of completion. */
interface Words {
  readonly commands: readonly CommandWords[];
  readonly globalFlags: readonly FlagWords[];
}

/** Loads every command, and returns its words. */
async function completionWords(): Promise<Words> {
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
function secondWords({ commands: all }: Words, first: string): string[] {
  return all
    .filter(({ name }) => name.startsWith(`${first} `))
    .map(({ name }) => name.slice(first.length + 1));
}

/** The first words of all commands. */
function firstWords({ commands: all }: Words): string[] {
  return [...new Set(all.map(({ name }) => name.split(" ")[0] ?? ""))];
}

/** The shells that have a script. */
const completionShells = ["bash", "zsh", "fish"] as const;
type CompletionShell = (typeof completionShells)[number];

/** The script for a shell. */
function completionScript(shell: CompletionShell, words: Words): string {
  return shell === "fish" ? fish(words) : posix(shell, words);
}

function spelled({ name, short }: FlagWords): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

/** The common part of bash and zsh: a function that returns the words after the given words. */
function posix(shell: "bash" | "zsh", words: Words): string {
  const { commands, globalFlags } = words;
  const all = [...globalFlags, ...commands.flatMap(({ flags }) => flags)];
  const valued = [...new Set(all.filter(({ takesValue }) => takesValue).flatMap(spelled))];
  // The same name may have other words in another command; the first flag with words counts.
  const choices = new Map(all.filter(({ values }) => values.length > 0).map((flag) => [flag.name, flag]));
  const globals = globalFlags.flatMap(spelled);
  const cases = [...new Set([...firstWords(words), ...commands.map(({ name }) => name)])].map((name) => {
    const own = commands.find((one) => one.name === name)?.flags.flatMap(spelled) ?? [];
    return `    ${quoted(name)}) _leasehold_words=${quoted([...secondWords(words, name), ...own, ...globals].join(" "))} ;;`;
  });
  return `${shell === "zsh" ? "#compdef leasehold\n" : ""}# Completion of leasehold for ${shell}. To use it: ${shell === "zsh" ? "source <(leasehold completion zsh)" : "source <(leasehold completion bash)"}
# Gives, in _leasehold_words, what may follow the words that it is called with; nothing behind --.
_leasehold_lookup() {
  local command= previous= word skip=
  for word in "$@"; do
    previous=$word
    if [ -n "$skip" ]; then skip=; continue; fi
    case $word in
    --) _leasehold_words=; return 1 ;;
    ${valued.join("|")}) skip=1 ;;
    -*) ;;
    *)
      case "$command $word" in
      ${commands
        .filter(({ name }) => name.includes(" "))
        .map(({ name }) => quoted(name))
        .join("|")}) command="$command $word" ;;
      *) [ -n "$command" ] || command=$word ;;
      esac
      ;;
    esac
  done
  if [ -n "$skip" ]; then
    case $previous in
${[...choices.values()].map((flag) => `    ${spelled(flag).join("|")}) _leasehold_words=${quoted(flag.values.join(" "))} ;;`).join("\n")}
    *) _leasehold_words=; return 1 ;;
    esac
    return 0
  fi
  case $command in
    '') _leasehold_words=${quoted([...firstWords(words), ...globals].join(" "))} ;;
${cases.join("\n")}
    *) _leasehold_words= ;;
  esac
}
${shell === "bash" ? bashPart : zshPart}`;
}

const bashPart = `_leasehold() {
  COMPREPLY=()
  _leasehold_lookup "\${COMP_WORDS[@]:1:COMP_CWORD-1}" || return 0
  COMPREPLY=($(compgen -W "$_leasehold_words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _leasehold leasehold
`;

const zshPart = `_leasehold() {
  _leasehold_lookup "\${(@)words[2,CURRENT-1]}" || { _files; return }
  compadd -- \${=_leasehold_words}
}
compdef _leasehold leasehold
`;

function fish(words: Words): string {
  const { commands, globalFlags } = words;
  const firsts = firstWords(words);
  const summaryOf = (name: string): string =>
    commands.find((one) => one.name === name)?.summary ?? secondWords(words, name).join(", ");
  const lines = [
    "# Completion of leasehold for fish. To use it: leasehold completion fish | source",
    "complete -c leasehold -f",
    ...globalFlags.map((flag) => fishFlag(flag)),
    ...firsts.map(
      (name) =>
        `complete -c leasehold -n __fish_use_subcommand -a ${quoted(name)} -d ${quoted(summaryOf(name))}`,
    ),
    ...commands.flatMap((command) => fishCommand(command, words)),
  ];
  return `${lines.join("\n")}\n`;
}

function fishCommand({ name, summary, flags }: CommandWords, words: Words): string[] {
  const [first = "", second] = name.split(" ");
  const seen = `__fish_seen_subcommand_from ${first}`;
  const others = secondWords(words, first).join(" ");
  const condition = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`;
  const offered = `${seen}; and not __fish_seen_subcommand_from ${others}`;
  return [
    ...(second === undefined
      ? []
      : [`complete -c leasehold -n ${quoted(offered)} -a ${quoted(second)} -d ${quoted(summary)}`]),
    ...flags.map((flag) => fishFlag(flag, condition)),
  ];
}

function fishFlag(flag: FlagWords, condition?: string): string {
  const { name, short, takesValue, values, help } = flag;
  return [
    "complete -c leasehold",
    ...(condition === undefined ? [] : [`-n ${quoted(condition)}`]),
    `-l ${name}`,
    ...(short === undefined ? [] : [`-s ${short}`]),
    ...(takesValue ? [`-x${values.length > 0 ? ` -a ${quoted(values.join(" "))}` : ""}`] : []),
    `-d ${quoted(help)}`,
  ].join(" ");
}

/** A text in single quotes, as all three shells read it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export const completion = command({
  usage: "completion bash|zsh|fish",
  details: `
Prints a script that completes commands and flags in a shell.

  echo 'source <(leasehold completion bash)' >> ~/.bashrc
  echo 'source <(leasehold completion zsh)' >> ~/.zshrc        # behind compinit
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish`,
  writes: false,
  operands: [1, 1],
  flags: {},
  async run({ operands: [given = ""], terminal }) {
    const shell = completionShells.find((one) => one === given);
    if (shell === undefined) {
      throw new UsageError(`"${shown(given)}" has no completion; allowed: ${completionShells.join(", ")}`);
    }
    const script = completionScript(shell, await completionWords());
    for (const line of script.trimEnd().split("\n")) terminal.print(line);
    return exitCodes.done;
  },
});
