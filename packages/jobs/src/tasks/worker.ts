import {
  type Core,
  isAbortOf,
  isOperational,
  mayPass,
  pauseWhileOpen,
  wakeSpreadMs,
} from "@leasehold/client/internal";
import { FinalFailureError } from "./errors.ts";
import { remarkOf, type WorkTerms } from "./options.ts";
import { findInOrder, type NothingToDo, PolledSet, type TaskSource } from "./polled-set.ts";
import type { Task } from "./task.ts";

/** Claims one task after another, at intervals, and has no more than `concurrency` of them at a time. */
export class Worker {
  readonly #core: Core;
  readonly #terms: WorkTerms;
  /** The most urgent first. */
  readonly #sets: readonly PolledSet[];
  /** One for each task that this worker has. */
  readonly #busy = new Set<Promise<void>>();
  #claimedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #tasksEnded = 0;
  /** How often this process has said that there is a new task. */
  #notices = 0;
  #wake: () => void = () => undefined;

  /** `sources`: the most urgent first. */
  constructor(core: Core, terms: WorkTerms, sources: readonly TaskSource[]) {
    this.#core = core;
    this.#terms = terms;
    this.#sets = sources.map((source) => new PolledSet(core, source, terms.pollMs));
  }

  /** Counts a task among those that this worker has, until the promise settles. */
  busyUntil(ended: Promise<void>): void {
    // Ignored: the caller reports its error.
    const settled = ended
      .catch(() => undefined)
      .then(() => {
        this.#busy.delete(settled);
        this.#tasksEnded += 1;
        this.#wake();
      });
    this.#busy.add(settled);
  }

  /** Looks at once: this process has added a task. */
  notice(): void {
    this.#notices += 1;
    this.#beSure();
    this.#wake();
  }

  /** Resolves when this worker has no task. */
  async idle(): Promise<void> {
    while (this.#busy.size > 0) await Promise.all(this.#busy);
  }

  /** Gives the next task; undefined when the worker's time is over. */
  async next(): Promise<Task | undefined> {
    const { signal, concurrency, pauseMs, pollMs, until } = this.#terms;
    const { clock, randomness } = this.#core;
    for (;;) {
      while (this.#busy.size >= concurrency && !signal?.aborted) await this.#wait(longestWaitMs);
      const pauseLeft = this.#claimedAt + pauseMs - clock.monotonic();
      if (pauseLeft > 0) await this.#sleep(pauseLeft);
      if (signal?.aborted) return undefined;
      const endedBefore = this.#tasksEnded;
      const noticed = this.#notices;
      const found = await this.#tryFind();
      // A set that was looked at when it was told of a task has forgotten that.
      if (this.#notices > noticed) this.#beSure();
      if (found !== undefined && "id" in found) {
        this.#claimedAt = clock.monotonic();
        if (!signal?.aborted) return found;
        // It has aborted while the claim was under way: no work begins any more.
        await giveBack(found);
        return undefined;
      }
      if (this.#notices > noticed) continue;
      if (until === "idle" && found?.isLimited === false) return undefined;
      if (until === "drained" && found?.hasOpenTasks === false) {
        if (found.isConsistent) return undefined;
        this.#beSure();
        continue;
      }
      // A task that has ended meanwhile may have been the last one seen running.
      if (this.#tasksEnded > endedBefore) continue;
      await this.#wait(found === undefined ? pollMs : this.#restMs(found, randomness.fraction()));
    }
  }

  #beSure(): void {
    for (const set of this.#sets) set.beSure();
  }

  /** Gives undefined when the service failed in a way that may pass, and when the signal has aborted. */
  async #tryFind(): Promise<Task | NothingToDo | undefined> {
    const { signal } = this.#terms;
    try {
      const found = await findInOrder(this.#sets, signal);
      this.#failures = 0;
      return found;
    } catch (error) {
      if (isAbortOf(error, signal) || (signal?.aborted && mayPass(error))) return undefined;
      this.#failures += 1;
      if (!mayPass(error) || this.#failures >= mostFailures) throw error;
      return undefined;
    }
  }

  /** Until the next look at all open tasks, or until a task that was seen becomes due. */
  #restMs({ nextLookInMs, claimableInMs }: NothingToDo, fraction: number): number {
    return Math.max(1, Math.min(nextLookInMs, claimableInMs + wakeSpreadMs * fraction));
  }

  /** Waits until a time has passed, one of its tasks ends, or the signal aborts, whichever comes first. */
  async #wait(ms: number): Promise<void> {
    const over = new AbortController();
    this.#wake = () => over.abort();
    const { signal } = this.#terms;
    const either = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
    await this.#sleep(ms, either);
  }

  /** Sleeps until the signal aborts at the latest; rejects when the client is closed. */
  async #sleep(ms: number, signal = this.#terms.signal): Promise<void> {
    await pauseWhileOpen(this.#core, ms, signal);
  }
}

/** Gives a task back as if it had not been claimed. If the service does not confirm that, its claim ends by itself. */
async function giveBack(task: Task): Promise<void> {
  try {
    await task.release();
  } catch (error) {
    task.abandon();
    if (!isOperational(error)) throw error;
  }
}

/** After this many failed claims in a row the worker gives up. */
const mostFailures = 5;

/** A worker with `concurrency` tasks is woken when one ends. This only has to be long. */
const longestWaitMs = 60 * 60 * 1000;

/** The workers of this process that wait for tasks, each with one of its sets, by client. */
const waiting = new WeakMap<Core, Set<{ readonly set: string; readonly worker: Worker }>>();

/** Has a worker told of the tasks that clients add to its sets, until the function that this gives is called. */
export function listenToAdds(
  watched: readonly { readonly core: Core; readonly set: string }[],
  worker: Worker,
): () => void {
  const all = watched.map(({ core, set }) => {
    const listeners = waiting.get(core) ?? new Set();
    const listener = { set, worker };
    waiting.set(core, listeners.add(listener));
    return { listeners, listener };
  });
  return () => {
    for (const { listeners, listener } of all) listeners.delete(listener);
  };
}

/** Tells this client's workers of a set that it has a new task. */
export function tellOfAdd(core: Core, set: string): void {
  for (const listener of waiting.get(core) ?? []) if (listener.set === set) listener.worker.notice();
}

/** How the tasks ended that one call of {@link TaskSet.process} has claimed or parked. */
export interface ProcessSummary {
  readonly succeeded: number;
  /** Failed in their last attempt. */
  readonly failed: number;
  /** Set aside: the work threw a FinalFailureError, or the worker of the last attempt was found to be lost. */
  readonly parked: number;
  /** Given back: they failed with attempts left, or the caller's signal ended their work. */
  readonly returned: number;
  /** Ended by the work itself, with `succeed`, `fail` or `release`. */
  readonly settled: number;
  /** Not ended by this worker: the claim was lost, or the service did not confirm the end. */
  readonly lost: number;
}

type Work = (task: Task) => Promise<unknown> | unknown;
type ProcessTerms = WorkTerms & { readonly retryAfterMs: number | undefined };

/**
 * Runs the work of one task after another. Each task is ended exactly once: by its work, or by the result of its work.
 *
 * `stop` ends the worker. A mistake in the program that comes up while a task is ended aborts `stop`; the call
 * rejects with it when all work has settled.
 */
export async function processTasks(
  worker: Worker,
  work: Work,
  terms: ProcessTerms,
  stop: AbortController,
): Promise<ProcessSummary> {
  const counts = { succeeded: 0, failed: 0, parked: 0, returned: 0, settled: 0, lost: 0 };
  const runAndCount = async (task: Task): Promise<void> => {
    const outcome = await run(task, work, terms).catch((error: unknown) => {
      task.abandon();
      if (!isOperational(error)) stop.abort(error);
      return "lost" as const;
    });
    counts[outcome] += 1;
  };
  try {
    for (let task = await worker.next(); task !== undefined; task = await worker.next()) {
      worker.busyUntil(runAndCount(task));
    }
  } finally {
    await worker.idle();
  }
  stop.signal.throwIfAborted();
  return counts;
}

async function run(task: Task, work: Work, terms: ProcessTerms): Promise<keyof ProcessSummary> {
  let result: unknown;
  try {
    result = await task.trace(() => work(task));
  } catch (error) {
    return await endFailed(task, error, terms);
  }
  if (await task.settled()) return "settled";
  await task.succeed(typeof result === "string" ? remarkOf(result) : undefined);
  return "succeeded";
}

async function endFailed(
  task: Task,
  error: unknown,
  { signal, retryAfterMs }: ProcessTerms,
): Promise<keyof ProcessSummary> {
  if (await task.settled()) return "settled";
  if (isAbortOf(error, signal)) {
    await task.release();
    return "returned";
  }
  const waits = retryAfterMs === undefined ? {} : { retryAfterMs };
  const isFinal = error instanceof FinalFailureError;
  const outcome = await task.fail(remarkOf(error), isFinal ? { final: true } : waits);
  return outcome === "waiting" ? "returned" : outcome;
}
