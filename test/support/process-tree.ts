import { execFileSync } from "node:child_process";

/** A process, told from a later one with the same number by its start. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** When it started and what it runs, for people too. */
  readonly line: string;
}

/** Every process of this machine that is not a zombie. */
function processes(): ProcessEntry[] {
  const output = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,lstart=,args="], { encoding: "utf8" });
  return output.split("\n").flatMap((text) => {
    const [, pid, parent, state, line] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(text) ?? [];
    if (pid === undefined || parent === undefined || line === undefined || state?.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), line }];
  });
}

/** Collects what a process starts, and what that starts, for as long as it is looked at. */
export class ProcessTree {
  readonly #known = new Map<number, ProcessEntry>();
  readonly #root: number;

  constructor(root: number) {
    this.#root = root;
  }

  /** Looks once. A process whose parent has ended is known from an earlier look, or not at all. */
  look(): void {
    const all = processes();
    const isOurs = ({ pid, parent }: ProcessEntry): boolean =>
      pid === this.#root || parent === this.#root || this.#known.has(parent);
    for (let found = true; found; ) {
      const more = all.filter((entry) => !this.#known.has(entry.pid) && isOurs(entry));
      for (const entry of more) this.#known.set(entry.pid, entry);
      found = more.length > 0;
    }
  }

  /** Everything that was seen. */
  get seen(): readonly ProcessEntry[] {
    return [...this.#known.values()];
  }

  /** What of it still runs. */
  survivors(): string[] {
    const running = new Map(processes().map((entry) => [entry.pid, entry.line.slice(0, startWidth)]));
    return this.seen
      .filter(({ pid, line }) => running.get(pid) === line.slice(0, startWidth))
      .map(({ pid, line }) => `${pid} ${line}`);
  }
}

/** "Sat Nov 21 10:00:00 2026": a process may change what it runs, but not its start. */
const startWidth = 24;
