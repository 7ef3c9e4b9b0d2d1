import type { Item, LeaseRecord } from "@leasehold/client";
import {
  type Availability,
  type Cancellation,
  cancel,
  type Ending,
  type Grant,
  LockForm,
  optionalWholeIn,
  type Renewal,
  release,
  type Write,
} from "@leasehold/client/internal";
import { attemptsWith, attemptsWithLost, type JobRunAttempt } from "./attempt-history.ts";
import { RunsExhaustedError } from "./errors.ts";
import {
  cancelsRun,
  claim,
  givesRunUp,
  keepForSlot,
  type RunOutcome,
  recordOutcome,
  report,
  storeAttempts,
} from "./expressions.ts";
import { runAttributeNames, runItemKey } from "./schema.ts";

/**
 * The lease of one attempt at a run. The lease's own writes also update the history.
 *
 * The claim counts the attempt, renewals write reports, and the release writes the outcome. So a run costs only the
 * requests of its lease, and lost and late replies are handled for the history as they are for the lease.
 */
export class RunForm extends LockForm {
  /** JSON text of the latest report that no renewal has written yet. */
  progress: string | undefined;
  /** The remark of a success. */
  remark: string | undefined;
  outcome: Omit<RunOutcome, "progress"> | undefined;
  readonly retentionMs: number;
  /** An attempt is one call's own: another call of its owner takes it over, or waits. */
  readonly shareKey = false;
  readonly #slot: string;
  readonly #rules: RunRules;
  #attempt = 0;
  /** The item as it was judged last, and since the claim as its last answer shows it. */
  #seen: Item | undefined;
  #end: "none" | "withOutcome" | "without" = "none";

  constructor(job: string, slot: string, rules: RunRules) {
    super(job, runItemKey(job, slot).sk);
    this.#slot = slot;
    this.#rules = rules;
    this.retentionMs = rules.keepForMs;
  }

  /** The number of the attempt; known when its lease is held. */
  get attempt(): number {
    return this.#attempt;
  }

  /** Whether a write with the outcome has been sent. */
  get isOutcomeSent(): boolean {
    return this.#end === "withOutcome";
  }

  /** Whether the lease was released before there was an outcome. */
  get isGivenUp(): boolean {
    return this.#end === "without";
  }

  get hasReport(): boolean {
    return this.progress !== undefined;
  }

  override acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const { maxAttempts } = this.#rules;
    const [lost] = passed;
    const attempts = lost && attemptsWithLost(this.#seen, lost, grant.acquiredAt);
    return this.#kept(
      claim(super.acquire(grant, passed), { maxAttempts, isTakeover: lost !== undefined, attempts }),
    );
  }

  override renew(renewal: Renewal): Write {
    const write = super.renew(renewal);
    return this.#kept(this.progress === undefined ? write : report(write, this.progress));
  }

  override release(ending: Ending): Write {
    const { slot, now } = ending;
    // Without an outcome the work, or the end of the client, ends the lease. Work that completes it has succeeded.
    const completed = { state: "succeeded", endedAt: now, remark: this.remark } as const;
    const outcome = this.outcome ?? (slot === undefined ? undefined : completed);
    if (outcome === undefined) {
      this.#end = "without";
      const lost = { state: "lost", endedAt: now, remark: undefined } as const;
      return this.#ended(release(this, ending, givesRunUp), ending, lost);
    }
    this.#end = "withOutcome";
    const write = recordOutcome(this, ending, { ...outcome, progress: this.progress }, this.#slot);
    return this.#ended(write, ending, outcome);
  }

  override cancel(cancellation: Cancellation): Write {
    return this.#kept(cancel(this, cancellation, cancelsRun));
  }

  /** Throws RunsExhaustedError when only the limit on attempts refuses a claim. */
  override judge(...asked: Parameters<LockForm["judge"]>): Availability {
    const [item] = asked;
    this.#seen = item;
    const availability = super.judge(...asked);
    const attempts = (item && optionalWholeIn(item, runAttributeNames.attempt)) ?? 0;
    const { maxAttempts } = this.#rules;
    if (availability.claimableInMs > 0 || attempts < maxAttempts) return availability;
    const remark = item?.[runAttributeNames.remark];
    throw new RunsExhaustedError(this.key, this.#slot, {
      attempts,
      maxAttempts,
      remark: remark === undefined ? undefined : String(remark),
    });
  }

  /** A report that was set after the write was sent waits for the next renewal. */
  confirmed(item: Item | undefined): void {
    this.#seen = item;
    this.#attempt = Number(item?.[runAttributeNames.attempt]);
    if (this.progress === item?.[runAttributeNames.progress]) this.progress = undefined;
  }

  /** By the outcome, which only this attempt writes: the end of another caller's claim may have replaced its token. */
  showsRelease(item: Item | undefined, outcome: RunForm["outcome"] = this.outcome): boolean {
    const { attempt, state, endedAt } = runAttributeNames;
    if (outcome === undefined || item?.[attempt] !== this.#attempt) return false;
    return item[state] === outcome.state && item[endedAt] === outcome.endedAt;
  }

  /** Adds this attempt to the history, unless it has succeeded: then the run itself shows it, and no other follows. */
  #ended(
    write: Write,
    { shown: { owner, acquiredAt: startedAt } }: Ending,
    outcome: Pick<JobRunAttempt, "state" | "endedAt" | "remark">,
  ): Write {
    if (outcome.state === "succeeded") return this.#kept(write);
    const ended = { attempt: this.#attempt, owner, startedAt, ...outcome };
    return this.#kept(storeAttempts(write, attemptsWith(this.#seen, ended)));
  }

  #kept(write: Write): Write {
    return keepForSlot(write, this.#slot, this.#rules.keepForMs);
  }
}

/** The rules that all runs of a job share. */
export interface RunRules {
  readonly maxAttempts: number;
  readonly keepForMs: number;
}
