import type { LeaseClient } from "@leasehold/client";
import {
  Acquirer,
  type ClientInternals,
  check,
  checkKey,
  checkText,
  internalsOf,
  isWhole,
  Judge,
  Lease,
  LeaseLostError,
  LeaseUnavailableError,
  limits,
  type ProtocolContext,
  SlotDoneError,
  SlotNotDueError,
  type Tenancy,
  timeToLive,
} from "@leasehold/client/internal";
import { Attempt, type Finished } from "./attempt.ts";
import { type BackfillOptions, type BackfillReport, backfillFrom, checkBackfillOptions } from "./backfill.ts";
import { Entrance, type SlotCall } from "./entrance.ts";
import { Ledger, pageSize } from "./ledger.ts";
import {
  checkMissedQuery,
  type MissedQuery,
  type MissedRange,
  type MissedSlot,
  missedAmong,
  slotsOf,
} from "./missed.ts";
import {
  checkJobRunsOptions,
  checkRunOptions,
  checkRunQuery,
  type JobRunsOptions,
  type JobRunsTerms,
  type RunOptions,
  type RunQuery,
  type RunWork,
} from "./options.ts";
import type { JobRun } from "./run.ts";
import { RunStore } from "./run-store.ts";
import { runItemKey, runLimits } from "./schema.ts";
import { skipSlot, takeBackRun } from "./skipping.ts";
import { checkSlotTime, type Slot } from "./slots.ts";

/** Items stay this much longer than promised: for clocks that differ, and for requests that were on their way. */
const forgettingMarginMs = 60 * 60 * 1000;

/**
 * The ledger of a job's runs, one for each slot: the time that a run is scheduled for.
 *
 * Promised: a slot is never run to success twice, whatever is delivered twice, and no two attempts at it hold their
 * lease at once; failed and lost attempts are counted, and bounded. Not promised: that a slot's work has no effect
 * twice. An attempt that fails, dies or loses its lease half-way is retried, so fence what the work writes
 * (`lease.fence()`, `lease.conditionCheck()`) or make it repeatable. Different slots of a job may run side by side:
 * take a lock of the job's key where they must not.
 *
 * Make one for a job and keep it: heartbeats travel together, and dead attempts are recognised by having been watched.
 * Methods reject with InvalidOptionsError before they send anything, and with the client's service errors.
 *
 * ```ts
 * const report = new JobRuns(client, "daily-report", { maxAttempts: 3 });
 * await report.tryRun("2026-11-21T08:00:00.000Z", async ({ signal, progress, attempt }) => {
 *   console.log("attempt", attempt, signal.aborted);
 *   progress({ pages: 3 });
 * });
 * ```
 */
export class JobRuns {
  readonly job: string;
  readonly #client: ClientInternals;
  readonly #context: ProtocolContext;
  readonly #terms: JobRunsTerms;
  readonly #store: RunStore;
  readonly #entrance: Entrance;
  readonly #judge: Judge;
  readonly #ledger: Ledger;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, job: string, options: JobRunsOptions = {}) {
    this.job = checkKey(job);
    this.#client = internalsOf(client);
    this.#terms = checkJobRunsOptions(options, this.#client);
    const { context } = this.#client;
    const retentionMs = this.#terms.keepForMs + forgettingMarginMs;
    this.#store = new RunStore(context.store, {
      maxAttempts: this.#terms.maxAttempts,
      keepForMs: retentionMs,
    });
    this.#context = { ...context, store: this.#store, retentionMs };
    this.#judge = new Judge(context.clock, context.clockSkewMs);
    this.#entrance = new Entrance(new Acquirer(this.#context, this.#judge));
    this.#ledger = new Ledger(context, this.job, this.#terms);
  }

  /**
   * Runs a slot, and gives the work's result.
   *
   * 2 requests, one to begin and one to end, and the heartbeat's in between; 3 to retry a lost attempt; 1 when refused.
   * Rejects with SlotDoneError when the slot has succeeded or was skipped, with SlotNotDueError (before anything is
   * sent) when it lies ahead of this machine's clock by more than a minute, with LeaseUnavailableError while another
   * attempt at it runs, with {@link RunsExhaustedError} when all attempts are spent; with the work's own error, which
   * is recorded as a failure; with LeaseLostError when somebody else has begun another attempt meanwhile, which stands
   * in place of this one; and with LeaseServiceError, also when a success could not be confirmed: then the slot may
   * show as lost, and be retried.
   */
  async run<T>(slot: Slot, work: RunWork<T>, options: RunOptions = {}): Promise<T> {
    const finished = await this.#run(this.#checkSlot(slot), work, options);
    if (finished.state === "failed") throw finished.error;
    return finished.result;
  }

  /** Like {@link JobRuns.run}, but gives undefined when the slot is done, or another attempt at it runs. Exhausted slots are refused all the same. */
  async tryRun<T>(
    slot: Slot,
    work: RunWork<T>,
    options: RunOptions = {},
  ): Promise<{ readonly result: T } | undefined> {
    const finished = await this.#run(this.#checkSlot(slot), work, options).catch(unlessTaken);
    if (finished === undefined) return undefined;
    if (finished.state === "failed") throw finished.error;
    return { result: finished.result };
  }

  /**
   * Records that a slot is not to run, for a reason; one that has been skipped already stays as it is.
   *
   * 1 request; 2 when the slot's last attempt was lost. Rejects with SlotDoneError when it has succeeded, and with
   * LeaseUnavailableError while an attempt runs.
   */
  async skip(slot: Slot, remark?: string): Promise<void> {
    const at = this.#checkSlot(slot);
    if (remark !== undefined) checkText("remark", remark, runLimits.remarkBytes);
    const { clock, retentionMs } = this.#context;
    const now = clock.now();
    const ttl = timeToLive(Math.max(now, Date.parse(at)), retentionMs);
    const { owner } = this.#terms.acquisition;
    await skipSlot(this.#client.context, this.#judge, { job: this.job, slot: at, owner, remark, now, ttl });
  }

  /**
   * Opens a slot that has succeeded or was skipped, so that it can be run again. For an operator, where that was a
   * mistake: the run shows as failed with the remark, it is missed, and a back-fill runs it. Its attempts stay counted: a
   * slot that has had all of them needs a larger `maxAttempts`.
   *
   * Needs the run as it was read, so that it cannot hit another success. 1 request. Resolves to whether the slot is
   * open with no attempt since: false where the run is not as it was seen. A job whose lock goes by slots, too, has to be
   * let in there as well: see `client.takeBackSlot`.
   */
  async takeBack(
    run: Pick<JobRun, "slot" | "attempt" | "endedAt">,
    remark: string = "taken back by an operator",
  ): Promise<boolean> {
    check(typeof run === "object" && run !== null, "run", run, "a run as get or runs has given it");
    const { attempt, endedAt } = run;
    const slot = this.#checkSlot(run.slot);
    check(isWhole(attempt), "run.attempt", attempt, "the number of the latest attempt, as the run was read");
    check(endedAt === undefined || isWhole(endedAt), "run.endedAt", endedAt, "the time as the run was read");
    checkText("remark", remark, runLimits.remarkBytes);
    return await takeBackRun(this.#client.context, { job: this.job, slot, attempt, endedAt, remark });
  }

  /** Reads a run; undefined for a slot that nobody has begun or skipped, and for one that is kept no more. 1 consistent read. */
  async get(slot: Slot): Promise<JobRun | undefined> {
    return await this.#ledger.get(checkSlotTime("slot", slot));
  }

  /**
   * Goes through the job's runs in the order of their slots, by pages as they are wanted.
   *
   * 1 request for each 250 runs of the range, whatever their state; never reads another job's. May lag a moment
   * behind. An item that cannot be read is left out, and the client's `unreadable` event names it. Whether an attempt is running or lost is judged by this reader's clock.
   *
   * ```ts
   * const report = new JobRuns(client, "daily-report");
   * for await (const run of report.runs({ state: ["failed", "lost"], descending: true, limit: 10 })) {
   *   console.log(run.slot, run.state, run.attempt, run.remark);
   * }
   * ```
   */
  async *runs(query: RunQuery = {}): AsyncGenerator<JobRun, void, undefined> {
    const { states, limit, ...range } = checkRunQuery(query);
    let left = limit;
    for await (const run of this.#ledger.walk(range, states ? pageSize : limit, false)) {
      if (states !== undefined && !states.includes(run.state)) continue;
      yield run;
      left -= 1;
      if (left <= 0) return;
    }
  }

  /**
   * Goes through the slots that were due and that have neither succeeded nor been skipped, oldest first: never begun,
   * failed or lost, exhausted ones included. A slot that runs at the moment is not missed.
   *
   * 1 consistent request for each 250 runs of the range. Throws InvalidOptionsError at once.
   *
   * ```ts
   * const report = new JobRuns(client, "daily-report");
   * const schedule = { next: (after: Date) => new Date(Math.floor(after.getTime() / 3_600_000 + 1) * 3_600_000) };
   * const since = new Date(Date.now() - 86_400_000);
   * for await (const { slot, run } of report.missed({ schedule, since })) console.log(slot, run?.state ?? "never begun");
   * ```
   */
  missed(query: MissedQuery): AsyncGenerator<MissedSlot, void, undefined> {
    const range = checkMissedQuery(query, this.#context.clock.now());
    this.#ledger.checkKept("since", range.since);
    return this.#missed(range);
  }

  /**
   * Runs the missed slots of a range, oldest first and one after the other.
   *
   * The requests of {@link JobRuns.missed}, and of {@link JobRuns.run} for each slot. Several at once share the work.
   * A slot that fails is in the report, and the next one follows unless `stopOnFailure`. Rejects with
   * LeaseServiceError when the service fails: what was run is in the ledger, and calling it again goes on from there.
   */
  async backfill(options: BackfillOptions, work: RunWork<unknown>): Promise<BackfillReport> {
    const { query, ...terms } = checkBackfillOptions(options);
    checkWork(work);
    const missed = this.missed(query);
    const { signal } = terms;
    return await backfillFrom(missed, terms, (slot) => this.#run(slot, work, signal ? { signal } : {}));
  }

  async #run<T>(slot: string, work: RunWork<T>, options: RunOptions): Promise<Finished<T>> {
    checkWork(work);
    const { job } = this;
    const terms = checkRunOptions(options, this.#terms, this.#client);
    this.#checkDue(slot);
    const place = runItemKey(job, slot).sk;
    const call = { ...terms, key: job, place, data: undefined, slot, resumes: terms.reentrant };
    return await this.#entrance.through(call, (tenancy) => this.#attempt(call, tenancy, work));
  }

  async #attempt<T>({ slot, signal }: SlotCall, tenancy: Tenancy, work: RunWork<T>): Promise<Finished<T>> {
    const { job } = this;
    const lease = new Lease(this.#context, tenancy, this.#client.format, slot);
    const passenger = this.#store.passenger(lease.token);
    if (passenger === undefined) throw new LeaseLostError(job, "released");
    const { clock } = this.#context;
    const { describeError } = this.#terms;
    const attempt = new Attempt({ job, slot, lease, passenger, signal, clock, describeError });
    try {
      return await attempt.perform(work);
    } finally {
      this.#store.dismiss(lease.token);
    }
  }

  async *#missed(range: MissedRange): AsyncGenerator<MissedSlot, void, undefined> {
    if (range.since >= range.until) return;
    const { since, until } = range;
    const runs = this.#ledger.walk({ since, until, descending: false }, pageSize, true);
    yield* missedAmong(slotsOf(range), runs);
  }

  /** A slot is the time that its run was scheduled for: no run can be due before, but by the difference of two clocks. */
  #checkDue(slot: string): void {
    const dueInMs = Date.parse(slot) - this.#context.clock.now();
    if (dueInMs > limits.slotAheadMs) throw new SlotNotDueError(this.job, slot, dueInMs);
  }

  /** Gives a slot that the ledger is sure to remember, if it was ever run. */
  #checkSlot(slot: Slot): string {
    const text = checkSlotTime("slot", slot);
    this.#ledger.checkKept("slot", text);
    return text;
  }
}

function checkWork(work: unknown): void {
  check(typeof work === "function", "work", work, "a function of the run");
}

/** Gives undefined for a slot that somebody else runs, has run or has skipped. */
function unlessTaken(error: unknown): undefined {
  if (error instanceof LeaseUnavailableError || error instanceof SlotDoneError) return undefined;
  throw error;
}
