import type { Randomness } from "@leasehold/client";
import type { Core } from "@leasehold/client/internal";
import type { Task } from "./task.ts";
import { type FindTerms, type NothingFound, type TaskSnapshot, taskPageSize } from "./task-finder.ts";

/** Where a worker's tasks come from. */
export interface TaskSource {
  /** The last look at all open tasks; undefined when a task to claim was found since. */
  readonly snapshot: TaskSnapshot | undefined;
  find(terms: FindTerms): Promise<Task | NothingFound | RateUsedUp>;
}

/** There is a task, and its set's rate allows no claim for so long. */
export interface RateUsedUp {
  readonly rateUsedUpForMs: number;
}

/** No task of a worker's sets can be claimed now. */
export interface NothingToDo extends Pick<TaskSnapshot, "isConsistent"> {
  /** Whether a task was waiting or running. */
  readonly hasOpenTasks: boolean;
  /** When the next look at all open tasks is due. */
  readonly nextLookInMs: number;
  /** When the first of the tasks may be claimed, if nothing changes. Infinite when there is none. */
  readonly claimableInMs: number;
  /** Whether a task waits for the rate of its set alone. */
  readonly isLimited: boolean;
}

const nothing: NothingToDo = {
  hasOpenTasks: false,
  isConsistent: true,
  nextLookInMs: Number.POSITIVE_INFINITY,
  claimableInMs: Number.POSITIVE_INFINITY,
  isLimited: false,
};

/** One of a worker's sets, and when the worker looks at it. */
export class PolledSet {
  readonly #core: Core;
  readonly #source: TaskSource;
  readonly #interval: PollInterval;
  /** Whether the next look must be consistent, although a look was in vain. */
  #mustBeSure = false;

  constructor(core: Core, source: TaskSource, pollMs: number) {
    this.#core = core;
    this.#source = source;
    this.#interval = new PollInterval(pollMs, core.randomness);
  }

  /** Has the next look see every earlier write. */
  beSure(): void {
    this.#mustBeSure = true;
  }

  /** Finds a task and claims it. Sends nothing while the last look is young. The signal ends a look, and no claim. */
  async find(signal: AbortSignal | undefined): Promise<Task | NothingToDo> {
    const maxAgeMs = this.#mustBeSure ? 0 : this.#interval.ms;
    const consistent = this.#mustBeSure || !this.#interval.isIdle;
    const found = await this.#source.find({ maxAgeMs, consistent, signal });
    this.#mustBeSure = false;
    if ("id" in found) {
      if (this.#source.snapshot === undefined) this.#interval.foundSome();
      return found;
    }
    if ("rateUsedUpForMs" in found) {
      return { ...nothing, hasOpenTasks: true, claimableInMs: found.rateUsedUpForMs, isLimited: true };
    }
    const { snapshot, claimableInMs } = found;
    const { openTasks, isConsistent, beganAt } = snapshot;
    this.#interval.foundNothing(snapshot);
    const nextLookInMs = beganAt + this.#interval.ms - this.#core.clock.monotonic();
    return { hasOpenTasks: openTasks > 0, isConsistent, nextLookInMs, claimableInMs, isLimited: false };
  }
}

/** Finds a task in the first of the sets that has one to claim. */
export async function findInOrder(
  sets: readonly PolledSet[],
  signal: AbortSignal | undefined,
): Promise<Task | NothingToDo> {
  let all = nothing;
  for (const set of sets) {
    const found = await set.find(signal);
    if ("id" in found) return found;
    all = {
      hasOpenTasks: all.hasOpenTasks || found.hasOpenTasks,
      isConsistent: all.isConsistent && found.isConsistent,
      nextLookInMs: Math.min(all.nextLookInMs, found.nextLookInMs),
      claimableInMs: Math.min(all.claimableInMs, found.claimableInMs),
      isLimited: all.isLimited || found.isLimited,
    };
  }
  return all;
}

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
