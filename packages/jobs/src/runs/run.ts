/**
 * A run, as its item shows it.
 * No write marks `running` or `lost`: a reader tells them by the lease in the item.
 */
import type { Item, LeaseRecord } from "@leasehold/client";
import {
  attributeNames,
  type Core,
  check,
  type ExpiryDetector,
  jsonIn,
  optionalTextIn,
  optionalTimeIn,
  optionalWholeIn,
  pagesOf,
  query,
  readRecord,
  textIn,
  unlessUnreadable,
  unreadableIn,
} from "@leasehold/client/internal";
import { type JobRunAttempt, storedAttempts } from "./attempt-history.ts";
import { isBeyond, type RunRange, runsIn } from "./expressions.ts";
import type { RunRules } from "./run-form.ts";
import { runAttributeNames, runItemKey, runSortKeyPrefix } from "./schema.ts";

/**
 * The state of a run.
 *
 * - `running`: an attempt is in progress.
 * - `succeeded`: the slot is done, and is never run again.
 * - `failed`: the last attempt ended with an error. It is retried while attempts are left.
 * - `lost`: the last attempt's lease ended without an outcome. It is retried while attempts are left.
 * - `skipped`: a caller has recorded that the slot is not to run.
 */
export type RunState = "running" | "succeeded" | "failed" | "lost" | "skipped";

/** One run of a job, as the history shows it: its slot, and the latest attempt at it. */
export interface JobRun {
  readonly job: string;
  /** The time that the run was scheduled for. */
  readonly slot: string;
  readonly state: RunState;
  /** The number of the latest attempt, from 1; 0 for a slot that was skipped before its first attempt. */
  readonly attempt: number;
  /**
   * How many earlier attempts ended without an outcome and were taken over. Attempts that an operator broke are not
   * counted.
   */
  readonly lostAttempts: number;
  /** Whether all attempts are used up and none succeeded. Skip the slot then, or raise `maxAttempts`. */
  readonly exhausted: boolean;
  /** The owner of the latest attempt, or of the call that skipped the slot. */
  readonly owner: string | undefined;
  /** Grows with every attempt at this slot. Numbers of different slots cannot be compared. */
  readonly fencingToken: number | undefined;
  /** When the latest attempt began, in epoch milliseconds of its owner's clock. */
  readonly startedAt: number | undefined;
  /** When it ended. For a lost attempt: when its lease ended, while the item still has the lease. */
  readonly endedAt: number | undefined;
  /** When the lease of a running attempt expires unless it is renewed. */
  readonly expiresAt: number | undefined;
  /** The remark of the work, of its error, or of the skip. While an attempt runs: the remark of the attempt before. */
  readonly remark: string | undefined;
  /** The last progress report of the latest attempt. */
  readonly progress: unknown;
  /**
   * The attempts, oldest first: the latest, and up to 10 before it that have failed or were lost. An attempt that an
   * operator broke or took back is left out as soon as another has begun.
   */
  readonly attempts: readonly JobRunAttempt[];
}

/** The context that a reader needs to determine the state of a run. */
interface ReadContext {
  readonly detector: ExpiryDetector;
  readonly maxAttempts: number;
}

/** Reads a run; undefined for a missing item, and for a run that never began. Throws LeaseItemError. */
export function readRun(item: Item | undefined, context: ReadContext): JobRun | undefined {
  if (item === undefined) return undefined;
  const attempt = optionalWholeIn(item, runAttributeNames.attempt) ?? 0;
  const record = readRecord(item);
  const state = runStateOf(item, record, context.detector);
  // A claim that was given up before it took effect leaves only its revoked token.
  if (attempt === 0 && state !== "skipped") return undefined;
  const isOpen = state === "failed" || state === "lost";
  const shown = {
    state,
    attempt,
    owner: optionalTextIn(item, attributeNames.owner),
    startedAt: optionalTimeIn(item, attributeNames.acquiredAt),
    endedAt:
      optionalTimeIn(item, runAttributeNames.endedAt) ?? (state === "lost" ? record?.expiresAt : undefined),
    remark: optionalTextIn(item, runAttributeNames.remark),
  };
  return {
    ...shown,
    job: textIn(item, attributeNames.partitionKey),
    slot: textIn(item, attributeNames.sortKey).slice(runSortKeyPrefix.length),
    lostAttempts: optionalWholeIn(item, runAttributeNames.lostAttempts) ?? 0,
    exhausted: isOpen && attempt >= context.maxAttempts,
    fencingToken: optionalWholeIn(item, attributeNames.fence),
    expiresAt: state === "running" ? record?.expiresAt : undefined,
    progress: jsonIn(item, runAttributeNames.progress),
    attempts: shownAttempts(item, shown),
  };
}

/** The stored attempts, and the latest as the run shows it; a skip stores who has skipped the slot in its place. */
function shownAttempts(
  item: Item,
  { state, ...latest }: Omit<JobRunAttempt, "state"> & { readonly state: RunState },
): readonly JobRunAttempt[] {
  const stored = storedAttempts(item);
  if (state === "skipped") return stored;
  const earlier = stored.filter(({ attempt }) => attempt < latest.attempt);
  const same = stored.find(({ attempt }) => attempt === latest.attempt);
  const { endedAt = same?.endedAt } = latest;
  // The remark of a lost or running attempt is that of the attempt before.
  const remark = state === "succeeded" || state === "failed" ? latest.remark : undefined;
  return [...earlier, { ...latest, state, endedAt, remark }];
}

function runStateOf(item: Item, record: LeaseRecord | undefined, detector: ExpiryDetector): RunState {
  if (record !== undefined) return detector.judge(record).reason === undefined ? "running" : "lost";
  const state = item[runAttributeNames.state];
  if (state === "succeeded" || state === "failed" || state === "skipped") return state;
  // A process that adopted the lease completes or releases it without an outcome.
  return item[attributeNames.doneSlot] === undefined ? "lost" : "succeeded";
}

/** Reads a job's runs. A slot older than `keepForMs` is refused: the table may have forgotten that it has run. */
export class RunHistory {
  readonly #core: Core;
  readonly #job: string;
  readonly #rules: RunRules;

  constructor(core: Core, job: string, rules: RunRules) {
    this.#core = core;
    this.#job = job;
    this.#rules = rules;
  }

  /** Reads one run: 1 consistent read. */
  async get(slot: string): Promise<JobRun | undefined> {
    const request = { key: runItemKey(this.#job, slot), consistent: true };
    return this.#read(await this.#core.get(request));
  }

  /** Goes through a range by pages of at most `limit` runs: 1 request each. Leaves out items that cannot be read. */
  async *walk(
    bounds: Omit<RunRange, "job">,
    limit: number,
    consistent: boolean,
  ): AsyncGenerator<JobRun, void, undefined> {
    const range = { job: this.#job, ...bounds };
    const { descending } = range;
    const request = { ...runsIn(range), descending, limit: Math.min(limit, runPageSize), consistent };
    for await (const { items } of pagesOf((after) => query(this.#core, { ...request, ...after }))) {
      for (const item of items) {
        if (isBeyond(range, item)) return;
        const run = unlessUnreadable(() => this.#read(item), unreadableIn(this.#core));
        if (run !== undefined) yield run;
      }
    }
  }

  /** Refuses a slot that may have run and been forgotten. */
  checkKept(option: string, slot: string): void {
    const since = this.#core.clock.now() - this.#rules.keepForMs;
    const allowed = `${new Date(since).toISOString()} or later: older runs are forgotten (keepForMs)`;
    check(Date.parse(slot) >= since, option, slot, allowed);
  }

  #read(item: Item | undefined): JobRun | undefined {
    const { detector } = this.#core;
    return readRun(item, { detector, maxAttempts: this.#rules.maxAttempts });
  }
}

/** One request reads at most this many runs. */
export const runPageSize = 250;
