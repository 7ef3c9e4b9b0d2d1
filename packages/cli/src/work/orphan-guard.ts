// Ends a child when this process dies without a chance to do so itself: by SIGKILL, or out of memory.

import { type ChildProcess, spawn } from "node:child_process";

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
export type Guarded = { readonly how: "group" | "tree"; readonly pid: number };

/**
 * A small shell beside the child. After SIGKILL a parent can do nothing, but the kernel closes its pipes: at the end of
 * its input the shell kills the child. The child itself is spawned without a shell in between, so that its environment,
 * its process id and its children are its own.
 *
 * Windows needs no guard: there Node ends a direct child with its parent.
 */
export class OrphanGuard {
  readonly #shell: ChildProcess | undefined;

  /** `onMissing` is called without a usable shell. */
  constructor(onMissing: () => void) {
    if (process.platform === "win32") return;
    const { PATH } = process.env;
    this.#shell = spawn("/bin/sh", ["-c", script], {
      stdio: ["pipe", "ignore", "ignore"],
      // In its own session, so that no signal to our group reaches it.
      detached: true,
      env: PATH === undefined ? {} : { PATH },
    });
    this.#shell.unref();
    this.#shell.on("error", onMissing);
    // A killed guard protects no more, but that is no reason to fail.
    this.#shell.stdin?.on("error", () => {});
  }

  /** From now on this child ends with this process. */
  protect({ how, pid }: Guarded): void {
    this.#write(`${how} ${pid}\n`);
  }

  /** The child has ended: another process may get its number. */
  close(): void {
    this.#write("none 0\n");
    this.#shell?.stdin?.end();
  }

  #write(line: string): void {
    if (this.#shell?.stdin?.writable) this.#shell.stdin.write(line);
  }
}
