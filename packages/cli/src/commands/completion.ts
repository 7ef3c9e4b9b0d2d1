// Completion for shells. A script asks this program for the words that may stand at the cursor: commands, flags, their
// values, and keys, jobs and sets of the table.
//
// Keys come from other processes, and may be written to harm: no shell may read one as anything but a word. So bash gets
// them by `printf %q`, and never by `compgen -W`, which expands its words; zsh and fish quote what they insert.

import { LeaseAdmin } from "@leasehold/client/admin";
import { coreOf, everyItem, scan } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { registeredJobs } from "@leasehold/jobs";
import { type Call, type Commands, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { defined, type Flag, type Flags, type GlobalValues, globalFlags, readLoosely } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import { primitiveOf } from "../view/key-rows.ts";

const bash = `# Completion of leasehold for bash. To use it: source <(leasehold completion bash)
_leasehold() {
  local line=$COMP_LINE rest word current bare head= words=()
  COMPREPLY=()
  # Bash splits at colons and equal signs: what stands together is one word.
  for word in "\${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    rest=\${line#"\${line%%[![:blank:]]*}"}
    if [ "\${#words[@]}" -gt 0 ] && [ "$rest" = "$line" ]; then words[\${#words[@]}-1]+=$word; else words+=("$word"); fi
    line=\${rest#"$word"}
  done
  current=\${words[\${#words[@]}-1]}
  [ "$current" = "\${COMP_WORDS[COMP_CWORD]}" ] || head=\${current%"\${current##*[:=]}"}
  bare=\${current#[\\"\\']}
  while IFS=$'\\t' read -r word _; do
    # Behind an opening quote, only what means itself there.
    case $current in
    \\'*) case $word in *\\'*) continue ;; esac ;;
    \\"*) case $word in *[\\"\\$\\\`\\\\\\!]*) continue ;; esac ;;
    *) word=$(printf %q "$word") ;;
    esac
    COMPREPLY+=("\${word#"$head"}")
  done < <(leasehold completion words -- "\${words[@]:1:\${#words[@]}-2}" "\${bare//\\\\/}" 2>/dev/null)
}
complete -o default -F _leasehold leasehold`;

const zsh = `#compdef leasehold
# Completion of leasehold for zsh. To use it: source <(leasehold completion zsh)
_leasehold() {
  local -a found
  found=("\${(@f)$(leasehold completion words -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  # Without the descriptions; an empty word goes.
  found=(\${found%%$'\\t'*})
  if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _leasehold leasehold`;

const fish = `# Completion of leasehold for fish. To use it: leasehold completion fish | source
complete -c leasehold -f -a '(leasehold completion words -- (commandline -opc)[2..-1] (commandline -ct | string unescape) 2>/dev/null)'`;

const scripts: ReadonlyMap<string, string> = new Map(Object.entries({ bash, zsh, fish }));

/** A person at the shell waits for it: a table that does not answer within this gives nothing. */
const longestLookMs = 900;
const requestMs = 700;
const mostNames = 100;

/** The words that may stand in place of the last one, which is unquoted: each with a description behind a tab. */
async function wordsFor(call: Call, typed: readonly string[]): Promise<readonly string[]> {
  const { commands } = call;
  const current = typed.at(-1) ?? "";
  const before = typed.slice(0, -1);
  // Behind it is another program's command line.
  if (before.includes("--")) return [];
  const [first = "", second = ""] = readLoosely(before, globalFlags).positionals;
  const name = [`${first} ${second}`, first].find((one) => Object.hasOwn(commands, one)) ?? "";
  const known = await commands[name]?.load();
  const flags: Flags = { ...globalFlags, ...known?.flags };
  const { positionals, tokens, values } = readLoosely(before, flags);
  const last = tokens.at(-1);
  const isOpen = last?.kind === "option" && last.value === undefined && last.index === before.length - 1;
  const open = isOpen ? flags[last.name] : undefined;
  if (open?.placeholder !== undefined) return beginningWith(current, choicesOf(open));
  if (current.startsWith("-")) {
    const all = Object.entries(flags).map(([flag, { help }]) => `--${flag}\t${help}`);
    return beginningWith(current, all);
  }
  const [, named] = /^[a-z ]+ \[?(KEY|JOB|SET)\b/.exec(known?.usage ?? "") ?? [];
  const isNamed = named !== undefined && positionals.join(" ") === name;
  const names = isNamed
    ? await namesFor(call, named as TableName, values as Partial<GlobalValues>, current)
    : [];
  return beginningWith(current, [...commandWords(commands, positionals), ...names]);
}

function beginningWith(current: string, words: readonly string[]): readonly string[] {
  return words.filter((word) => word.startsWith(current));
}

/** The possible words of a flag's value. A choice has lower-case words; other placeholders are upper-case. */
function choicesOf({ placeholder = "" }: Flag<unknown>): readonly string[] {
  return /^[a-z0-9-]+(\|[a-z0-9-]+)+$/.test(placeholder) ? placeholder.split("|") : [];
}

/** First words of commands; behind a first word, the second words. */
function commandWords(commands: Commands, typed: readonly string[]): readonly string[] {
  const all = Object.entries(commands);
  const [group, another] = typed;
  const behind = (first: string): readonly string[] =>
    all.flatMap(([name, { summary }]) =>
      name.startsWith(`${first} `) ? [`${name.slice(first.length + 1)}\t${summary}`] : [],
    );
  if (group !== undefined) return another === undefined ? behind(group) : [];
  const firsts = new Set(all.map(([name]) => name.split(" ")[0] ?? ""));
  return [...firsts].map((first) => {
    const seconds = behind(first).map((word) => word.split("\t")[0]);
    return `${first}\t${commands[first]?.summary ?? seconds.join(", ")}`;
  });
}

/** The names that a table knows, as the usage of commands calls them. */
type TableName = "KEY" | "JOB" | "SET";

/** The names of the table that the flags name; none without: to find the table by its tag takes many requests. */
async function namesFor(
  call: Call,
  what: TableName,
  { table = call.global.table, region, profile, endpoint }: Partial<GlobalValues>,
  prefix: string,
): Promise<readonly string[]> {
  if (table === undefined) return [];
  const place = defined({ table, region, profile, endpoint });
  const found = await namesIn[what](await call.connect({ ...place, timeout: requestMs }), prefix);
  // A name that a terminal may act on is not offered.
  const offered = found.filter((name) => name.startsWith(prefix) && shown(name) === name);
  return [...new Set(offered)].toSorted().slice(0, mostNames);
}

/** How names are found: by 1 request, which reads a megabyte at most. */
const namesIn: Readonly<Record<TableName, (connection: Connection, prefix: string) => Promise<string[]>>> = {
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
    const ofTasks = items.filter((item) => primitiveOf(String(item[sortKey])) === "tasks");
    return ofTasks.map((item) => String(item[partitionKey]));
  },
};

export const completion = command({
  usage: "completion bash|zsh|fish",
  details: `
Prints a script for a shell. With it, Tab completes commands, flags and their values, and keys, jobs and task sets of the
table that -t or LEASEHOLD_TABLE_NAME names: these take 1 request, which reads a megabyte at most, and no longer than 0.9 s.

  echo 'source <(leasehold completion bash)' >> ~/.bashrc
  echo 'source <(leasehold completion zsh)' >> ~/.zshrc        # behind compinit
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish`,
  writes: false,
  operands: [1, 10_000],
  flags: {},
  async run(call, shell, ...typed) {
    const { terminal, clock } = call;
    const script = scripts.get(shell);
    if (script !== undefined && typed.length === 0) {
      terminal.print(script);
      return exitCodes.done;
    }
    // The scripts call it.
    if (shell !== "words") {
      const allowed = [...scripts.keys()].join(", ");
      throw new UsageError(`"${shown([shell, ...typed].join(" "))}" has no completion; allowed: ${allowed}`);
    }
    // Also while credentials are looked for, which no request's limit ends.
    const stop = clock.schedule(() => process.exit(exitCodes.unavailable), longestLookMs);
    try {
      for (const word of await wordsFor(call, typed)) terminal.print(word);
    } finally {
      stop();
    }
    return exitCodes.done;
  },
});
