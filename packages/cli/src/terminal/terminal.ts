import { createInterface, type Interface } from "node:readline";
import { styleText } from "node:util";
import { UsageError } from "../exit-codes.ts";
import type { Style } from "./table.ts";
import { shown } from "./text.ts";

/** Where lines go: process.stdout, or what stands for it in a test. */
export type Output = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};
/** Where answers come from. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** What a terminal is made of. */
export interface TerminalParts {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
}

/** How a command wants its terminal. */
export interface TerminalOptions {
  readonly color?: "auto" | "always" | "never";
  readonly quiet?: boolean;
}

const usualColumns = 80;

/**
 * What a command reads and writes. Data goes to stdout, talk to stderr.
 *
 * Where the output is no terminal there are no colours, no redraws and no questions. Once a reader has closed its end of
 * the pipe, nothing is written any more, and `isClosed` tells the command to end.
 */
export class Terminal {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly #env: NodeJS.ProcessEnv;
  readonly #lines: string[] = [];
  #colors = { stdout: false, stderr: false };
  #quiet = false;
  #isClosed = false;
  #failure: NodeJS.ErrnoException | undefined;

  constructor({ stdin, stdout, stderr, env }: TerminalParts) {
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    this.#env = env;
    this.configure({});
    stdout.on("error", (error: NodeJS.ErrnoException) => {
      this.#isClosed = true;
      if (error.code !== "EPIPE") this.#failure ??= error;
    });
  }

  /** Sets how the command wants it. */
  configure({ color = "auto", quiet = false }: TerminalOptions): void {
    this.#quiet = quiet;
    const has = (stream: Output): boolean => hasColors(stream, this.#env, color);
    this.#colors = { stdout: has(this.stdout), stderr: has(this.stderr) };
  }

  /** Why something could not be printed, such as a full disk; undefined where all of it was, or its reader had gone. */
  get failure(): NodeJS.ErrnoException | undefined {
    return this.#failure;
  }

  /** Whether a reader has closed its end of the pipe: there is nobody to print for. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether stdout is a terminal whose lines can be rewritten. */
  get isLive(): boolean {
    return this.stdout.isTTY === true;
  }

  /** Whether a person can answer. */
  get canAsk(): boolean {
    return this.stdin.isTTY === true && this.stderr.isTTY === true;
  }

  /** How wide a line of stdout may be; Infinity where stdout is no terminal. */
  get columns(): number {
    return this.isLive ? this.stdout.columns || usualColumns : Number.POSITIVE_INFINITY;
  }

  /** Prints a line of data. The caller has made it showable. */
  print(line: string): void {
    if (!this.#isClosed) this.stdout.write(`${line}\n`);
  }

  /** Prints a text of others as it is, with a zero byte behind it: for other programs alone. */
  printRaw(text: string): void {
    if (!this.#isClosed) this.stdout.write(`${text}\0`);
  }

  /** Resolves when all that was printed is written, or cannot be: then there is a {@link failure}. */
  async flush(): Promise<void> {
    await new Promise<void>((resolve) => this.stdout.write("", () => setImmediate(resolve)));
  }

  /** Prints a line of data, and resolves when it is written. Rejects where it cannot be: a full disk, a closed pipe. */
  async deliver(line: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Says something to the person, on stderr, unless --quiet. The caller has made it showable. */
  say(line: string): void {
    if (!this.#quiet) this.stderr.write(`${line}\n`);
  }

  /** Says it where there is something to say. */
  sayIf(line: string | undefined): void {
    if (line !== undefined) this.say(line);
  }

  /** Takes what stands on a terminal away; does nothing where stdout is none. */
  clear(): void {
    if (this.isLive) this.stdout.write("\x1b[H\x1b[2J\x1b[3J");
  }

  /** Says an error, also with --quiet. */
  complain(line: string): void {
    this.stderr.write(`${line}\n`);
  }

  /** Colours text for stdout. */
  readonly paint = (style: Style, text: string): string => painted(style, text, this.#colors.stdout);

  /** Colours text for stderr. */
  readonly paintTalk = (style: Style, text: string): string => painted(style, text, this.#colors.stderr);

  /** Asks for a line. Throws a UsageError where nobody can answer; an end of the input is an empty answer. */
  async ask(question: string, signal: AbortSignal): Promise<string> {
    if (!this.canAsk) {
      throw new UsageError(`${question.trim()} There is no terminal to answer on: --yes says yes`);
    }
    const readline = createInterface({ input: this.stdin, output: this.stderr });
    try {
      return (await this.#nextLine(readline, question, signal)).trim();
    } finally {
      readline.close();
    }
  }

  /** What is pasted may have more lines than the question wants: they answer the next ones. */
  #nextLine(readline: Interface, question: string, signal: AbortSignal): Promise<string> {
    const early = this.#lines.shift();
    if (early !== undefined) return Promise.resolve(early);
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      readline.once("close", () => resolve(""));
      readline.on("line", (line) => this.#lines.push(line));
      readline.once("line", () => resolve(this.#lines.shift() ?? ""));
      readline.setPrompt(question);
      readline.prompt();
    });
  }
}

function painted(style: Style, text: string, isColored: boolean): string {
  return isColored && text !== "" ? styleText(style, text, { validateStream: false }) : text;
}

/** The user's word counts first, then NO_COLOR and FORCE_COLOR, then whether it is a terminal. */
function hasColors(stream: Output, env: NodeJS.ProcessEnv, color: "auto" | "always" | "never"): boolean {
  if (color !== "auto") return color === "always";
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== "0";
  return stream.isTTY === true && env.TERM !== "dumb";
}

/** Asks a person to agree to a write: by yes, or by typing a word, which is harder to do by mistake. */
export async function confirm(
  terminal: Terminal,
  {
    question,
    word,
    signal,
  }: { readonly question: string; readonly word?: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const answer = await terminal.ask(word === undefined ? `${question} [y/N] ` : `${question}: `, signal);
  // What cannot be typed is typed as it is shown.
  return word === undefined
    ? /^y(es)?$/i.test(answer)
    : answer === word.trim() || answer === shown(word).trim();
}
