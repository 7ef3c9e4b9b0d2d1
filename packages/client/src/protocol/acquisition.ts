import { LeaseError, LeaseServiceError, SlotDoneError } from "../errors.ts";
import { acquire, cancel, type Grant, renew, spend, takeOver } from "../expressions.ts";
import { isHeldBy, type LeaseRecord, lastDoneSlot, readRecord } from "../record.ts";
import type { Item, UpdateRequest, UpdateResult } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import { type Moment, moment } from "../time/clock.ts";
import type { ClockOffset } from "../time/skew.ts";
import type { Takeover } from "./announcement.ts";
import { callBudgetMs, callStore, type ProtocolContext, shortestBudgetMs } from "./context.ts";
import { claimableIn, type Judge, type Verdict } from "./judge.ts";

/** How often a grant is renewed at once, to agree with the table on when it ends. */
const mostRenewals = 2;

/** What is to be acquired; durations have been validated. */
export interface AcquisitionRequest {
  readonly key: string;
  /** The sort key. */
  readonly place: string;
  readonly owner: string;
  readonly leaseDurationMs: number;
  /** Whether a live lease of the same owner may be taken over. */
  readonly reentrant: boolean;
  /** JSON text. */
  readonly data: string | undefined;
  /** The run that it stands for. */
  readonly slot: string | undefined;
}

/** Sends a write that was made at a given moment. */
type Send = (update: UpdateRequest, since: Moment) => Promise<UpdateResult>;

/** A lock that is ours. */
export interface Granted {
  readonly granted: true;
  readonly record: LeaseRecord;
  /** When the request that wrote the record was about to be sent; the lease counts from here. */
  readonly since: Moment;
  readonly takeover: Takeover | undefined;
}

/** A lock that is somebody else's. */
export interface Refused {
  readonly granted: false;
  /** Undefined where the lock was let go between two answers. */
  readonly record: LeaseRecord | undefined;
  readonly claimableInMs: number;
  /** What the refusal said about the clocks. */
  readonly offset: ClockOffset | undefined;
}

/**
 * One acquisition, from its first request to its end, under one token.
 *
 * The token stays the same over all attempts, so that a write whose answer was lost is recognised by the next
 * attempt, and can be taken back when there is none.
 */
export class Acquisition {
  readonly token: string;
  readonly #context: ProtocolContext;
  readonly #judge: Judge;
  readonly #request: AcquisitionRequest;
  /** The version of the last write: each one differs, so that whoever judged an earlier one does not mistake them. */
  #version = 0;
  /** Whether a write of ours may have landed, or may yet land, unknown to us. */
  #uncertain = false;
  #triesTakeover = false;

  constructor(context: ProtocolContext, judge: Judge, request: AcquisitionRequest) {
    this.token = context.randomness.token();
    this.#context = context;
    this.#judge = judge;
    this.#request = request;
  }

  /**
   * Tries once: 1 request, or 2 when the record that refused it may be taken over.
   *
   * Rejects with SlotDoneError, and when the service fails; then another attempt, or `abandon`, has to follow.
   */
  async attempt(budgetMs: number, signal: AbortSignal | undefined): Promise<Granted | Refused> {
    const usefulMs = Math.max(this.#request.leaseDurationMs, shortestBudgetMs);
    const budget = Math.min(budgetMs, usefulMs, callBudgetMs);
    const send: Send = (update, at) => this.#send(update, at, budget, signal);

    const since = moment(this.#context.clock);
    const first = await send(acquire(this.#grant(since)), since);
    if (first.applied || isHeldBy(first.item, this.token)) return this.#settle(send, first, since, undefined);

    this.#checkSlot(first.item);
    const seen = readRecord(first.item);
    if (seen === undefined) return this.#refused(first);
    const verdict = this.#judge.judge(seen, first.offset);
    const ground = this.#isResumable(seen) ? "sameOwner" : verdict.expired ? verdict.ground : undefined;
    if (ground === undefined) return refusal(first, seen, verdict);

    this.#triesTakeover = true;
    const takenAt = moment(this.#context.clock);
    const second = await send(takeOver(this.#grant(takenAt), seen), takenAt);
    const takeover = seen.closed ? undefined : { ground, from: seen };
    if (second.applied || isHeldBy(second.item, this.token)) {
      return this.#settle(send, second, takenAt, takeover);
    }
    return this.#refused(second);
  }

  /**
   * Gives the acquisition up.
   *
   * Where a write may have landed it is taken back in the background, without waiting: 1 request, or 2 where another
   * holds the lock and a takeover may be under way. Should that fail too, the lock frees itself when the lease ends.
   */
  abandon(): void {
    if (this.#uncertain) void this.#takeBack().catch(() => undefined);
  }

  async #takeBack(): Promise<void> {
    const { clock, retentionMs } = this.#context;
    const { key, place } = this.#request;
    const ending = { key, place, token: this.token, now: clock.now(), retentionMs };
    const send = (update: UpdateRequest): Promise<UpdateResult> =>
      callStore(this.#context, (store, call) => store.update(update, call));
    const { applied } = await send(cancel(ending));
    if (applied || !this.#triesTakeover) return;
    const marked = await send(spend(ending));
    // The takeover has landed just now.
    if (isHeldBy(marked.item, this.token)) await send(cancel(ending));
  }

  async #send(
    update: UpdateRequest,
    since: Moment,
    budgetMs: number,
    signal: AbortSignal | undefined,
  ): Promise<UpdateResult> {
    const { clock, store } = this.#context;
    try {
      const result = await withBudget(clock, budgetMs, signal, (call) => store.update(update, call), since);
      this.#context.noteOffset(result.offset);
      if (result.retried) this.#uncertain = true;
      return result;
    } catch (error) {
      if (error instanceof LeaseError && error.mayHaveLanded) this.#uncertain = true;
      throw error;
    }
  }

  #grant(at: Moment): Grant {
    const { key, place, owner, leaseDurationMs, data, slot } = this.#request;
    const { retentionMs } = this.#context;
    this.#version += 1;
    const { token } = this;
    return {
      key,
      place,
      token,
      version: this.#version,
      owner,
      acquiredAt: at.wall,
      leaseDurationMs,
      retentionMs,
      data,
      slot,
    };
  }

  #checkSlot(item: Item | undefined): void {
    const { key, slot } = this.#request;
    const done = lastDoneSlot(item);
    if (slot !== undefined && done !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);
  }

  #isResumable(record: LeaseRecord): boolean {
    return this.#request.reentrant && record.owner === this.#request.owner && !record.closed;
  }

  #refused(result: UpdateResult): Refused {
    const record = readRecord(result.item);
    return refusal(result, record, record && this.#judge.judge(record, result.offset));
  }

  /**
   * Turns a record that bears our token into a grant.
   *
   * The table's expiry has to be the one that our deadline counts from. It is not where an earlier attempt's
   * write landed late, and a lease whose answer took too long is over already: then one renewal sets both right.
   */
  async #settle(
    send: Send,
    result: UpdateResult,
    since: Moment,
    takeover: Granted["takeover"],
  ): Promise<Granted | Refused> {
    const { clock, retentionMs } = this.#context;
    const { key, place, leaseDurationMs } = this.#request;
    const isAlive = (from: Moment): boolean => clock.monotonic() - from.monotonic < leaseDurationMs;

    /** Whoever else renews this token, as a hand-over's other end does, may use the same version with another expiry. */
    const isWrittenAt = (seen: LeaseRecord, at: Moment): boolean =>
      seen.version === this.#version && seen.expiresAt === at.wall + leaseDurationMs && isAlive(at);

    let record = readRecord(result.item);
    if (record === undefined) throw noRecord(key);
    if (isWrittenAt(record, since)) return { granted: true, record, since, takeover };

    for (let tries = 0; tries < mostRenewals; tries += 1) {
      const again = moment(clock);
      this.#version = Math.max(this.#version, record.version) + 1;
      const expiresAt = again.wall + leaseDurationMs;
      const version = this.#version;
      const renewal = { key, place, token: this.token, version, expiresAt, leaseDurationMs, retentionMs };
      const renewed = await send(renew(renewal), again);
      record = readRecord(renewed.item);
      if (record?.token !== this.token) return this.#refused(renewed);
      if (isWrittenAt(record, again)) return { granted: true, record, since: again, takeover };
    }
    this.#uncertain = true;
    throw new LeaseServiceError(
      "LEASE_NO_ANSWER",
      `the answers for the lock ${JSON.stringify(key)} take longer than its lease of ${leaseDurationMs} ms: ` +
        "lengthen leaseDurationMs",
    );
  }
}

function refusal(
  result: UpdateResult,
  record: LeaseRecord | undefined,
  verdict: Verdict | undefined,
): Refused {
  return { granted: false, record, claimableInMs: verdict ? claimableIn(verdict) : 0, offset: result.offset };
}

function noRecord(key: string): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_REQUEST_REJECTED",
    `the answer for the lock ${JSON.stringify(key)} does not bear the record that was written`,
  );
}
