// The operating system's side of an environment: its variables, and a process group that is stopped and killed as a whole.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isProgrammerError } from "../program-errors.ts";
import type { FunctionDefinition } from "./types.ts";

/** Each line names all groups that live. No `--` before a negative number: the kill of dash does not know it. */
const guard =
  'while read -r line; do groups=$line; done; for group in $groups; do kill -KILL "-$group"; done';

/**
 * Ends the function's processes when this process dies without a chance to do so itself.
 *
 * A stopped process notices nothing, so somebody else has to watch: a shell that reads, line after line, all the
 * process groups that live now. SIGKILL leaves a parent no word to say, but the kernel closes its pipes: at the end of
 * the input the shell kills what the last line named. One shell serves a whole runtime, and each function's process is
 * spawned with its exact environment, without a shell in between.
 */
export class OrphanGuard {
  readonly #shell: ChildProcess;
  readonly #groups = new Set<number>();

  constructor() {
    this.#shell = spawn(
      "/bin/sh",
      ["-c", guard],
      // Detached: a terminal's Ctrl-C must not reach it.
      { stdio: ["pipe", "ignore", "ignore"], detached: true, env: {} },
    );
    this.#shell.unref();
    // A guard that was killed protects no more, which is no reason to fail.
    this.#shell.on("error", () => {});
    this.#shell.stdin?.on("error", () => {});
  }

  /** Guards a process group, named by its leader. */
  add(pid: number): void {
    this.#groups.add(pid);
    this.#sendGroups();
  }

  /** Forgets a group that is gone: another process may get its number. */
  remove(pid: number): void {
    this.#groups.delete(pid);
    this.#sendGroups();
  }

  /** Ends the guard. Resolves when it is gone. */
  async close(): Promise<void> {
    if (this.#shell.pid === undefined || this.#shell.exitCode !== null || this.#shell.signalCode !== null)
      return;
    const exited = new Promise((resolve) => this.#shell.once("exit", resolve));
    this.#shell.ref();
    this.#shell.stdin?.end();
    await exited;
  }

  #sendGroups(): void {
    if (this.#shell.stdin?.writable) this.#shell.stdin.write(`${[...this.#groups].join(" ")}\n`);
  }
}

/** Of the parent's own variables a function gets these and no others: what the template forgot must be missing here. */
const inherited = ["PATH", "HOME", "TMPDIR"] as const;

/** Where CommonJS finds the AWS SDK that Lambda's runtime has: here it is the one that this package is installed with. */
const sdkFolder = createRequire(import.meta.url)
  .resolve("@aws-sdk/client-dynamodb")
  .replace(/[\\/]@aws-sdk[\\/].*$/, "");

/** Variables that the base environment and the function's own may replace. */
const defaultVariables: Readonly<Record<string, string>> = {
  TZ: "UTC",
  AWS_REGION: "us-east-1",
  // DynamoDB Local allows only letters and digits in a key.
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
};

/** Everything that a function's process has in its environment. */
export function processEnvironment(
  fn: FunctionDefinition,
  base: Readonly<Record<string, string>>,
  now: number,
): Record<string, string> {
  const own: Record<string, string> = {};
  for (const name of inherited) {
    const value = process.env[name];
    if (value !== undefined) own[name] = value;
  }
  const day = new Date(now).toISOString().slice(0, 10).replaceAll("-", "/");
  const [nodeMajor] = process.versions.node.split(".");
  return {
    ...own,
    ...defaultVariables,
    NODE_PATH: sdkFolder,
    ...base,
    ...fn.environment,
    _HANDLER: fn.handler,
    LAMBDA_TASK_ROOT: fn.codeDir,
    AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${nodeMajor}.x`,
    AWS_LAMBDA_FUNCTION_NAME: fn.name,
    AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(fn.memoryMb),
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${fn.name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: `${day}/[$LATEST]${randomBytes(16).toString("hex")}`,
  };
}

const bootstrap = fileURLToPath(new URL("./bootstrap.ts", import.meta.url));

/** How long the pipes may stay open after the process: something that left its group may hold them. */
const lastOutputMs = 200;

/** An invocation, as the process is told of it. */
export interface Delivery {
  readonly requestId: string;
  readonly payload: string;
  readonly deadlineMs: number;
  readonly functionArn: string;
}

/** What the process tells: that its code is loaded, or how an invocation ended, after which it may not go on. */
export type RuntimeMessage = "ready" | (Outcome & { readonly isLast?: boolean });

/** How an invocation ended. The payload is text: JSON. */
export interface Outcome {
  readonly payload: string;
  readonly functionError?: "Unhandled";
}

/** Listens to a sandbox. */
interface SandboxListener {
  line(line: string): void;
  message(message: RuntimeMessage): void;
  /** The process is gone and its output is in. */
  ended(code: number | null, signal: NodeJS.Signals | null): void;
}

/** The process of an environment, with everything that it spawned: they are stopped, continued and killed together. */
export class Sandbox {
  readonly #child: ChildProcess;

  constructor(
    fn: FunctionDefinition,
    env: Readonly<Record<string, string>>,
    guard: OrphanGuard,
    listener: SandboxListener,
  ) {
    // 90 % of the memory, as the heap is not all of it.
    const heapMb = Math.floor(fn.memoryMb * 0.9);
    const child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, bootstrap], {
      cwd: fn.codeDir,
      env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      // A group of its own, which a terminal's Ctrl-C does not reach.
      detached: true,
    });
    this.#child = child;
    const { pid } = child;
    for (const input of [child.stdout, child.stderr]) {
      if (input !== null) createInterface({ input }).on("line", listener.line);
    }
    let heard = Promise.resolve();
    child.on("message", (message: RuntimeMessage) => {
      heard = heard.then(async () => {
        // What the function printed before is in its pipes already: the lines are read, and attributed to this invocation,
        // before its caller hears of the result.
        for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
        listener.message(message);
      });
    });
    if (pid === undefined) {
      child.once("error", (error) => {
        listener.line(error.message);
        listener.ended(null, null);
      });
      return;
    }
    guard.add(pid);
    child.on("error", () => {});
    child.once("exit", (code, signal) => {
      this.signalAll("SIGKILL");
      guard.remove(pid);
      let timer: NodeJS.Timeout | undefined;
      const finish = (): void => {
        clearTimeout(timer);
        child.off("close", finish);
        // Why it has ended may be its last message.
        void heard.then(() => listener.ended(code, signal));
      };
      const limit = (): void => {
        timer = setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
          finish();
        }, lastOutputMs);
      };
      // Its messages are all in once the channel is closed.
      if (child.connected) child.once("disconnect", limit);
      else limit();
      child.once("close", finish);
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Hands an invocation over. A process that is gone by now says so by its end. */
  deliver(delivery: Delivery): void {
    this.#child.send(delivery, () => {});
  }

  /** To the process and whatever it spawned. */
  signalAll(signal: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if (isProgrammerError(error)) throw error;
      // Nothing of the group is left.
    }
  }

  /** Asks the process to end. */
  terminate(): void {
    this.#child.kill("SIGTERM");
  }
}
