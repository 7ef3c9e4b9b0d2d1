// The command that runs under a lease: it has the user's own streams, gets signals as a whole, and ends with this
// process.

import { type ChildProcess, execFileSync, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, statSync } from "node:fs";
import type { Socket } from "node:net";
import { delimiter, join, resolve } from "node:path";
import { isatty } from "node:tty";
import type { Call } from "../command.ts";
import { CommandError, exitCodeOfAbort, exitCodeOfSignal, exitCodes, Interruption } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

const isWindows = process.platform === "win32";

/**
 * Reads the process to kill (the last line counts), and kills it at the end of the input. A group is killed as a whole.
 * If a child shares our own group, because it shares our terminal, it is killed with all its descendants.
 */
const script = `
tree() {
  for pid in $(ps -A -o pid= -o ppid= | while read -r child parent; do
    if [ "$parent" = "$1" ]; then echo "$child"; fi
  done); do tree "$pid"; done
  kill -KILL "$1"
}
while read -r how pid; do guarded=$how last=$pid; done
case $guarded in
  group) kill -KILL "-$last" ;;
  tree) tree "$last" ;;
esac
`;

/** The processes that the guard ends. */
interface Guarded {
  readonly how: "group" | "tree";
  readonly pid: number;
}

/**
 * Starts a small shell beside the child. After SIGKILL a parent can do nothing, but the kernel closes its pipes: at the
 * end of its input the shell kills the child. The child itself is spawned without a shell in between, so that its
 * environment, its process id and its children are its own. `onMissing` is called without a usable shell.
 *
 * Windows needs no guard: there Node ends a direct child with its parent.
 */
function startOrphanGuard(onMissing: () => void) {
  const { PATH } = process.env;
  const shell = isWindows
    ? undefined
    : spawn("/bin/sh", ["-c", script], {
        stdio: ["pipe", "ignore", "ignore"],
        // In its own session, so that no signal to our group reaches it.
        detached: true,
        env: PATH === undefined ? {} : { PATH },
      });
  shell?.unref();
  shell?.on("error", onMissing);
  // A killed guard protects no more, but that is no reason to fail.
  shell?.stdin.on("error", () => {});
  const write = (line: string): void => {
    if (shell?.stdin.writable) shell.stdin.write(line);
  };
  return {
    /** From now on this child ends with this process. */
    protect: ({ how, pid }: Guarded): void => write(`${how} ${pid}\n`),
    /** The child has ended: another process may get its number. */
    close: (): void => {
      write("none 0\n");
      shell?.stdin.end();
    },
  };
}

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
  /** The pipes to its stdin and from its stdout, if it has them. */
  readonly stdin: ChildProcess["stdin"];
  readonly stdout: ChildProcess["stdout"];
  readonly #process: ChildProcess;
  readonly #pid: number;
  readonly #pipe: Socket | undefined;
  readonly #sharesGroup: boolean;
  readonly #terminated = Promise.withResolvers<void>();
  #isEnded = false;

  /** Starts it. Rejects with a CommandError: 127 if it is not found, 126 if it cannot be run. */
  static async start(commandLine: readonly string[], options: ChildOptions): Promise<Child> {
    const [file = "", ...args] = commandLine;
    const { env, fd, onUnguarded, isPiped = false } = options;
    const sharesGroup = isWindows || [0, 1, 2].some((stream) => isatty(stream));
    const others = fd === undefined ? [] : [...Array(fd - 3).fill("ignore"), "pipe"];
    const own = isPiped ? "pipe" : "inherit";
    const stdio = [own, own, "inherit", ...others] as StdioOptions;
    const guard = startOrphanGuard(onUnguarded);
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
    {
      sharesGroup,
      guard,
    }: { readonly sharesGroup: boolean; readonly guard: ReturnType<typeof startOrphanGuard> },
  ) {
    this.#process = started;
    this.terminated = this.#terminated.promise;
    this.stdin = started.stdin;
    this.stdout = started.stdout;
    this.#pid = started.pid ?? 0;
    this.#sharesGroup = sharesGroup;
    this.#pipe = fd === undefined ? undefined : (started.stdio[fd] as Socket);
    // A child may close its end without an error.
    this.#pipe?.on("error", () => {});
    this.#pipe?.resume();
    started.on("error", () => {});
    this.ended = new Promise((resolve) => {
      started.once("exit", (code, signal) => {
        this.#isEnded = true;
        guard.close();
        this.closePipe();
        resolve(code ?? exitCodeOfSignal(signal ?? "SIGKILL"));
      });
    });
  }

  /** Passes on a signal that this process has received. */
  passOn(name: NodeJS.Signals): void {
    if (this.#isEnded || !(this.#sharesGroup && fromKeyboard.has(name))) this.kill(name);
    if (name === "SIGTERM") this.#terminated.resolve();
  }

  /**
   * Sends a signal to the child and to all its descendants. What an ended child has left behind in our group cannot be
   * found any more: its output is not waited for, then.
   */
  kill(name: NodeJS.Signals): void {
    if (!this.#sharesGroup) send(-this.#pid, name);
    else if (this.#isEnded) this.stdout?.destroy();
    else if (isWindows) this.#process.kill(name);
    else for (const pid of [...descendantsOf(this.#pid), this.#pid]) send(pid, name);
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

/** These signals end the command that runs children one after the other, and not only the present child. */
const ending: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGHUP"]);

/** A call that passes its signals on to its children, and ends by them when the children have ended. */
export type EndingCall<C extends Call> = C & {
  /** The exit code after a signal has ended it; undefined before. */
  readonly exitCode: () => number | undefined;
};

/** Lets signals end a command that runs children one after the other, or several at once. */
export function endingBySignals<C extends Call>(call: C): EndingCall<C> {
  const stop = new AbortController();
  const listeners = new Set<(name: NodeJS.Signals) => void>();
  let stopRedirecting = (): void => {};
  const signal = AbortSignal.any([call.signal, stop.signal]);
  return {
    ...call,
    signal,
    redirectSignals: (listener) => {
      if (listeners.size === 0) {
        stopRedirecting = call.redirectSignals((name) => {
          if (ending.has(name)) stop.abort(new Interruption(name));
          for (const one of listeners) one(name);
        });
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) stopRedirecting();
      };
    },
    exitCode: () => (signal.aborted ? exitCodeOfAbort(signal) : undefined),
  };
}

/** Runs a command until `watch` has seen its end. Rejects with a CommandError (126, 127) if it cannot be started. */
export async function runChild<T>(
  { terminal, redirectSignals, signal }: Call,
  {
    commandLine,
    ...options
  }: Omit<ChildOptions, "onUnguarded"> & { readonly commandLine: readonly string[] },
  watch: (child: Child) => Promise<T>,
): Promise<T> {
  let child: Child | undefined;
  const early: NodeJS.Signals[] = [];
  const stopPassing = redirectSignals((name) => {
    if (child === undefined) early.push(name);
    else child.passOn(name);
  });
  try {
    signal.throwIfAborted();
    child = await Child.start(commandLine, {
      ...options,
      onUnguarded: () =>
        terminal.say("leasehold: there is no /bin/sh: if this process is killed, the child goes on"),
    });
    for (const name of early) child.passOn(name);
    return await watch(child);
  } finally {
    stopPassing();
  }
}

/**
 * Checks that a command exists and may be run, in the way of a shell: a name with a slash is a path, and PATH is
 * searched for every other name. Throws a CommandError: 127 if it is not found, 126 if it cannot be run.
 */
export function checkExecutable(command: string, env: NodeJS.ProcessEnv): void {
  // Windows searches more places, and more extensions.
  if (isWindows) return;
  const folders = command.includes("/") ? [""] : (env.PATH ?? "").split(delimiter);
  const files = folders.map((folder) => (folder === "" ? resolve(command) : join(folder, command)));
  const found = files.filter(isFile);
  if (found.some(isExecutable)) return;
  if (found.length === 0) throw new CommandError(`${shown(command)}: not found`, exitCodes.notFound);
  throw new CommandError(`${shown(command)}: may not be run (no x permission)`, exitCodes.cannotRun);
}

/** A folder has that permission too, but cannot be run. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    // Ignored: nothing is there, or this user may not look there; a shell tries the next folder, too.
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Ignored: a missing or unreadable path is not the wanted file.
    return false;
  }
}
