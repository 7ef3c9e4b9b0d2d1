// Flags: their names, their meaning, and the conversion of their text to a value. node:util does the parsing.

import { type ParseArgsConfig, parseArgs } from "node:util";
import { parsedJson } from "@leasehold/client/internal";
import { UsageError } from "./exit-codes.ts";
import { parseDuration } from "./terminal/text.ts";

export interface Flag<T> {
  readonly short?: string;
  /** The name of its value in the help; absent for a flag without a value. */
  readonly placeholder?: string;
  /** A line for the help. */
  readonly help: string;
  /** The environment variable that replaces an absent flag. */
  readonly variable?: string;
  readonly multiple: boolean;
  /** The value of an absent flag. */
  readonly fallback: T;
  /** Converts its text to a value; throws a UsageError that names the flag. */
  readonly parse: (text: string, name: string) => unknown;
}

export type Flags = Readonly<Record<string, Flag<unknown>>>;

export type Values<F extends Flags> = {
  readonly [Name in keyof F]: F[Name] extends Flag<infer T> ? T : never;
};

/** Further properties of a flag; a placeholder in place of the usual one. */
type Extra = Pick<Partial<Flag<unknown>>, "short" | "variable" | "placeholder">;

type Parse<T> = (text: string, name: string) => T;

function valued<T>(
  placeholder: string,
  help: string,
  extra: Extra | undefined,
  parse: Parse<T>,
): Flag<T | undefined> {
  return { placeholder, help, parse, multiple: false, fallback: undefined, ...extra };
}

/** A flag whose value, any text except an empty one, is read by a function of its own. */
export function custom<T>(placeholder: string, help: string, parse: Parse<T>): Flag<T | undefined> {
  return valued(placeholder, help, undefined, (value, name) => parse(notEmpty(value, name), name));
}

/** The same flag, with a value for where it is absent. Its help says it, too. */
export function usually<T>(flag: Flag<T | undefined>, fallback: T): Flag<T> {
  return { ...flag, fallback };
}

/** A flag without a value. */
export function yes(help: string, extra: Extra = {}): Flag<boolean> {
  return { help, multiple: false, fallback: false, parse: isTrue, ...extra };
}

function isTrue(text: string, name: string): boolean {
  if (["1", "true", "yes"].includes(text)) return true;
  if (["", "0", "false", "no"].includes(text)) return false;
  throw new UsageError(`${name} is "${text}"; allowed: 1 or 0`);
}

/** A flag whose value is any text except an empty one. */
export function text(placeholder: string, help: string, extra?: Extra): Flag<string | undefined> {
  return valued(placeholder, help, extra, notEmpty);
}

function notEmpty(value: string, name: string): string {
  if (value === "") throw new UsageError(`${name} is empty; leave it out, or give it a value`);
  return value;
}

/** The same flag, which may be given several times. */
export function several<T>(flag: Flag<T | undefined>): Flag<readonly T[]> {
  return { ...flag, multiple: true, fallback: [] };
}

/** A flag whose value is a duration with its unit; in milliseconds. */
export function duration(help: string, extra?: Extra): Flag<number | undefined> {
  return valued("DUR", help, extra, (value, name) => {
    const parsed = parseDuration(value);
    if (typeof parsed === "number") return parsed;
    throw new UsageError(`${name} is "${value}"; ${parsed.advice}`);
  });
}

/** A flag whose value is a whole number. */
export function whole(
  help: string,
  { least = 0, most = Number.MAX_SAFE_INTEGER } = {},
  extra?: Extra,
): Flag<number | undefined> {
  return valued("N", help, extra, (value, name) => {
    const number = Number(value);
    if (/^-?\d+$/.test(value) && number >= least && number <= most) return number;
    throw new UsageError(`${name} is "${value}"; allowed: a whole number from ${least} to ${most}`);
  });
}

/** A flag whose value is one of a few words. */
export function choice<const W extends string>(
  words: readonly W[],
  help: string,
  extra?: Extra,
): Flag<W | undefined> {
  return valued(words.join("|"), help, extra, (value, name) => {
    const word = words.find((one) => one === value);
    if (word === undefined) throw new UsageError(`${name} is "${value}"; allowed: ${words.join(", ")}`);
    return word;
  });
}

/** A flag whose value is a JSON document. */
export function json(help: string, extra?: Extra): Flag<unknown> {
  return valued("JSON", help, extra, (value, name): unknown => {
    const parsed = parsedJson(value);
    if (parsed === undefined) throw new UsageError(`${name} is no JSON: ${value}`);
    return parsed.value;
  });
}

export const globalFlags = {
  table: text("NAME|ARN", "the lease table", { short: "t", variable: "LEASEHOLD_TABLE_NAME" }),
  region: text("R", "AWS region; AWS_REGION and AWS_DEFAULT_REGION count too"),
  profile: text("P", "profile of the AWS configuration; AWS_PROFILE counts too"),
  endpoint: text("URL", "where DynamoDB is; AWS_ENDPOINT_URL_DYNAMODB and DYNAMODB_ENDPOINT count too"),
  owner: text("TEXT", "who you are, for others to read", { variable: "LEASEHOLD_OWNER" }),
  skew: duration("how far the clocks of the service's hosts may differ (default 1s)"),
  output: choice(["table", "wide", "json", "ndjson", "tsv", "key"], "format of what is printed", {
    short: "o",
    variable: "LEASEHOLD_OUTPUT",
  }),
  null: yes("with --output key: keys as they are, each with a zero byte behind it, for xargs -0", {
    short: "0",
  }),
  json: yes("short for --output json"),
  ndjson: yes("short for --output ndjson"),
  "read-only": yes("refuse every command that writes", { variable: "LEASEHOLD_READ_ONLY" }),
  yes: yes("do not ask", { short: "y" }),
  "dry-run": yes("print the first write, and do not send it"),
  quiet: yes("say nothing on stderr but errors", { short: "q" }),
  verbose: yes("say what was sent", { short: "v" }),
  color: choice(["auto", "always", "never"], "colours (default auto); NO_COLOR and FORCE_COLOR count too"),
  "no-color": yes("short for --color never"),
  utc: yes("absolute times, in UTC"),
  local: yes("absolute times, in the local time zone"),
  timeout: duration("of each request (default 5s)"),
  help: yes("what the command does", { short: "h" }),
} satisfies Flags;

export type GlobalValues = Values<typeof globalFlags>;

/** These options without those that are undefined: an option that is left out has to be absent. */
export function defined<T extends object>(options: T): { readonly [Name in keyof T]?: NonNullable<T[Name]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}

type ParsedText = string | boolean | (string | boolean)[] | undefined;

/** The flags in the form that node:util needs. */
function parseOptions(flags: Flags): NonNullable<ParseArgsConfig["options"]> {
  return Object.fromEntries(
    Object.entries(flags).map(([name, { short, placeholder, multiple }]) => [
      name,
      { type: placeholder === undefined ? "boolean" : "string", multiple, ...defined({ short }) },
    ]),
  );
}

/** Reads arguments without any refusal: unknown flags and missing values too. */
export function readLoosely(args: readonly string[], flags: Flags) {
  const options = parseOptions(flags);
  return parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
}

/** Parses the arguments after a command's name. Throws a UsageError. */
export function parseFlags<F extends Flags>(
  args: readonly string[],
  flags: F,
  env: NodeJS.ProcessEnv,
): { readonly values: Values<F>; readonly operands: readonly string[] } {
  const { values, positionals } = parsed(args, flags);
  const read = Object.entries(flags).map(([name, flag]): [string, unknown] => {
    const variable = flag.variable === undefined ? undefined : env[flag.variable];
    const given = values[name] as ParsedText;
    if (Array.isArray(given)) return [name, given.map((one) => flag.parse(String(one), `--${name}`))];
    if (typeof given === "string") return [name, flag.parse(given, `--${name}`)];
    if (given !== undefined) return [name, given];
    return [name, variable ? flag.parse(variable, flag.variable ?? "") : flag.fallback];
  });
  return { values: Object.fromEntries(read) as Values<F>, operands: positionals };
}

function parsed(args: readonly string[], flags: Flags) {
  try {
    return parseArgs({ args: [...args], options: parseOptions(flags), allowPositionals: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith("ERR_PARSE_ARGS")) throw error;
    const unknown = /Unknown option '(-[^']*)'/.exec(message)?.[1];
    if (unknown === undefined) throw new UsageError(message.split(". ")[0] ?? message);
    const known = Object.keys(flags).map((name) => `--${name}`);
    throw new UsageError(
      `${unknown} is no flag of this command${nearest(unknown, known)}; --help shows them`,
    );
  }
}

/** ": did you mean …?" if a known word is close to the given one. */
export function nearest(word: string, known: readonly string[]): string {
  const close = known
    .map((one) => [distance(word, one), one] as const)
    .filter(([letters]) => letters <= Math.max(1, word.length / 3))
    .sort(([a], [b]) => a - b)[0];
  return close === undefined ? "" : `: did you mean ${close[1]}?`;
}

/** How many letters have to be changed, added or removed. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [index, otherLetter] of [...other].entries()) {
      const replaced = (row[index] ?? 0) + (letter === otherLetter ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
