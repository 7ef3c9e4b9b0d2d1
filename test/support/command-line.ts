import { PassThrough } from "node:stream";
import { runCommandLine } from "@leasehold/cli";
import { type Clock, type LeaseStore, systemClock } from "@leasehold/client";
import { wrongRecords } from "./json-records.ts";

/** What a call of the command line printed, and its exit code. */
export interface Called {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a call of the command line is made in a test. */
export interface CallOptions {
  readonly store?: LeaseStore;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  /** Lines that are typed; then stdin and stderr are terminals. */
  readonly answers?: readonly string[];
  /** All of stdin, which is no terminal then. */
  readonly input?: string;
  /** The width of stdout, which is a terminal then. */
  readonly columns?: number | undefined;
  /** @default - a pipe, or with `columns` a terminal */
  readonly stdout?: PassThrough;
  readonly signal?: AbortSignal;
  /** Gets the listener that takes the signals while a child runs. The returned function is called when it ends that. */
  readonly onRedirect?: (listener: (name: NodeJS.Signals) => void) => undefined | (() => void);
}

/** Commands whose text or document has a form of its own, which no flag and no LEASEHOLD_OUTPUT changes. */
const printsText = /^(help(?! errors \S)|completion|schema|table (cfn|terraform|cdk|policy))\b/;
const asksForHelp = (args: readonly string[]): boolean =>
  args.some((word) => /^(--help|-\w*h\w*)$/.test(word));

/** Starts `leasehold` in this process, on a store of the test's: what it prints, and the exit code in the end. */
export function startLeasehold(args: readonly string[], options: CallOptions = {}) {
  const { store, clock = systemClock, env = {}, answers, input, columns, signal, onRedirect } = options;
  const stdin = Object.assign(new PassThrough(), { isTTY: answers !== undefined });
  const { stdout = new PassThrough() } = options;
  if (columns !== undefined) Object.assign(stdout, { isTTY: true, columns });
  const stderr = Object.assign(new PassThrough(), { isTTY: answers !== undefined });
  const printed = { stdout: "", stderr: "" };
  stdout.on("data", (chunk) => (printed.stdout += chunk));
  stderr.on("data", (chunk) => (printed.stderr += chunk));
  for (const answer of answers ?? []) stdin.write(`${answer}\n`);
  if (answers !== undefined || input !== undefined) stdin.end(input);
  const ended = runCommandLine(args, {
    stdin,
    stdout,
    stderr,
    env: { LEASEHOLD_TABLE_NAME: store?.tableName ?? "leases", USER: "alice", ...env },
    clock,
    ...(store === undefined ? {} : { open: async () => store }),
    signals: {
      signal: signal ?? new AbortController().signal,
      redirect: (listener) => onRedirect?.(listener) ?? (() => {}),
    },
  });
  return { printed, ended };
}

/** Calls `leasehold` in this process, on a store of the test's, and waits for its end. */
export async function leasehold(args: readonly string[], options: CallOptions = {}): Promise<Called> {
  const { printed, ended } = startLeasehold(args, options);
  const code = await ended;
  // What was written last is read in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  const isText = printsText.test(args.filter((word) => !word.startsWith("-")).join(" ")) || asksForHelp(args);
  for (const format of ["json", "ndjson"] as const) {
    // With both, one document is printed.
    const isAsked = args.includes(`--${format}`) && (format === "json" || !args.includes("--json"));
    const isWhole = code < 64 && isAsked && !args.includes("--dry-run") && !isText;
    const wrong = isWhole ? wrongRecords(printed.stdout, format) : [];
    if (wrong.length > 0) throw new Error(`${args.join(" ")}: ${wrong.join("; ")}`);
  }
  return { code, ...printed };
}
