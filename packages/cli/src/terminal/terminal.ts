import { createInterface, type Interface } from "node:readline";
import { styleText } from "node:util";
import { UsageError } from "../exit-codes.ts";
import type { Style } from "./table.ts";

/** The destination of lines: process.stdout, or its replacement in a test. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

export interface TerminalParts {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
}

type ColorChoice = "auto" | "always" | "never";

const usualColumns = 80;

/**
 * A command's input and output. Data goes to stdout, messages to stderr.
 *
 * If the output is no terminal, there are no colours, no redraws and no questions. After a reader has closed its end of
 * the pipe, nothing is written any more, and `isClosed` tells the command to end.
 */
export class Terminal {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly #env: NodeJS.ProcessEnv;
  readonly #lines: string[] = [];
  #isColored = false;
  #quiet = false;
  #isClosed = false;
  #failure: NodeJS.ErrnoException | undefined;

  constructor({ stdin, stdout, stderr, env }: TerminalParts) {
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    this.#env = env;
    this.configure({ color: "auto", quiet: false });
    stdout.on("error", (error: NodeJS.ErrnoException) => {
      this.#isClosed = true;
      if (error.code !== "EPIPE") this.#failure ??= error;
    });
    // Ignored: messages that nobody can read must not end the command, and a child that runs under it.
    stderr.on("error", () => {});
  }

  configure({ color, quiet }: { readonly color: ColorChoice; readonly quiet: boolean }): void {
    this.#quiet = quiet;
    this.#isColored = hasColors(this.stdout, this.#env, color);
  }

  /**
   * Why output could not be printed, such as a full disk; undefined if all of it was printed, or its reader has closed
   * the pipe.
   */
  get failure(): NodeJS.ErrnoException | undefined {
    return this.#failure;
  }

  /** Whether a reader has closed its end of the pipe: then there is nothing to print for. */
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

  /** The width of a line of stdout; Infinity if stdout is no terminal. */
  get columns(): number {
    return this.isLive ? this.stdout.columns || usualColumns : Number.POSITIVE_INFINITY;
  }

  /** Prints a line of data. The caller has escaped it for the terminal. */
  print(line: string): void {
    if (!this.#isClosed) this.stdout.write(`${line}\n`);
  }

  /** Prints another party's text unchanged, followed by a zero byte: only for other programs. */
  printRaw(text: string): void {
    if (!this.#isClosed) this.stdout.write(`${text}\0`);
  }

  /** Resolves when all output is written, or cannot be written: then there is a {@link failure}. */
  async flush(): Promise<void> {
    await new Promise<void>((resolve) => this.stdout.write("", () => setImmediate(resolve)));
  }

  /**
   * Prints a line of data, and resolves when it is written. Rejects if that is not possible: a full disk, a closed
   * pipe.
   */
  async deliver(line: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Prints a message on stderr, unless --quiet. The caller has escaped it for the terminal. */
  say(line: string): void {
    if (!this.#quiet) this.stderr.write(`${line}\n`);
  }

  sayIf(line: string | undefined): void {
    if (line !== undefined) this.say(line);
  }

  /** Clears the terminal; does nothing if stdout is none. */
  clear(): void {
    if (this.isLive) this.stdout.write("\x1b[H\x1b[2J\x1b[3J");
  }

  /** Prints an error, even with --quiet. */
  complain(line: string): void {
    this.stderr.write(`${line}\n`);
  }

  /** Colours text for stdout. */
  readonly paint = (style: Style, text: string): string =>
    this.#isColored && text !== "" ? styleText(style, text, { validateStream: false }) : text;

  /** Asks for a line. Throws a UsageError if nobody can answer; the end of the input is an empty answer. */
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

  /** Pasted text may have more lines than the question needs: they answer the next questions. */
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

/** The user's choice comes first, then NO_COLOR and FORCE_COLOR, then whether it is a terminal. */
function hasColors(stream: Output, env: NodeJS.ProcessEnv, color: ColorChoice): boolean {
  if (color !== "auto") return color === "always";
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== "0";
  return stream.isTTY === true && env.TERM !== "dumb";
}
