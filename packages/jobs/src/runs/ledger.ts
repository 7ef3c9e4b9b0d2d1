import {
  callStore,
  check,
  type ItemKey,
  type ProtocolContext,
  unlessUnreadable,
  unreadableIn,
} from "@leasehold/client/internal";
import { isBeyond, type RunRange, runsIn } from "./expressions.ts";
import type { JobRunsTerms } from "./options.ts";
import { type JobRun, type Reading, readRun } from "./run.ts";
import { runItemKey } from "./schema.ts";

/** How many runs one request reads at most. */
export const pageSize = 250;

/** A job's runs as they can be read, and how far back they are remembered. */
export class Ledger {
  readonly #context: ProtocolContext;
  readonly #job: string;
  readonly #terms: JobRunsTerms;

  constructor(context: ProtocolContext, job: string, terms: JobRunsTerms) {
    this.#context = context;
    this.#job = job;
    this.#terms = terms;
  }

  /** Reads one run: 1 consistent read. */
  async get(slot: string): Promise<JobRun | undefined> {
    const request = { key: runItemKey(this.#job, slot), consistent: true };
    const item = await callStore(this.#context, (store, call) => store.get(request, call));
    return readRun(item, this.#reading());
  }

  /** Walks through a range by pages of at most `limit` runs: 1 request each. Leaves out what it cannot read. */
  async *walk(
    bounds: Omit<RunRange, "job">,
    limit: number,
    consistent: boolean,
  ): AsyncGenerator<JobRun, void, undefined> {
    const range = { job: this.#job, ...bounds };
    const { descending } = range;
    const request = { ...runsIn(range), descending, limit: Math.min(limit, pageSize), consistent };
    let after: ItemKey | undefined;
    do {
      const asked = after === undefined ? request : { ...request, after };
      const page = await callStore(this.#context, (store, call) => store.query(asked, call));
      const reading = this.#reading();
      for (const item of page.items) {
        if (isBeyond(range, item)) return;
        const run = unlessUnreadable(() => readRun(item, reading), unreadableIn(this.#context));
        if (run !== undefined) yield run;
      }
      after = page.next;
    } while (after !== undefined);
  }

  /** The first time that is sure to be remembered, if it was ever run, in epoch milliseconds. */
  keptSince(): number {
    return this.#context.clock.now() - this.#terms.keepForMs;
  }

  /** Refuses a slot that may have run and been forgotten since. */
  checkKept(option: string, slot: string): void {
    const since = this.keptSince();
    const allowed = `${new Date(since).toISOString()} or later: what is older is forgotten (keepForMs)`;
    check(Date.parse(slot) >= since, option, slot, allowed);
  }

  #reading(): Reading {
    const { clock, clockSkewMs } = this.#context;
    return { now: clock.now(), clockSkewMs, maxAttempts: this.#terms.maxAttempts };
  }
}
