import { LeaseError, LeaseServiceError } from "../errors.ts";
import { acquireAmongOthers } from "../expressions-group.ts";
import type { Takeover } from "../protocol/announcement.ts";
import { callBudgetMs, type ProtocolContext, shortestBudgetMs } from "../protocol/context.ts";
import { claimableIn, type Judge } from "../protocol/judge.ts";
import { type LeaseRecord, lastReleasedToken, readRecord } from "../record.ts";
import { attributeNames, leaseSortKey } from "../schema.ts";
import type { TransactionResult } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import { type Moment, moment } from "../time/clock.ts";
import type { ClockOffset } from "../time/skew.ts";
import { Claim } from "./claim.ts";

/** Which locks are to be acquired together; all of it has been validated. */
export interface GroupRequest {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly leaseDurationMs: number;
  /** Whether a live lease of the same owner may be taken over. */
  readonly reentrant: boolean;
  /** JSON text. */
  readonly data: string | undefined;
}

/** All locks are ours. */
export interface GroupGranted {
  readonly granted: true;
  readonly records: readonly LeaseRecord[];
  /** When the transaction was about to be sent; every lease counts from here. */
  readonly since: Moment;
  readonly takeovers: ReadonlyMap<string, Takeover>;
}

/** A lock that stands in the way. */
export interface Obstacle {
  readonly record: LeaseRecord;
  readonly claimableInMs: number;
}

/** None of them is ours. */
export interface GroupRefused {
  readonly granted: false;
  /** Empty where the locks changed hands too often to be caught. */
  readonly obstacles: readonly Obstacle[];
  /** What the refusal said about the clocks. */
  readonly offset: ClockOffset | undefined;
}

/** The record that a lock is to be taken from. */
interface Target {
  readonly judged: { readonly token: string; readonly version: number };
  /** Undefined for our own, which landed unknown to us, and for a lock that was merely closed. */
  readonly takeover: Takeover | undefined;
}

/** What is known of the locks, from one round to the next: those without a target are thought free. */
type Plan = Map<string, Target>;

/** The first, one that goes by what it was told, and one more where that had changed meanwhile. */
const mostRounds = 3;

/**
 * One acquisition of several locks, from its first transaction to its end.
 *
 * All or nothing: it never holds some of the locks while it waits for others, so that two of them cannot wait for
 * each other, whatever the order of their keys.
 */
export class GroupAcquisition {
  readonly #context: ProtocolContext;
  readonly #judge: Judge;
  readonly #request: GroupRequest;
  #claim: Claim;
  /** The largest fencing token that any of the locks has shown. */
  #largestFence = 0;

  constructor(context: ProtocolContext, judge: Judge, request: GroupRequest) {
    this.#context = context;
    this.#judge = judge;
    this.#request = request;
    this.#claim = new Claim(context, request.keys);
  }

  get token(): string {
    return this.#claim.token;
  }

  /**
   * Tries once: 1 transaction, and a second where the refusal shows that it can succeed now: the records in the way
   * may be taken over, bear our own token, or a fencing token larger than ours.
   *
   * Rejects when the service fails; then another attempt, or `abandon`, has to follow.
   */
  async attempt(budgetMs: number, signal: AbortSignal | undefined): Promise<GroupGranted | GroupRefused> {
    const usefulMs = Math.max(this.#request.leaseDurationMs, shortestBudgetMs);
    const budget = Math.min(budgetMs, usefulMs, callBudgetMs);
    const plan: Plan = new Map();
    let isTooLate = false;
    for (let round = 1; round <= mostRounds; round += 1) {
      const since = moment(this.#context.clock);
      const records = this.#records(since);
      const result = await this.#send(plan, records, since, budget, signal);
      isTooLate = result.applied && this.#isOver(since);
      if (result.applied && !isTooLate) return granted(records, since, plan);
      if (isTooLate) this.#expectOwn(plan, records);
      else {
        const obstacles = this.#study(plan, result);
        if (obstacles.length > 0) return { granted: false, obstacles, offset: result.offset };
      }
    }
    if (isTooLate) throw this.#tooSlow();
    return { granted: false, obstacles: [], offset: undefined };
  }

  /** Gives the acquisition up: what may have landed is taken back in the background. */
  abandon(): void {
    this.#claim.abandon();
  }

  /** The records that a transaction of this moment writes. */
  #records(since: Moment): LeaseRecord[] {
    const { keys, owner, leaseDurationMs, data } = this.#request;
    // One number for all: larger than any that the locks have shown, and than what one that ttl removed had.
    const fencingToken = Math.max(since.wall, this.#largestFence) + 1;
    const version = this.#claim.nextVersion(fencingToken);
    return keys.map((key) => ({
      key,
      place: leaseSortKey,
      owner,
      token: this.#claim.token,
      version,
      fencingToken,
      acquiredAt: since.wall,
      expiresAt: since.wall + leaseDurationMs,
      leaseDurationMs,
      closed: false,
      data: data === undefined ? undefined : JSON.parse(data),
      revocation: undefined,
    }));
  }

  async #send(
    plan: Plan,
    records: readonly LeaseRecord[],
    since: Moment,
    budgetMs: number,
    signal: AbortSignal | undefined,
  ): Promise<TransactionResult> {
    const { clock, store, retentionMs } = this.#context;
    const claim = this.#claim;
    const entries = records.map((record) => {
      const grant = { ...record, retentionMs, data: this.#request.data, slot: undefined };
      return acquireAmongOthers(grant, plan.get(record.key)?.judged, record.fencingToken);
    });
    try {
      const result = await withBudget(
        clock,
        budgetMs,
        signal,
        (call) => store.transact(entries, call),
        since,
      );
      this.#context.noteOffset(result.offset);
      if (result.retried) claim.isUncertain = true;
      return result;
    } catch (error) {
      if (error instanceof LeaseError && error.mayHaveLanded) claim.isUncertain = true;
      throw error;
    }
  }

  /** Learns from a refusal what each lock is to be taken from; gives those that are not to be had now. */
  #study(plan: Plan, { refusals, offset }: TransactionResult): Obstacle[] {
    const obstacles: Obstacle[] = [];
    const { token } = this.#claim;
    let isMine = false;
    let isSpent = false;
    for (const [index, key] of this.#request.keys.entries()) {
      const refusal = refusals[index];
      if (refusal === undefined) continue;
      const { item } = refusal;
      this.#largestFence = Math.max(this.#largestFence, Number(item?.[attributeNames.fence] ?? 0));
      isSpent ||= lastReleasedToken(item) === token;
      const record = readRecord(item);
      plan.delete(key);
      if (record === undefined) continue;
      if (record.token === token) {
        isMine = true;
        plan.set(key, { judged: record, takeover: undefined });
        continue;
      }
      const verdict = this.#judge.judge(record, offset);
      const ground = this.#isResumable(record) ? "sameOwner" : verdict.expired ? verdict.ground : undefined;
      if (ground === undefined) obstacles.push({ record, claimableInMs: claimableIn(verdict) });
      else plan.set(key, { judged: record, takeover: record.closed ? undefined : { ground, from: record } });
    }
    // Holding some while waiting for others is what makes deadlocks; and a token that is spent wins nothing any more.
    if (isSpent || (isMine && obstacles.length > 0)) this.#startAnew();
    return obstacles;
  }

  #isResumable({ owner, closed }: LeaseRecord): boolean {
    return this.#request.reentrant && owner === this.#request.owner && !closed;
  }

  #startAnew(): void {
    this.#claim.isUncertain = true;
    this.#claim.abandon();
    this.#claim = new Claim(this.#context, this.#request.keys);
  }

  /** The transaction landed, but its leases were over before its answer came: they are taken over from ourselves. */
  #expectOwn(plan: Plan, records: readonly LeaseRecord[]): void {
    this.#claim.isUncertain = true;
    for (const record of records) {
      plan.set(record.key, { judged: record, takeover: plan.get(record.key)?.takeover });
    }
  }

  #isOver(since: Moment): boolean {
    return this.#context.clock.monotonic() - since.monotonic >= this.#request.leaseDurationMs;
  }

  #tooSlow(): LeaseServiceError {
    const { keys, leaseDurationMs } = this.#request;
    return new LeaseServiceError(
      "LEASE_NO_ANSWER",
      `the answers for these ${keys.length} locks take longer than their leases of ${leaseDurationMs} ms: ` +
        "lengthen leaseDurationMs",
    );
  }
}

function granted(records: readonly LeaseRecord[], since: Moment, plan: Plan): GroupGranted {
  const takeovers = new Map<string, Takeover>();
  for (const [key, { takeover }] of plan) if (takeover !== undefined) takeovers.set(key, takeover);
  return { granted: true, records, since, takeovers };
}
