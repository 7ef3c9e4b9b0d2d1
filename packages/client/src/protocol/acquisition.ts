import { LeaseError, LeaseServiceError, SlotDoneError } from "../errors/errors.ts";
import { acquire, cancel, type Grant, renew, spend, takeOver } from "../expressions.ts";
import {
  type GrantIdentity,
  isHeldBy,
  isOpenTo,
  type LeaseRecord,
  lastDoneSlot,
  readRecord,
} from "../record.ts";
import type { Item, UpdateRequest, UpdateResult } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import type { Moment } from "../time/clock.ts";
import type { Takeover } from "./announcement.ts";
import { callBudgetMs, callStore, inBackground, type ProtocolContext, shortestBudgetMs } from "./context.ts";
import { claimableIn, type Judge, type Verdict } from "./judge.ts";
import type { Belief } from "./validity.ts";

/** How often a grant is renewed at once, to agree with the table on when it ends. */
const mostRenewals = 2;

/** What is to be acquired; durations have been validated. */
export interface AcquisitionRequest {
  readonly key: string;
  /** The sort key. */
  readonly place: string;
  readonly owner: string;
  readonly leaseDurationMs: number;
  /** Whether the same owner may be let in again while the lease stands. */
  readonly reentrant: boolean;
  /** Whether a reentrant lease of the same owner that stands is shared, or taken over. */
  readonly resumes: boolean;
  /** JSON text. */
  readonly data: string | undefined;
  /** The run that it stands for. */
  readonly slot: string | undefined;
}

/** A write of ours that puts the lock into our hands: when it was made, and what tells it from every other. */
interface OwnWrite {
  readonly at: Moment;
  readonly version: number;
  readonly expiresAt: number;
}

/** Sends a write that was made at a given moment. */
type Send = (update: UpdateRequest, since: Moment) => Promise<UpdateResult>;

/** A lock that is ours. */
export interface Granted {
  readonly granted: true;
  readonly record: LeaseRecord;
  readonly belief: Belief;
  readonly takeover: Takeover | undefined;
}

/** A lock that is somebody else's. */
export interface Refused {
  readonly granted: false;
  /** Undefined where the lock was let go between two answers. */
  readonly record: LeaseRecord | undefined;
  readonly claimableInMs: number;
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
   * Tries once: 1 request, or 2 when the record that refused it may be taken over. Waits until there is room for it
   * beside the client's renewals, for up to `budgetMs`.
   *
   * Rejects with SlotDoneError, and when the service fails; then another attempt, or `abandon`, has to follow.
   */
  attempt(budgetMs: number, signal: AbortSignal | undefined): Promise<Granted | Refused> {
    // Before the first request is made: its lease counts from there.
    const within = { signal, withinMs: budgetMs };
    return this.#context.gate.pass(within, (leftMs) => this.#attempt(leftMs, signal));
  }

  async #attempt(leftMs: number, signal: AbortSignal | undefined): Promise<Granted | Refused> {
    const usefulMs = Math.max(this.#request.leaseDurationMs, shortestBudgetMs);
    const budget = Math.min(Math.max(leftMs, shortestBudgetMs), usefulMs, callBudgetMs);
    const send: Send = (update, at) => this.#send(update, at, budget, signal);

    const free = this.#nextWrite();
    const first = await send(acquire(this.#grant(free)), free.at);
    if (first.applied || isHeldBy(first.item, this.#identity))
      return this.#settle(send, first, free, undefined);

    this.#checkSlot(first.item);
    const seen = readRecord(first.item);
    if (seen === undefined) return this.#refused(first);
    const verdict = this.#judge.judge(seen);
    const ground = this.#isResumable(seen) ? "sameOwner" : verdict.expired ? verdict.ground : undefined;
    if (ground === undefined) return refusal(seen, verdict);

    this.#triesTakeover = true;
    const taking = this.#nextWrite();
    const second = await send(takeOver(this.#grant(taking), seen), taking.at);
    const takeover = seen.closed ? undefined : { ground, from: seen };
    if (second.applied || isHeldBy(second.item, this.#identity)) {
      return this.#settle(send, second, taking, takeover);
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
    if (!this.#uncertain) return;
    const { clock, lifecycle } = this.#context;
    const { key, place, owner, leaseDurationMs } = this.#request;
    const passed = inBackground(this.#context, { key, place, owner, operation: "cancel" });
    lifecycle.remove({ key, place, expiresAt: clock.now() + leaseDurationMs }, this.#takeBack(), passed);
  }

  get #identity(): GrantIdentity {
    return { token: this.token, owner: this.#request.owner };
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
    if (isHeldBy(marked.item, this.#identity)) await send(cancel(ending));
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
      if (result.retried) this.#uncertain = true;
      return result;
    } catch (error) {
      if (error instanceof LeaseError && error.mayHaveLanded) this.#uncertain = true;
      throw error;
    }
  }

  /** Versions that others wrote with this token are passed, too. */
  #nextWrite(latestVersion = 0): OwnWrite {
    const { clock } = this.#context;
    this.#version = Math.max(this.#version, latestVersion) + 1;
    const at = clock.moment();
    return { at, version: this.#version, expiresAt: clock.expiryOf(at, this.#request.leaseDurationMs) };
  }

  #grant({ at, version, expiresAt }: OwnWrite): Grant {
    const { key, place, owner, leaseDurationMs, reentrant, data, slot } = this.#request;
    const { clock, retentionMs } = this.#context;
    return {
      key,
      place,
      token: this.token,
      version,
      owner,
      acquiredAt: clock.timeOf(at),
      expiresAt,
      leaseDurationMs,
      retentionMs,
      reentrant,
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
    return this.#request.resumes && isOpenTo(record, this.#request.owner);
  }

  #refused(result: UpdateResult): Refused {
    const record = readRecord(result.item);
    return refusal(record, record && this.#judge.judge(record));
  }

  /**
   * Turns a record that bears our token into a grant.
   *
   * The table's expiry has to be the one that our deadline counts from, and right by the service's clock. It is not
   * where an earlier attempt's write landed late, nor where this was the first request of a machine whose wall clock is
   * wrong; and a lease whose answer took too long is over already. Then one renewal sets everything right.
   */
  async #settle(
    send: Send,
    result: UpdateResult,
    granting: OwnWrite,
    takeover: Granted["takeover"],
  ): Promise<Granted | Refused> {
    const { key, place, leaseDurationMs } = this.#request;
    const { retentionMs } = this.#context;
    // Ours, but with a number in it that another program has spoilt: then it has to be taken back.
    const wasUncertain = this.#uncertain;
    this.#uncertain = true;
    let record = readRecord(result.item);
    this.#uncertain = wasUncertain;
    if (record === undefined) throw noRecord(key);
    let written = granting;
    for (let left = mostRenewals; ; left -= 1) {
      const belief = this.#beliefIn(record, written, left === 0);
      if (belief !== undefined) return { granted: true, record, belief, takeover };
      if (left === 0) break;
      written = this.#nextWrite(record.version);
      const { version, expiresAt } = written;
      const { token, fencingToken } = record;
      const renewal = { key, place, token, fencingToken, version, expiresAt, leaseDurationMs, retentionMs };
      const renewed = await send(renew(renewal), written.at);
      record = readRecord(renewed.item);
      if (record?.token !== this.token) return this.#refused(renewed);
    }
    this.#uncertain = true;
    throw new LeaseServiceError(
      "LEASE_NO_ANSWER",
      `the answers for the lock ${JSON.stringify(key)} take longer than its lease of ${leaseDurationMs} ms: ` +
        "lengthen leaseDurationMs",
    );
  }

  /** What may be believed of a record that bears our token; undefined where a renewal has to make it right. */
  #beliefIn(record: LeaseRecord, written: OwnWrite, isLast: boolean): Belief | undefined {
    const { at, version, expiresAt } = written;
    // Another renewer of this token, as a hand-over's other end is, may use the same version with another expiry.
    if (record.version !== version || record.expiresAt !== expiresAt) return undefined;
    const { clock } = this.#context;
    const { believedMs, isSound } = clock.checkExpiry(expiresAt, at, this.#request.leaseDurationMs);
    const isUseful = clock.elapsedSince(at) < believedMs;
    return isUseful && (isSound || isLast) ? { since: at, forMs: believedMs } : undefined;
  }
}

function refusal(record: LeaseRecord | undefined, verdict: Verdict | undefined): Refused {
  return { granted: false, record, claimableInMs: verdict ? claimableIn(verdict) : 0 };
}

function noRecord(key: string): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_REQUEST_REJECTED",
    `the answer for the lock ${JSON.stringify(key)} does not bear the record that was written`,
  );
}
