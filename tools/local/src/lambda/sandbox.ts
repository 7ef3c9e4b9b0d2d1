// The operating system's side of an environment: a process group that is stopped and killed as a whole.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isProgrammerError } from "../program-errors.ts";
import type { CheckedFunction } from "./definition.ts";
import type { OrphanGuard } from "./orphan-guard.ts";

const bootstrap = fileURLToPath(new URL("./bootstrap.ts", import.meta.url));

/** How long the pipes may stay open after the process: something that left its group may hold them. */
const lastOutputMs = 200;

/** Listens to a sandbox. */
export interface SandboxListener {
  line(line: string): void;
  /** The process is gone and its output is in. */
  ended(code: number | null, signal: NodeJS.Signals | null): void;
}

/** The process of an environment, with everything that it spawned: they are stopped, continued and killed together. */
export class Sandbox {
  readonly #child: ChildProcess;

  constructor(
    fn: CheckedFunction,
    env: Readonly<Record<string, string>>,
    guard: OrphanGuard,
    listener: SandboxListener,
  ) {
    // 90 % of the memory, as the heap is not all of it.
    const heapMb = Math.floor(fn.memoryMb * 0.9);
    const child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, bootstrap], {
      cwd: fn.codeDir,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own, which a terminal's Ctrl-C does not reach.
      detached: true,
    });
    this.#child = child;
    const { pid } = child;
    for (const input of [child.stdout, child.stderr]) createInterface({ input }).on("line", listener.line);
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
      const finish = (): void => {
        clearTimeout(timer);
        child.off("close", finish);
        listener.ended(code, signal);
      };
      const timer = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        finish();
      }, lastOutputMs);
      child.once("close", finish);
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
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
