import { type Moment, sleep } from "../../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../../base/errors.ts";
import { optionalWholeIn } from "../../base/item-values.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { isHeldBy, isOpenTo, lastReleasedToken, readRecord } from "../../base/record.ts";
import { attributeNames, leaseSortKey } from "../../base/schema.ts";
import type { Item, TransactionResult } from "../../base/store.ts";
import { callBudgetMs, shortestBudgetMs } from "../../base/timed-call.ts";
import { inBackground, isHolder, takeBack } from "../../core/attempt.ts";
import { type Core, transact } from "../../core/core.ts";
import type { Belief } from "../../core/deadline.ts";
import type { Takeover } from "../../core/form.ts";
import type { GateOptions } from "../../core/request-gate.ts";
import { WaitBudget } from "../../core/wait-loop.ts";
import { cancel, type Judged, revokeToken, take } from "../../statements/lock.ts";
import type { Write } from "../../statements/statement.ts";

/**
 * One token's claim to several locks: what it has written so far, and how to take that back.
 *
 * Its transactions are all or nothing, so one lock tells about all. If that lock has never had a fencing token as large
 * as theirs, no transaction has landed. While the token is revoked on it, none will land: until its next release.
 */
export class GroupClaim {
  readonly token: string;
  readonly owner: string;
  readonly #core: Core;
  readonly #keys: readonly string[];
  readonly #leaseDurationMs: number;
  /** The least fencing token of its transactions: a lock that one of them has won keeps it, or a larger one. */
  #leastFence = Number.POSITIVE_INFINITY;
  #version = 0;
  /** Whether a transaction of this token may have landed, or may still land, without a reply. */
  isUncertain = false;

  constructor(
    core: Core,
    {
      keys,
      owner,
      leaseDurationMs,
    }: { readonly keys: readonly string[]; readonly owner: string; readonly leaseDurationMs: number },
  ) {
    this.token = core.randomness.token();
    this.owner = owner;
    this.#core = core;
    this.#keys = keys;
    this.#leaseDurationMs = leaseDurationMs;
  }

  /** Gives the next write's version, never used before with this token. */
  nextVersion(fencingToken: number): number {
    this.#leastFence = Math.min(this.#leastFence, fencingToken);
    this.#version += 1;
    return this.#version;
  }

  /**
   * Takes back writes that may have landed, in the background. A lock that cannot be taken back frees itself when its
   * lease ends.
   */
  abandon(): void {
    if (!this.isUncertain) return;
    const { clock, lifecycle } = this.#core;
    const expiresAt = clock.now() + this.#leaseDurationMs;
    const taken = this.#takeBack();
    const [key = ""] = this.#keys;
    const work = { key, sortKey: leaseSortKey, owner: this.owner, operation: "cancel" } as const;
    const passed = inBackground(this.#core, work);
    const [first, ...others] = this.#keys.map((one) => ({ key: one, sortKey: leaseSortKey, expiresAt }));
    if (first !== undefined) lifecycle.remove(first, taken, passed);
    for (const other of others) lifecycle.follow(other, taken);
  }

  /** As {@link takeBack} for the first lock; with one request for each other lock if a transaction may have landed. */
  async #takeBack(): Promise<void> {
    const [first, ...others] = this.#keys;
    if (first === undefined) return;
    const core = this.#core;
    const taken = await takeBack(this.#core, {
      cancel: this.#cancelling(first).returning(),
      revoke: revokeToken({ key: first }, this.token),
      isOurs: (item) => this.#mayHaveLandedIn(item),
    });
    if (taken === undefined) return;
    if (!taken.applied || this.#mayHaveLandedIn(taken.item))
      await Promise.all(others.map((key) => core.gate.giveBack(() => core.update(this.#cancelling(key)))));
  }

  /** The lock may have been broken since, and taken by another: its item alone does not tell whose it was. */
  #mayHaveLandedIn(item: Item | undefined): boolean {
    return Number(item?.[attributeNames.fence]) >= this.#leastFence;
  }

  #cancelling(key: string): Write {
    const { clock, times } = this.#core;
    return cancel({ key }, { token: this.token, now: clock.now(), retentionMs: times.retentionMs });
  }
}

/** Which locks are to be acquired together; all of it has been validated. */
export interface GroupRequest {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly leaseDurationMs: number;
  /**
   * Whether a standing reentrant lease of the same owner is taken over, and the same owner may share these leases
   * later.
   */
  readonly reentrant: boolean;
  /** JSON text. */
  readonly data: string | undefined;
  /** For how long transactions that others cancel are repeated at once, if that is longer than usual. */
  readonly waitMs: number;
}

/** All locks are acquired. */
export interface GroupGranted {
  readonly granted: true;
  readonly records: readonly LeaseRecord[];
  /** Every lease counts from the moment before the transaction was sent. */
  readonly belief: Belief;
  readonly takeovers: ReadonlyMap<string, Takeover | undefined>;
}

/** A lock that another caller holds. */
export interface Blocker {
  readonly record: LeaseRecord;
  readonly claimableInMs: number;
}

/** None of the locks is acquired. */
export interface GroupRefused {
  readonly granted: false;
  /** Empty when the locks changed hands in every round. */
  readonly blockers: readonly Blocker[];
}

/** The record from which a lock is taken. */
interface Target {
  readonly judged: Judged;
  /** Undefined for this call's own record, whose reply was lost, and for a lock that was in its cooldown. */
  readonly takeover: Takeover | undefined;
}

/** What is known of the locks, from one round to the next. A lock without a target counts as free. */
type Plan = Map<string, Target>;

/**
 * Transactions that conflict cancel each other. One of them wins well within this time, also for a caller that does
 * not wait.
 */
const conflictPatienceMs = 2_000;
const firstConflictDelayMs = 20;
const longestConflictDelayMs = 320;

/** The first round, one that uses its refusal, and one more when the locks have changed meanwhile. */
const mostGroupRounds = 3;

/**
 * One acquisition of several locks, from its first transaction to its end.
 *
 * All or nothing: it never holds some of the locks while it waits for others. So two of them cannot wait for each
 * other, whatever the order of their keys.
 */
export class GroupAcquisition {
  readonly #core: Core;
  readonly #request: GroupRequest;
  #claim: GroupClaim;
  readonly #conflictBudget: WaitBudget;
  #conflicts = 0;
  /** The largest fencing token that any of the locks has shown. */
  #largestFence = 0;

  constructor(core: Core, request: GroupRequest) {
    this.#core = core;
    this.#request = request;
    this.#claim = new GroupClaim(core, request);
    this.#conflictBudget = new WaitBudget(core.clock, Math.max(request.waitMs, conflictPatienceMs));
  }

  get token(): string {
    return this.#claim.token;
  }

  /**
   * Tries once, and again with jitter when transactions that conflict cancel each other. 1 transaction. A second one
   * when the refusal shows that it can succeed now: the records may be taken over, have this call's token, or have a
   * fencing token larger than this call's.
   *
   * Rejects when the service fails; then another try, or `abandon`, has to follow.
   */
  async try({ withinMs, signal }: GateOptions): Promise<GroupGranted | GroupRefused> {
    const { clock, gate } = this.#core;
    for (;;) {
      try {
        return await gate.pass({ withinMs, signal }, (leftMs) => this.#attempt(leftMs, signal));
      } catch (error) {
        const isConflict = error instanceof LeaseServiceError && error.code === "LEASE_CONFLICT";
        if (!isConflict || this.#conflictBudget.leftMs <= 0) throw error;
      }
      await sleep(clock, this.#conflictDelayMs(), signal);
    }
  }

  #conflictDelayMs(): number {
    const longest = Math.min(firstConflictDelayMs * 2 ** this.#conflicts, longestConflictDelayMs);
    this.#conflicts += 1;
    return longest * this.#core.randomness.fraction();
  }

  async #attempt(leftMs: number, signal: AbortSignal | undefined): Promise<GroupGranted | GroupRefused> {
    const usefulMs = Math.max(this.#request.leaseDurationMs, shortestBudgetMs);
    const budget = Math.min(Math.max(leftMs, shortestBudgetMs), usefulMs, callBudgetMs);
    const plan: Plan = new Map();
    for (let round = 1; ; round += 1) {
      const since = this.#core.clock.moment();
      const records = this.#records(since);
      const result = await this.#send(plan, records, since, budget, signal);
      const belief = result.applied ? this.#beliefIn(records, since) : undefined;
      if (belief !== undefined) return groupGranted(records, belief, plan);
      if (result.applied) {
        this.#expectOwn(plan, records);
        if (round === mostGroupRounds) throw this.#tooSlow();
      } else {
        const blockers = this.#study(plan, result);
        if (blockers.length > 0 || round === mostGroupRounds) return { granted: false, blockers };
      }
    }
  }

  /** Gives the acquisition up: writes that may have landed are taken back in the background. */
  abandon(): void {
    this.#claim.abandon();
  }

  /** The records that a transaction writes now. */
  #records(since: Moment): LeaseRecord[] {
    const { keys, owner, leaseDurationMs, reentrant, data } = this.#request;
    const { clock } = this.#core;
    const expiresAt = clock.expiryOf(since, leaseDurationMs);
    // One number for all: larger than any number in the locks, and than that of a lock that ttl removed.
    const fencingToken = Math.max(clock.timeOf(since), this.#largestFence) + 1;
    const version = this.#claim.nextVersion(fencingToken);
    return keys.map((key) => ({
      key,
      sortKey: leaseSortKey,
      owner,
      token: this.#claim.token,
      version,
      fencingToken,
      acquiredAt: clock.timeOf(since),
      expiresAt,
      ...(clock.isUntold && { ownClock: true }),
      leaseDurationMs,
      inCooldown: false,
      reentrant,
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
    const { retentionMs } = this.#core.times;
    const claim = this.#claim;
    const writes = records.map((record) => {
      // A transaction answers without its items: a number that the service counts would have to be read afterwards.
      const grant = { ...record, retentionMs, data: this.#request.data, slot: undefined };
      return take(record, grant, plan.get(record.key)?.judged);
    });
    try {
      const result = await transact(this.#core, writes, { withinMs: budgetMs, signal, since });
      if (result.retried) claim.isUncertain = true;
      return result;
    } catch (error) {
      if (error instanceof LeaseError && error.mayHaveLanded) claim.isUncertain = true;
      throw error;
    }
  }

  /** Learns from a refusal from which record each lock is to be taken. Gives the locks that cannot be taken now. */
  #study(plan: Plan, { refusals }: TransactionResult): Blocker[] {
    const blockers: Blocker[] = [];
    const { token } = this.#claim;
    let isMine = false;
    let isRevoked = false;
    for (const [index, key] of this.#request.keys.entries()) {
      const refusal = refusals[index];
      if (refusal === undefined) continue;
      const { item } = refusal;
      this.#largestFence = Math.max(
        this.#largestFence,
        (item && optionalWholeIn(item, attributeNames.fence)) ?? 0,
      );
      isRevoked ||= lastReleasedToken(item) === token;
      const record = readRecord(item);
      plan.delete(key);
      if (record === undefined) continue;
      if (isHeldBy(item, this.#claim)) {
        isMine = true;
        plan.set(key, { judged: record, takeover: undefined });
        continue;
      }
      const expiry = this.#core.detector.judge(record);
      const reason = this.#isResumable(record) ? "sameOwner" : expiry.reason;
      if (reason === undefined) blockers.push({ record, claimableInMs: expiry.claimableInMs });
      else
        plan.set(key, { judged: record, takeover: isHolder(record) ? { reason, from: record } : undefined });
    }
    // To hold some locks while waiting for others makes deadlocks; and a revoked token wins nothing any more.
    if (isRevoked || (isMine && blockers.length > 0)) this.#startAnew();
    return blockers;
  }

  #isResumable(record: LeaseRecord): boolean {
    return this.#request.reentrant && isOpenTo(record, this.#request.owner);
  }

  #startAnew(): void {
    this.#claim.isUncertain = true;
    this.#claim.abandon();
    this.#claim = new GroupClaim(this.#core, this.#request);
  }

  /**
   * The transaction landed, but its leases were over before the reply, or their end was wrong by the service's clock.
   * So this call takes them over from itself.
   */
  #expectOwn(plan: Plan, records: readonly LeaseRecord[]): void {
    this.#claim.isUncertain = true;
    for (const record of records) {
      plan.set(record.key, { judged: record, takeover: plan.get(record.key)?.takeover });
    }
  }

  /** For how long granted leases may be believed in; undefined when they have to be written once more. */
  #beliefIn([record]: readonly LeaseRecord[], since: Moment): Belief | undefined {
    if (record === undefined) return undefined;
    const { clock } = this.#core;
    const { expiresAt, leaseDurationMs, ownClock } = record;
    const { believedMs, isSound } = clock.checkExpiry(expiresAt, since, leaseDurationMs, ownClock);
    const isBelieved = isSound && clock.elapsedSince(since) < believedMs;
    return isBelieved ? { since, forMs: believedMs, ownClock } : undefined;
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

function groupGranted(records: readonly LeaseRecord[], belief: Belief, plan: Plan): GroupGranted {
  const takeovers = new Map([...plan].map(([key, { takeover }]) => [key, takeover]));
  return { granted: true, records, belief, takeovers };
}
