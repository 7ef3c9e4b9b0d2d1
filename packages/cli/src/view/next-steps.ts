// The possible actions on a key, each with a command line to copy into a shell: a key stays one argument, whatever it
// contains. The console's buttons show the same actions.

import type { DescribedLease, KeyDetails, NotPaused, PauseLeaves } from "@leasehold/client/admin";
import { lockLike, primitiveOf, primitivesOf } from "./key-rows.ts";

/** Quotes an argument for a POSIX shell, so that neither the shell nor the terminal interprets it. */
export function quoted(argument: string): string {
  if (/^[\w@%+=:,./-]+$/.test(argument)) return argument;
  if (!/[\p{C}\u2028\u2029]/u.test(argument)) return `'${argument.replaceAll("'", `'\\''`)}'`;
  const escaped = argument.replace(/[\\']|[\p{C}\u2028\u2029]/gu, (character) =>
    character === "\\" || character === "'" ? `\\${character}` : bytesOf(character),
  );
  return `$'${escaped}'`;
}

/** Bytes in octal: bash, zsh and ksh support them in `$'…'`. */
function bytesOf(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/** `leasehold stop 'my key' --token 1620e1bd`. A key that begins like a flag comes after `--`. */
export function commandLine(
  name: string,
  operands: readonly string[],
  flags: readonly string[] = [],
): string {
  const own = operands.map(quoted);
  const others = flags.map((flag) => (flag.startsWith("--") ? flag : quoted(flag)));
  const words = operands.some((operand) => operand.startsWith("-"))
    ? [...others, "--", ...own]
    : [...own, ...others];
  return ["leasehold", name, ...words].join(" ");
}

/** The shortest prefix of a token. */
export const shortestPrefix = 8;

/** The shortest prefix of a token, of at least 8 characters, that no other of the tokens has. */
export function tokenPrefix(token: string, tokens: readonly string[]): string {
  const others = tokens.filter((other) => other !== token);
  let length = shortestPrefix;
  while (length < token.length && others.some((other) => other.startsWith(token.slice(0, length))))
    length += 1;
  return token.slice(0, length);
}

export interface NextStep {
  readonly action: "stop" | "break" | "pause" | "resume" | "wait" | "runs" | "tasks";
  /** Its effect, in a few words. */
  readonly what: string;
  readonly command: string;
  readonly caution?: string;
}

function step(action: NextStep["action"], what: string, command: string, caution?: string): NextStep {
  return { action, what, command, ...(caution === undefined ? {} : { caution }) };
}

/** The possible actions on a key, the mildest first. */
export function nextSteps(details: KeyDetails): readonly NextStep[] {
  const { key, leases } = details;
  const used = primitivesOf(details);
  // With many holders, one example is enough.
  const lock = leases.find(({ sortKey }) => !["job", "tasks", "cache"].includes(primitiveOf(sortKey)));
  const steps = lock === undefined ? [] : [...stepsAbout(lock, leases)];
  if (steps.length === 0 && (used.length === 0 || used.some((one) => lockLike.includes(one)))) {
    steps.push(
      step("pause", "keep it closed", commandLine("pause", [key], ["--for", "2h", "--reason", "…"])),
    );
  }
  if (used.includes("job")) steps.push(step("runs", "look at its runs", commandLine("jobs runs", [key])));
  if (used.includes("tasks")) steps.push(step("tasks", "look at its tasks", commandLine("tasks", [key])));
  return steps;
}

function stepsAbout(
  { key, state, token }: DescribedLease,
  leases: readonly DescribedLease[],
): readonly NextStep[] {
  const prefix = tokenPrefix(
    token,
    leases.map((one) => one.token),
  );
  const line = (name: string): string => commandLine(name, [key], ["--token", prefix]);
  const wait = step("wait", "wait until it is free", commandLine("wait", [key]));
  const mayWork = "it may still be working: docs/RUNBOOK.md#a-lock-is-stuck";
  switch (state) {
    case "held":
    case "stopping":
    case "grace": {
      const breaking = step("break", "break it", line("break"), mayWork);
      return state === "held"
        ? [step("stop", "ask it to stop", line("stop")), breaking, wait]
        : [breaking, wait];
    }
    case "paused":
      return [step("resume", "end the pause", commandLine("resume", [key])), wait];
    case "cooldown":
      return [wait, step("break", "open it now", line("break"))];
    case "expired": {
      const caution = "no need: the next caller takes it over";
      return [step("break", "remove the record of it", `${line("break")} --force`, caution)];
    }
    default:
      return [];
  }
}

const goesOn: Readonly<Record<NotPaused, string>> = {
  runs: "its job runs (leasehold jobs skip keeps a slot from running)",
  tasks: "its tasks (leasehold tasks drop takes one away)",
  computations: "its computations of a single flight",
};

/** What a pause does not close, a line for each kind. */
export function leftLines(
  key: string,
  { finishing, notPaused }: PauseLeaves = { finishing: [], notPaused: [] },
): string[] {
  const holders = finishing.map(({ owner, seat }) => `${owner} (${seat?.kind})`).join(", ");
  return [
    ...(finishing.length > 0 ? [`still there, until they end: ${holders}`] : []),
    ...(notPaused.length > 0
      ? [`not paused under ${key}: ${notPaused.map((one) => goesOn[one]).join("; ")}`]
      : []),
  ];
}
