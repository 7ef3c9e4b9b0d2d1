import {
  type Core,
  check,
  type ItemKey,
  query,
  unlessUnreadable,
  unreadableIn,
} from "@leasehold/client/internal";
import { isBeyond, type RunRange, runsIn } from "./expressions.ts";
import type { JobRunsTerms } from "./options.ts";
import { type JobRun, type ReadContext, readRun } from "./run.ts";
import { runItemKey } from "./schema.ts";

/** Reads a job's runs. A slot older than `keepForMs` is refused: the table may have forgotten that it has run. */
export class RunHistory {
  readonly #core: Core;
  readonly #job: string;
  readonly #terms: JobRunsTerms;

  constructor(core: Core, job: string, terms: JobRunsTerms) {
    this.#core = core;
    this.#job = job;
    this.#terms = terms;
  }

  /** Reads one run: 1 consistent read. */
  async get(slot: string): Promise<JobRun | undefined> {
    const request = { key: runItemKey(this.#job, slot), consistent: true };
    const item = await this.#core.get(request);
    return readRun(item, this.#readContext());
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
    let after: ItemKey | undefined;
    do {
      const asked = after === undefined ? request : { ...request, after };
      const page = await query(this.#core, asked);
      const context = this.#readContext();
      for (const item of page.items) {
        if (isBeyond(range, item)) return;
        const run = unlessUnreadable(() => readRun(item, context), unreadableIn(this.#core));
        if (run !== undefined) yield run;
      }
      after = page.next;
    } while (after !== undefined);
  }

  /** The earliest slot that is certainly remembered if it was run, in epoch milliseconds. */
  keptSince(): number {
    return this.#core.clock.now() - this.#terms.keepForMs;
  }

  /** Refuses a slot that may have run and been forgotten. */
  checkKept(option: string, slot: string): void {
    const since = this.keptSince();
    const allowed = `${new Date(since).toISOString()} or later: older runs are forgotten (keepForMs)`;
    check(Date.parse(slot) >= since, option, slot, allowed);
  }

  #readContext(): ReadContext {
    const { detector } = this.#core;
    return { detector, maxAttempts: this.#terms.maxAttempts };
  }
}

/** One request reads at most this many runs. */
export const runPageSize = 250;
