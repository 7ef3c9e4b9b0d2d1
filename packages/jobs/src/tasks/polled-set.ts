import type { Core } from "@leasehold/client/internal";
import { PollInterval } from "./poll-interval.ts";
import type { Task } from "./task.ts";
import type { FindTerms, NothingFound, TaskSnapshot } from "./task-finder.ts";

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

  /** Finds a task and claims it. Sends nothing while the last look is young. */
  async find(): Promise<Task | NothingToDo> {
    const maxAgeMs = this.#mustBeSure ? 0 : this.#interval.ms;
    const consistent = this.#mustBeSure || !this.#interval.isIdle;
    const found = await this.#source.find({ maxAgeMs, consistent });
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
export async function findInOrder(sets: readonly PolledSet[]): Promise<Task | NothingToDo> {
  let all = nothing;
  for (const set of sets) {
    const found = await set.find();
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
