import type { LeaseClient } from "@leasehold/client";
import {
  type Core,
  check,
  checkKey,
  checkOptions,
  checkText,
  checkWork,
  coreOf,
  type HeldLease,
  isWhole,
  LeaseLostError,
  LeaseUnavailableError,
  limits,
  readable,
  SlotDoneError,
  SlotNotDueError,
  timeToLive,
  traceNow,
} from "@leasehold/client/internal";
import { type TraceOptions, traceRules } from "../trace.ts";
import { AttemptGate, type Finished, RunAttempt, type SlotCall } from "./attempt.ts";
import { type BackfillOptions, type BackfillReport, backfillFrom, checkBackfillOptions } from "./backfill.ts";
import { canBeRegistered, JobRegistration } from "./job-registry.ts";
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
import { RunHistory, runPageSize } from "./run.ts";
import { RunForm } from "./run-form.ts";
import { checkSchedulingOptions, keepSchedule, type SchedulingOptions } from "./scheduling.ts";
import { runItemKey, runLimits, runSortKeyPrefix } from "./schema.ts";
import { skipSlot, takeBackRun } from "./skipping.ts";
import {
  checkMissedQuery,
  checkSlotTime,
  lastTime,
  type MissedQuery,
  type MissedRange,
  type MissedSlot,
  missedAmong,
  readSchedule,
  type Schedule,
  type Slot,
  slotsOf,
} from "./slots.ts";

/**
 * The runs of a job, with their history. There is one run for each slot. A slot is the scheduled time of a run.
 *
 * Promised:
 * - A slot succeeds at most once, also when its trigger is delivered twice.
 * - No two attempts at a slot hold its lease at the same time.
 * - Failed and lost attempts are counted, and limited by `maxAttempts`.
 *
 * Not promised: that the work of a slot takes effect only once. An attempt that fails, dies or loses its lease is
 * retried. So fence the writes of the work (`lease.fence()`, `lease.conditionCheck()`), or make them repeatable.
 * Different slots of a job may run at the same time. If they must not, take a lock under the job's key.
 *
 * Create one object for a job and keep it. Then heartbeats share requests, and dead attempts are detected sooner.
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
  readonly #core: Core;
  /** How long the item of a run is kept after its last write. */
  readonly #keepForMs: number;
  readonly #terms: JobRunsTerms;
  readonly #gate: AttemptGate;
  readonly #history: RunHistory;
  readonly #registration: JobRegistration | undefined;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, job: string, options: JobRunsOptions = {}) {
    this.job = checkKey(job);
    const core = coreOf(client);
    this.#core = core;
    this.#terms = checkJobRunsOptions(options, core);
    this.#keepForMs = this.#terms.keepForMs + forgettingMarginMs;
    this.#gate = new AttemptGate(core);
    this.#history = new RunHistory(core, this.job, this.#terms);
    const { schedule } = this.#terms;
    const isRegistered = schedule !== undefined && canBeRegistered(this.job);
    this.#registration = isRegistered
      ? new JobRegistration(core, this.#keepForMs, { job: this.job, ...schedule })
      : undefined;
  }

  /**
   * Runs a slot, and resolves to the work's result.
   *
   * 2 requests, one to begin and one to end, and those of the heartbeat in between. 3 to retry a lost attempt, 1 when
   * refused.
   *
   * Rejects:
   * - with SlotDoneError when the slot has succeeded or was skipped.
   * - with SlotNotDueError, before anything is sent, when the slot is more than a minute ahead of this machine's clock.
   * - with LeaseUnavailableError while another attempt at the slot runs.
   * - with {@link RunsExhaustedError} when all attempts are used up.
   * - with the work's own error, which is recorded as a failure.
   * - with LeaseLostError when another attempt has begun in the meantime. The other attempt counts.
   * - with LeaseServiceError, also when a success could not be confirmed. Then the slot may show as lost, and be retried.
   */
  async run<T>(slot: Slot, work: RunWork<T>, options: RunOptions = {}): Promise<T> {
    const finished = await this.#run(this.#checkSlot(slot), work, options);
    if (finished.state === "failed") throw finished.error;
    return finished.result;
  }

  /**
   * Like {@link JobRuns.run}, but resolves to undefined when the slot is done or running. Rejects for exhausted slots
   * as `run` does.
   */
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
   * Records that a slot is not to run, with an optional reason. A slot that is already skipped stays as it is.
   *
   * 1 request; 2 when the slot's last attempt was lost. With `by`, each is a transaction. Rejects with SlotDoneError when
   * the slot has succeeded, and with LeaseUnavailableError while an attempt runs.
   */
  async skip(slot: Slot, remark?: string, options: TraceOptions = {}): Promise<void> {
    const at = this.#checkSlot(slot);
    if (remark !== undefined) checkText("remark", remark, runLimits.remarkBytes);
    const { by } = checkOptions(options, traceRules);
    const core = this.#core;
    const now = core.clock.now();
    const ttl = timeToLive(Math.max(now, Date.parse(at)), this.#keepForMs);
    const { owner = core.owner } = this.#terms;
    const what = { key: this.job, sortKey: runSortKeyPrefix + at, action: "skip", reason: remark } as const;
    const trace = by === undefined ? undefined : traceNow(core, { ...what, by });
    await skipSlot(core, { job: this.job, slot: at, owner, remark, now, ttl }, trace);
  }

  /**
   * Opens a slot that has succeeded or was skipped by mistake, so that it can be run again. For operators. The run
   * shows as failed with the remark, it counts as missed, and a back-fill runs it. Its attempts stay counted: a slot
   * that has used up its attempts needs a larger `maxAttempts`.
   *
   * Needs the run as it was read, so that it cannot undo a later success. 1 request. Resolves to whether the slot is
   * open and has had no attempt since; false when the run has changed. When the job also has a lock with slots, open
   * that too: see `LeaseAdmin.takeBackSlot`.
   */
  async takeBack(
    run: Pick<JobRun, "slot" | "attempt" | "endedAt">,
    remark: string = "taken back by an operator",
  ): Promise<boolean> {
    check(typeof run === "object" && run !== null, "run", run, "a run as get or runs has given it");
    const {
      attempt,
      endedAt,
      slot: ran,
    } = readable("run", run, () => ({
      attempt: run.attempt,
      endedAt: run.endedAt,
      slot: run.slot,
    }));
    const slot = this.#checkSlot(ran);
    check(isWhole(attempt), "run.attempt", attempt, "the number of the latest attempt, as the run was read");
    check(endedAt === undefined || isWhole(endedAt), "run.endedAt", endedAt, "the time as the run was read");
    checkText("remark", remark, runLimits.remarkBytes);
    return await takeBackRun(this.#core, { job: this.job, slot, attempt, endedAt, remark });
  }

  /** Reads a run; undefined when the slot was neither begun nor skipped, or is not kept any more. 1 consistent read. */
  async get(slot: Slot): Promise<JobRun | undefined> {
    return await this.#history.get(checkSlotTime("slot", slot));
  }

  /**
   * Yields the job's runs in the order of their slots.
   *
   * 1 request for each 250 runs of the range, whatever their state, sent when the caller asks for more. Never reads
   * another job's runs. May lag a moment behind. An unreadable item is left out, and the client's `unreadable` event
   * names it. An attempt shows as lost when the client may take its lease over; before that, as running.
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
    for await (const run of this.#history.walk(range, states ? runPageSize : limit, false)) {
      if (states !== undefined && !states.includes(run.state)) continue;
      yield run;
      left -= 1;
      if (left <= 0) return;
    }
  }

  /**
   * Yields the slots that were due and have neither succeeded nor been skipped, oldest first. They were never begun,
   * have failed, or are lost; exhausted slots are included. A slot that is running is not missed.
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
    const { clock } = this.#core;
    // Before the first answer, this machine's clock may be slow.
    const range = checkMissedQuery(query, clock.isTold ? clock.now() : lastTime);
    this.#history.checkKept("since", range.since);
    return this.#missed(range);
  }

  /**
   * Runs the missed slots of a range, oldest first and one after the other.
   *
   * The requests of {@link JobRuns.missed}, and of {@link JobRuns.run} for each slot. Several calls at the same time
   * share the work. A slot that fails is in the report, and the next slot follows unless `stopOnFailure` is set.
   * Rejects with LeaseServiceError when the service fails. The history has the slots that were run, so another call
   * continues there.
   */
  async backfill(options: BackfillOptions, work: RunWork<unknown>): Promise<BackfillReport> {
    const { query, ...terms } = checkBackfillOptions(options);
    checkWork(work);
    const missed = this.missed(query);
    const { signal } = terms;
    return await backfillFrom(missed, terms, (slot) => this.#run(slot, work, signal ? { signal } : {}));
  }

  /**
   * Runs each slot of a schedule when it is due, for a process that goes on: one slot after the other, until the signal
   * aborts. Any number of processes may do so: each slot has one run.
   *
   * A failed attempt is repeated after `retryAfterMs`, while attempts are left. A slot that another process runs is
   * looked at again as well: that process may die. A slot that is due while this process works is run after that, or
   * left out where a later one is due, unless `catchUpMs` is given. A service that fails ends nothing.
   *
   * 1 request at the begin, if no answer has told this client the service's time, repeated each `retryAfterMs` while it
   * fails; 2 requests a run. A process that finds a slot run by another makes 1, and 1 each `retryAfterMs` until that
   * run has ended. Resolves when the signal aborts, or the schedule has no more times. Rejects with ClientClosedError
   * when the client is closed, and with a mistake in the program.
   *
   * ```ts
   * const stop = new AbortController();
   * process.once("SIGTERM", () => stop.abort());
   * const report = new JobRuns(client, "daily-report");
   * await report.schedule("cron(0 8 ? * MON-FRI *)", ({ signal }) => runReport({ signal }), {
   *   signal: stop.signal,
   *   catchUpMs: 86_400_000,
   * });
   * ```
   */
  async schedule(
    schedule: Schedule | string,
    work: RunWork<unknown>,
    options: SchedulingOptions = {},
  ): Promise<void> {
    const times = readSchedule(schedule);
    checkWork(work);
    const terms = checkSchedulingOptions(options);
    const { signal, catchUpMs } = terms;
    const { keepForMs } = this.#terms;
    const most = keepForMs / 2;
    check(catchUpMs <= most, "catchUpMs", catchUpMs, `at most ${most}, half of the time that runs are kept`);
    await keepSchedule(this.#core, times, terms, {
      keepForMs,
      ask: (signal) => this.#core.get({ key: runItemKey(this.job, ""), consistent: false }, { signal }),
      missed: (range) => this.missed(range),
      run: (slot) => this.#run(slot, work, signal ? { signal } : {}),
    });
  }

  async #run<T>(slot: string, work: RunWork<T>, options: RunOptions): Promise<Finished<T>> {
    checkWork(work);
    const { job } = this;
    const terms = checkRunOptions(options, this.#terms, this.#core);
    this.#checkDue(slot);
    const rules = { maxAttempts: this.#terms.maxAttempts, keepForMs: this.#keepForMs };
    const formOf = (): RunForm => new RunForm(job, slot, rules);
    const { sk: sortKey } = runItemKey(job, slot);
    const call = { ...terms, key: job, sortKey, data: undefined, slot, resumes: terms.reentrant, formOf };
    return await this.#gate.run(call, (lease) => this.#attempt(call, lease, work));
  }

  async #attempt<T>({ slot, signal }: SlotCall, held: HeldLease, work: RunWork<T>): Promise<Finished<T>> {
    if ((held.form as RunForm).isGivenUp) throw new LeaseLostError(this.job, "released");
    const { describeError } = this.#terms;
    const registered = this.#registration?.keep();
    // Ignored: it is awaited below, and the run's own outcome comes first.
    registered?.catch(() => {});
    const finished = await new RunAttempt({ slot, held, signal, describeError }).perform(work);
    await registered;
    return finished;
  }

  async *#missed(range: MissedRange): AsyncGenerator<MissedSlot, void, undefined> {
    if (range.since >= range.until) return;
    const { since, until } = range;
    const runs = this.#history.walk({ since, until, descending: false }, runPageSize, true);
    yield* missedAmong(this.#slotsUntilNow(range), runs);
  }

  /** The first answer has told the time when the first slot is asked for. */
  *#slotsUntilNow(range: MissedRange): Generator<string, void, undefined> {
    const now = new Date(this.#core.clock.now()).toISOString();
    yield* slotsOf({ ...range, until: range.until < now ? range.until : now });
  }

  /**
   * A slot is the time that its run is scheduled for. It can only be ahead of this clock by the difference of two
   * clocks.
   */
  #checkDue(slot: string): void {
    const dueInMs = Date.parse(slot) - this.#core.clock.now();
    if (dueInMs > limits.slotAheadMs) throw new SlotNotDueError(this.job, slot, dueInMs);
  }

  /** Validates a slot. If the slot had run, the history would still have it. */
  #checkSlot(slot: Slot): string {
    const text = checkSlotTime("slot", slot);
    this.#history.checkKept("slot", text);
    return text;
  }
}

/** Items are kept this much longer than promised: clocks may differ, and requests may arrive late. */
const forgettingMarginMs = 60 * 60 * 1000;

/** Gives undefined when another caller runs, has run or has skipped the slot. */
function unlessTaken(error: unknown): undefined {
  if (error instanceof LeaseUnavailableError || error instanceof SlotDoneError) return undefined;
  throw error;
}
