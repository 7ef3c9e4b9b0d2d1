// The command that runs under a lease: it has the user's own streams, gets signals as a whole, and ends with this
// process.

import { type ChildProcess, execFileSync, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { isatty } from "node:tty";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { exitCodeOfSignal } from "../interruption.ts";
import { shown } from "../terminal/text.ts";
import { OrphanGuard } from "./orphan-guard.ts";

/** The options of a child's start. */
export interface ChildOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Pipes in place of this process's own stdin and stdout. @default false */
  readonly isPiped?: boolean;
  /** The number of a pipe for the child; it closes with `closePipe`, and with this process. */
  readonly fd?: number | undefined;
  /** Called if the child could outlive this process. */
  readonly onUnguarded: () => void;
}

/** The keyboard sends these signals to all processes of the terminal's group, including the child. */
const fromKeyboard: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);
const isWindows = process.platform === "win32";

/**
 * A child process with this process's own stdin, stdout and stderr.
 *
 * Without a terminal it leads its own process group: signals reach the whole group, and nothing outside. With a
 * terminal it stays in our group, because only that group may use the terminal: /dev/tty, prompts for passwords,
 * Ctrl-Z. Then the terminal sends Ctrl-C to both, so it is not passed on. Other signals go to the child and its
 * descendants.
 *
 * On Windows signals reach only the child, and end it at once.
 */
export class Child {
  /** Resolves to its exit code when it has ended; to 128 + n if signal n has ended it. Never rejects. */
  readonly ended: Promise<number>;
  /** Resolves when a SIGTERM of this process is passed on to the child. */
  readonly terminated: Promise<void>;
  readonly #process: ChildProcess;
  readonly #pid: number;
  readonly #pipe: Socket | undefined;
  readonly #sharesGroup: boolean;
  #isEnded = false;
  #onTerminated = (): void => {};

  /** Starts it. Rejects with a CommandError: 127 if it is not found, 126 if it cannot be run. */
  static async start(commandLine: readonly string[], options: ChildOptions): Promise<Child> {
    const [file = "", ...args] = commandLine;
    const { env, fd, onUnguarded, isPiped = false } = options;
    const sharesGroup = isWindows || [0, 1, 2].some((stream) => isatty(stream));
    const others = fd === undefined ? [] : [...Array(fd - 3).fill("ignore"), "pipe"];
    const own = isPiped ? "pipe" : "inherit";
    const stdio = [own, own, "inherit", ...others] as StdioOptions;
    const guard = new OrphanGuard(onUnguarded);
    try {
      const started = spawn(file, args, { env, stdio, detached: !sharesGroup });
      // Before anything else: from here on the child would outlive us.
      if (started.pid !== undefined) guard.protect({ how: sharesGroup ? "tree" : "group", pid: started.pid });
      const child = new Child(started, fd, { sharesGroup, guard });
      await once(started, "spawn");
      return child;
    } catch (error) {
      guard.close();
      throw cannotStart(file, error as NodeJS.ErrnoException);
    }
  }

  private constructor(
    started: ChildProcess,
    fd: number | undefined,
    { sharesGroup, guard }: { readonly sharesGroup: boolean; readonly guard: OrphanGuard },
  ) {
    this.#process = started;
    this.#pid = started.pid ?? 0;
    this.#sharesGroup = sharesGroup;
    this.#pipe = fd === undefined ? undefined : (started.stdio[fd] as Socket);
    // A child may close its end without an error.
    this.#pipe?.on("error", () => {});
    this.#pipe?.resume();
    started.on("error", () => {});
    this.terminated = new Promise((resolve) => {
      this.#onTerminated = resolve;
    });
    this.ended = new Promise((resolve) => {
      started.once("exit", (code, signal) => {
        this.#isEnded = true;
        guard.close();
        this.closePipe();
        resolve(code ?? exitCodeOfSignal(signal ?? "SIGKILL"));
      });
    });
  }

  /** The pipe to its stdin, if it has one. */
  get stdin(): ChildProcess["stdin"] {
    return this.#process.stdin;
  }

  /** The pipe from its stdout, if it has one. */
  get stdout(): ChildProcess["stdout"] {
    return this.#process.stdout;
  }

  /** Passes on a signal that this process has received. */
  passOn(name: NodeJS.Signals): void {
    if (!(this.#sharesGroup && fromKeyboard.has(name))) this.kill(name);
    if (name === "SIGTERM") this.#onTerminated();
  }

  /** Sends a signal to the child and to all its descendants. */
  kill(name: NodeJS.Signals): void {
    if (isWindows) this.#process.kill(name);
    else if (!this.#sharesGroup) send(-this.#pid, name);
    // After the child's end, another process may have its number.
    else if (!this.#isEnded) for (const pid of [...descendantsOf(this.#pid), this.#pid]) send(pid, name);
  }

  /** Whether its group still has processes. Not known for a child that shares our group. */
  hasLeftovers(): boolean {
    return !this.#sharesGroup && send(-this.#pid, 0);
  }

  /** Closes the pipe that was asked for by `fd`. */
  closePipe(): void {
    this.#pipe?.destroy();
  }
}

/** Sends a signal; false if there is no such process. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // It runs as another user, as with sudo: it exists, and cannot be signalled.
    if (code === "EPERM") return true;
    if (code === "ESRCH") return false;
    throw error;
  }
}

/** The children of a process, and their descendants. */
function descendantsOf(root: number): number[] {
  let listed: string;
  try {
    listed = execFileSync("ps", ["-A", "-o", "pid=", "-o", "ppid="], { encoding: "utf8" });
  } catch {
    // Ignored: on a system without ps, only the child gets the signal.
    return [];
  }
  const entries = listed.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  const found: number[] = [];
  for (let parents = [root]; parents.length > 0; ) {
    parents = entries.flatMap(([pid = 0, parent = 0]) => (parents.includes(parent) ? [pid] : []));
    found.push(...parents);
  }
  return found;
}

function cannotStart(file: string, error: NodeJS.ErrnoException): CommandError {
  const isMissing = error.code === "ENOENT";
  const reason = isMissing ? "not found" : `cannot be run (${error.code ?? error.message})`;
  const exitCode = isMissing ? exitCodes.notFound : exitCodes.cannotRun;
  return new CommandError(`${shown(file)}: ${reason}`, exitCode, { cause: error });
}
