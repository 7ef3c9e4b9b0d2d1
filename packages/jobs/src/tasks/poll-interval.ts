import type { Randomness } from "@leasehold/client";
import { type TaskSnapshot, taskPageSize } from "./task-finder.ts";

/**
 * How long an idle worker waits between two looks at all open tasks: longer each time, and longer if a look costs more.
 *
 * So an idle worker reads at most about 32 open tasks in each `pollMs`, for sets of up to 1,920 open tasks.
 */
export class PollInterval {
  readonly #pollMs: number;
  readonly #randomness: Randomness;
  #last: TaskSnapshot | undefined;
  #looksInVain = 0;
  /** 0 until the first look: no snapshot is used before. */
  #ms = 0;

  constructor(pollMs: number, randomness: Randomness) {
    this.#pollMs = pollMs;
    this.#randomness = randomness;
  }

  /** For how long a snapshot is used, in milliseconds. */
  get ms(): number {
    return this.#ms;
  }

  /** Whether the last look found nothing. */
  get isIdle(): boolean {
    return this.#looksInVain > 0;
  }

  /** A look has found nothing. A snapshot that was seen before changes nothing. */
  foundNothing(snapshot: TaskSnapshot): void {
    if (snapshot === this.#last) return;
    this.#last = snapshot;
    const longer = Math.min(2 ** this.#looksInVain, longestFactor);
    const pages = Math.min(Math.ceil(snapshot.openTasks / taskPageSize), mostPacedPages);
    this.#looksInVain += 1;
    const jitter = 0.75 + this.#randomness.fraction() / 2;
    this.#ms = this.#pollMs * Math.max(longer, pages) * jitter;
  }

  /** A look has found a task. */
  foundSome(): void {
    this.#looksInVain = 0;
  }
}

/** After each look that finds nothing the interval doubles, up to this many times the `pollMs`... */
const longestFactor = 10;
/** ...and beside many open tasks it has one `pollMs` for each page of them, up to this many. */
const mostPacedPages = 60;
