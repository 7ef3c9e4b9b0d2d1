// Completion scripts for shells. They contain every word, from the registry itself, so that completion starts no
// program.

import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { type Flag, type Flags, globalFlags } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { commands } from "./index.ts";

type NamedFlag = Flag<unknown> & { readonly name: string };

/** A command, and its own flags. */
interface Words {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly NamedFlag[];
}

const shells = ["bash", "zsh", "fish"] as const;
const globals = named(globalFlags);

function named(flags: Flags): readonly NamedFlag[] {
  return Object.entries(flags).map(([name, flag]) => ({ ...flag, name }));
}

/** The words of every command, which is loaded for that. */
async function allWords(): Promise<readonly Words[]> {
  return await Promise.all(
    Object.entries(commands).map(async ([name, { summary, load }]) => {
      const { flags } = await load();
      return { name, summary, flags: named(flags) };
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
  const pairs = words.filter(({ name }) => name.includes(" ")).map(({ name }) => quoted(name));
  const cases = [...new Set([...firstWords(words), ...words.map(({ name }) => name)])].map((name) => {
    const own = words.find((one) => one.name === name)?.flags.flatMap(spelled) ?? [];
    return `    ${quoted(name)}) _leasehold_words=${quoted([...secondWords(words, name), ...own, ...ofAll].join(" "))} ;;`;
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
    ${[...valued].join("|")}) skip=1 ;;
    -*) ;;
    *)
      case "$command $word" in
      ${pairs.join("|")}) command="$command $word" ;;
      *) [ -n "$command" ] || command=$word ;;
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
  case $command in
    '') _leasehold_words=${quoted([...firstWords(words), ...ofAll].join(" "))} ;;
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

function fish(words: readonly Words[]): string {
  const summaryOf = (name: string): string =>
    words.find((one) => one.name === name)?.summary ?? secondWords(words, name).join(", ");
  const lines = [
    "# Completion of leasehold for fish. To use it: leasehold completion fish | source",
    "complete -c leasehold -f",
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
