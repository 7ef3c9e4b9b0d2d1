/** Runs a job's slots as they come due, in a process that goes on. */
import {
  aFunction,
  ClientClosedError,
  type Core,
  checkOptions,
  checkSignal,
  duration,
  isOperational,
  LeaseUnavailableError,
  limits,
  mayPass,
  PriorityQueue,
  pauseWhileOpen,
  type Rules,
  SlotDoneError,
} from "@leasehold/client/internal";
import type { Finished } from "./attempt.ts";
import { RunsExhaustedError } from "./errors.ts";
import { lastTime, type MissedQuery, type MissedSlot, type Schedule, slotsOf } from "./slots.ts";

/** Options of {@link JobRuns.schedule}. */
export interface SchedulingOptions {
  /** Ends the schedule, and aborts the work of the run that is under way. @default - none */
  readonly signal?: AbortSignal;
  /**
   * Slots that were missed are run, oldest first, if they are no older than this, in milliseconds: at the begin, and
   * after a suspension of this machine; at most half of `keepForMs`. 0 runs the latest due slot alone, and none at the
   * begin. @default 0
   */
  readonly catchUpMs?: number;
  /** A run begins up to this much after its slot, at random, so that not all jobs begin at once, in milliseconds. @default 0 */
  readonly jitterMs?: number;
  /**
   * How long after a failure, or a look at a slot that another process runs, this process looks at it again, in
   * milliseconds, from 1 second. @default 60000
   */
  readonly retryAfterMs?: number;
  /** Learns why an attempt failed, or why the service could not be asked; `slot` is undefined then. @default - writes it to the standard error */
  readonly onFailure?: (error: unknown, slot: string | undefined) => void;
}

const leastRetryMs = 1_000;
const schedulingRules: Rules<SchedulingOptions> = {
  signal: checkSignal,
  catchUpMs: duration(0),
  jitterMs: duration(0),
  retryAfterMs: duration(leastRetryMs),
  onFailure: aFunction,
};

/** The options of a schedule, validated and complete. */
type SchedulingTerms = Required<Omit<SchedulingOptions, "signal">> & Pick<SchedulingOptions, "signal">;

/** Validates the options of a schedule. */
export function checkSchedulingOptions(options: SchedulingOptions): SchedulingTerms {
  const given = checkOptions(options, schedulingRules);
  return { catchUpMs: 0, jitterMs: 0, retryAfterMs: 60_000, onFailure: tellFailure, ...given };
}

/** A sleep ends at least so often, to see whether the clock was set, or the machine was suspended. */
const longestSleepMs = 60_000;

/** What a schedule does with slots. */
export interface ScheduledRuns {
  readonly keepForMs: number;
  /** Reads something, so that an answer tells the service's time. */
  ask(signal: AbortSignal | undefined): Promise<unknown>;
  missed(range: Pick<MissedQuery, "schedule" | "since">): AsyncIterable<MissedSlot>;
  run(slot: string): Promise<Finished<unknown>>;
}

/** The slots that are to be tried. */
class WaitingSlots {
  /** By the time at which each is tried. */
  readonly #later = new PriorityQueue<string>();
  /** Those whose time has come, by the slots themselves. */
  readonly #due = new PriorityQueue<string>();

  set(slot: string, time: number): void {
    this.#later.set(slot, time);
  }

  /** When one is to be tried next; infinite if there is none. */
  get soonest(): number {
    const times = [this.#later.first, this.#due.first].flatMap((first) => first?.priority ?? []);
    return Math.min(...times);
  }

  /** Takes the oldest slot whose time has come; undefined if there is none. */
  take(now: number): string | undefined {
    for (let next = this.#later.first; next !== undefined && next.priority <= now; next = this.#later.first) {
      this.#later.delete(next.item);
      this.#due.set(next.item, Date.parse(next.item));
    }
    const oldest = this.#due.first;
    // A clock that was set back shows an earlier time than the slot.
    return oldest !== undefined && oldest.priority <= now ? this.#due.take() : undefined;
  }
}

/**
 * Runs each slot when it is due, one after the other, until the signal aborts or the schedule has no more times. Rejects
 * with ClientClosedError, and with mistakes in the program.
 */
export async function keepSchedule(
  core: Core,
  schedule: Schedule,
  terms: SchedulingTerms,
  runs: ScheduledRuns,
): Promise<void> {
  const { signal, catchUpMs, jitterMs, retryAfterMs, onFailure } = terms;
  const { clock, randomness } = core;
  const at = (time: number): string => new Date(time).toISOString();
  const waiting = new WaitingSlots();
  const between = (after: number, until: number): Iterable<string> =>
    slotsOf({ schedule, since: at(after + 1), until: at(until) });

  /** Takes note of the slots that have come due. */
  const addDue = (after: number, now: number): void => {
    const due = [...between(after, now + 1)];
    const wanted =
      catchUpMs === 0 ? due.slice(-1) : due.filter((slot) => Date.parse(slot) >= now - catchUpMs);
    for (const slot of wanted) waiting.set(slot, Date.parse(slot) + jitterMs * randomness.fraction());
  };

  const tryNow = async (slot: string): Promise<void> => {
    const later = (): void => waiting.set(slot, clock.now() + retryAfterMs);
    // It may have run, and its run may be forgotten.
    if (Date.parse(slot) < clock.now() - runs.keepForMs) return;
    try {
      const finished = await runs.run(slot);
      if (signal?.aborted) return;
      if (finished.state === "succeeded") return;
      later();
      onFailure(finished.error, slot);
    } catch (error) {
      if (error instanceof SlotDoneError || error instanceof RunsExhaustedError) return;
      // The process that runs it may die.
      if (error instanceof LeaseUnavailableError) later();
      else if (signal?.aborted) return;
      else if (!isOperational(error) || error instanceof ClientClosedError) throw error;
      else {
        later();
        onFailure(error, slot);
      }
    }
  };

  const began = clock.monotonic();
  await tellTime(core, terms, runs);
  // A slot that is due at this very moment is not missed.
  let seenUntil = clock.now() - (clock.monotonic() - began) - 1;
  let catchUpAt = catchUpMs > 0 ? seenUntil : Number.POSITIVE_INFINITY;
  while (!signal?.aborted) {
    const now = clock.now();
    if (catchUpAt <= now) {
      try {
        for await (const { slot, run } of runs.missed({ schedule, since: at(now - catchUpMs) }))
          if (!run?.exhausted) waiting.set(slot, Date.parse(slot));
        catchUpAt = Number.POSITIVE_INFINITY;
      } catch (error) {
        if (!isOperational(error) || error instanceof ClientClosedError) throw error;
        catchUpAt = clock.now() + retryAfterMs;
        onFailure(error, undefined);
      }
    }
    // A clock that was set back shows slots again. Those that have run are done.
    if (now < seenUntil - limits.slotAheadMs) seenUntil = now;
    addDue(seenUntil, now);
    seenUntil = Math.max(seenUntil, now);
    const slot = waiting.take(now);
    if (slot !== undefined) {
      await tryNow(slot);
      continue;
    }
    const [next] = between(seenUntil, lastTime);
    const wakeAt = Math.min(
      next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next),
      catchUpAt,
      waiting.soonest,
    );
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    await pauseWhileOpen(core, Math.max(1, Math.min(wakeAt - now, longestSleepMs)), signal);
  }
}

/**
 * Asks until an answer has come: before it, this machine's clock may be wrong, and slots would be run too early, and those
 * before them never.
 */
async function tellTime(
  core: Core,
  { signal, retryAfterMs, onFailure }: SchedulingTerms,
  runs: ScheduledRuns,
): Promise<void> {
  while (!core.clock.isTold && !signal?.aborted) {
    try {
      await runs.ask(signal);
      return;
    } catch (error) {
      if (signal?.aborted) return;
      if (!isOperational(error) || error instanceof ClientClosedError) throw error;
      // The runs meet the same error, and tell of it.
      if (!mayPass(error)) return;
      onFailure(error, undefined);
    }
    await pauseWhileOpen(core, retryAfterMs, signal);
  }
}

function tellFailure(error: unknown, slot: string | undefined): void {
  console.error(
    slot === undefined ? "missed runs cannot be looked for:" : `the run of ${slot} failed:`,
    error,
  );
}
