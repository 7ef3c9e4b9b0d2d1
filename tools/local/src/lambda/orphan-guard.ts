// Ends the functions' processes when this one has ended, the stopped ones included.

import { type ChildProcess, spawn } from "node:child_process";

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
