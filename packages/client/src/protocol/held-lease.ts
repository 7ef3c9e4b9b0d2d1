import { LeaseError, type LeaseLostReason, LeaseServiceError, quoted } from "../errors/errors.ts";
import { asError, isOperational } from "../errors/operational.ts";
import type { LeaseEvent } from "../events.ts";
import {
  type LeaseRecord,
  lastDoneSlot,
  lastReleasedToken,
  wasBroken,
  wasReleasedByHolder,
} from "../record.ts";
import { cooldownToken, leaseItemKey } from "../schema.ts";
import type { Write } from "../statements/statement.ts";
import type { Bounds } from "../store/timed-store.ts";
import type { Item, UpdateResult } from "../store.ts";
import { type Moment, settles } from "../time/clock.ts";
import type { ProtocolContext } from "./context.ts";
import { type Belief, LeaseDeadline } from "./lease-deadline.ts";
import { type HeldForm, leaseOf } from "./lease-form.ts";
import type { Removal } from "./lifecycle.ts";

/** What identifies a lease, and what its renewals ask for. */
export interface HeldLeaseTerms {
  readonly record: LeaseRecord;
  readonly leaseDurationMs: number;
  /**
   * The time of the acquisition, on the monotonic clock.
   * @default - by the record, which another process may have written
   */
  readonly heldSince?: number;
  /** When the lock's cooldown ends, in epoch milliseconds; undefined without a cooldown. */
  readonly cooldownUntil: number | undefined;
  /** The slot that the lease stands for. */
  readonly slot: string | undefined;
}

/** What a caller that shares a lease asks for. */
export interface SharedTimes {
  /** How long the lease has to last from now on. @default - as long as it does */
  readonly askedDurationMs?: number | undefined;
  /** @default 0 */
  readonly lockAtLeastForMs?: number;
}

/** The outcome of a release. */
export interface Ended {
  /** Whether this token still held the lock; undefined if answers were lost and others have had the lock since. */
  readonly wasOurs: boolean | undefined;
  /** Whether the slot is recorded as done, or will be when the last handle ends. */
  readonly isRecorded: boolean;
}

const notOurs: Ended = { wasOurs: false, isRecorded: false };

/** Sends one conditional write. Heartbeats pass a function that batches writes. */
export type SendUpdate = (write: Write, bounds: Bounds) => Promise<UpdateResult>;

/**
 * The longest time of one renewal. It also takes at most half of what is left, so that a hanging renewal leaves time
 * for another.
 */
const longestRenewalMs = 5_000;
/** How often one renewal is repeated at once because its answer shows that it wrote a wrong expiry. */
const mostCorrections = 1;
/**
 * How often one renewal is repeated because another process, such as the other end of a hand-over, has renewed the same
 * token meanwhile.
 */
const mostOvertakings = 5;
/** A release waits this long for a renewal that is under way; then it aborts the renewal. */
const renewalGraceMs = 1_000;

/** One token's hold on a lock: its renewals, at most one at a time, and its release, never beside a renewal. */
export class HeldLease implements Removal {
  readonly form: HeldForm;
  terms: HeldLeaseTerms;
  readonly deadline: LeaseDeadline;
  readonly #context: ProtocolContext;
  /** The record that the table showed last. */
  #shown: LeaseRecord;
  /** On the monotonic clock. */
  readonly #heldSince: number;
  #version: number;
  /** Whether the table has shown what the writes repeat. Of a seat, a handle alone can claim anything. */
  #isSeen: boolean;
  /** Whether an answer has shown the item without this token: then nothing is left to release. */
  #isGone = false;
  #renewing: { readonly done: Promise<void>; readonly cut: AbortController } | undefined;
  #isEnding = false;
  #ending: Promise<Ended> | undefined;
  /** Whether a release may have landed without an answer. */
  #mayHaveEnded = false;
  /** Time left at release; only for seats that are not reentrant. */
  #lastBelief: Pick<Belief, "since" | "forMs"> | undefined;
  #holds = 1;
  /** The handles that have not been released; several when an owner shares the lease reentrantly. */
  handles: readonly object[] = [];
  /** Whether a handle has asked to record the slot as done. */
  #isCompleted = false;
  /** Copied on each addition: a growing array would keep room for sixteen more, in every held lease. */
  #endListeners: readonly (() => void)[] = [];

  /** Without a belief the lease is unconfirmed: it protects nothing until a renewal confirms it. */
  constructor(context: ProtocolContext, form: HeldForm, terms: HeldLeaseTerms, belief: Belief | undefined) {
    const { record } = terms;
    this.terms = terms;
    this.#context = context;
    this.form = form;
    this.#shown = record;
    this.#version = record.version;
    this.#isSeen = record.seat === undefined || terms.heldSince !== undefined;
    const { clock } = context;
    this.#heldSince = terms.heldSince ?? clock.monotonic() - Math.max(0, clock.now() - record.acquiredAt);
    this.deadline = new LeaseDeadline(record.key, clock, record, this);
    if (belief !== undefined) this.deadline.confirm(belief, record.expiresAt);
  }

  get key(): string {
    return this.terms.record.key;
  }

  get sortKey(): string {
    return this.terms.record.sortKey;
  }

  get expiresAt(): number {
    return this.deadline.expiresAt;
  }

  get version(): number {
    return this.#version;
  }

  /**
   * Whether an expiry that is written now comes from this machine's own clock. The answer to a process's first request
   * tells the service's time. The own clock is marked only if answers do not tell the time, or if the lease had that
   * mark so far.
   */
  get ownClock(): boolean {
    const { clock } = this.#context;
    return clock.isUntold || (!clock.isTold && this.#shown.ownClock === true);
  }

  /**
   * Until when another process may believe in the lease, in epoch milliseconds of the service. The table may show a
   * later expiry, but observers do not wait for that.
   */
  get believedUntil(): number {
    const { clock } = this.#context;
    const now = clock.earliest() ?? clock.now();
    return Math.min(this.deadline.expiresAt, Math.floor(now + this.deadline.remainingMs()));
  }

  /** Calls the listener when the lease ends, for whatever reason; at once if it has ended. */
  onEnd(listener: () => void): void {
    if (this.deadline.lost === undefined) this.#endListeners = [...this.#endListeners, listener];
    else listener();
  }

  /** Adds a handle that shares the lease. The lease ends with the last handle. */
  retain(): void {
    this.#holds += 1;
  }

  /**
   * Adapts the lease to a caller that shares it. A longer duration holds from a renewal on: 1 request. A later end of
   * the cooldown needs no request. Rejects as `renew` does.
   */
  async suit({ askedDurationMs = 0, lockAtLeastForMs = 0 }: SharedTimes): Promise<void> {
    const { record, leaseDurationMs, cooldownUntil = 0 } = this.terms;
    if (lockAtLeastForMs > 0) {
      const until = record.acquiredAt + this.#heldMs() + lockAtLeastForMs;
      this.terms = { ...this.terms, cooldownUntil: Math.max(cooldownUntil, until) };
    }
    if (askedDurationMs <= leaseDurationMs) return;
    this.terms = { ...this.terms, leaseDurationMs: askedDurationMs };
    // Ignored: the renewal's caller gets its error. That renewal writes the shorter duration, so another one has to
    // follow.
    await this.#renewing?.done.catch(() => undefined);
    await this.renew();
  }

  /**
   * Prolongs the lease: 1 request. Concurrent callers share one. Rejects when the lease is lost or the service fails.
   */
  async renew(
    send: SendUpdate = (write, bounds) => this.#context.table.update(write, bounds),
  ): Promise<void> {
    // An unconfirmed lease has no deadline yet. Reading the time that is left can end the lease.
    const remainingMs = this.deadline.remainingMs() || this.terms.leaseDurationMs;
    this.#throwIfLost();
    if (this.#renewing === undefined) {
      const cut = new AbortController();
      const budgetMs = Math.min(remainingMs / 2, longestRenewalMs);
      const done = this.#renewOnce(budgetMs, send, cut.signal).finally(() => {
        this.#renewing = undefined;
      });
      this.#renewing = { done, cut };
    }
    await this.#renewing.done;
    this.#throwIfLost();
  }

  /** Ends the holder's belief, because its heartbeat met a mistake in the program. The lease stays in the table. */
  fail(error: unknown): void {
    if (this.deadline.lost !== undefined) return;
    this.#publish({ type: "error", operation: "renew", error: asError(error) });
    this.deadline.end("failed", undefined, { cause: error });
  }

  /**
   * Releases the lease: 1 request; none if it is known to be gone, or while it has other handles. `completed` records
   * its slot as done when the last handle ends.
   *
   * Rejects with LeaseServiceError if the service did not confirm. If others have had the lock since, two causes are
   * possible: an earlier copy of the release has landed, or the lock was taken away before. Then it rejects too, unless
   * this lease or another has recorded the slot as done.
   */
  async release(completed: boolean): Promise<Ended> {
    if (this.#holds > 1) {
      this.#holds -= 1;
      this.#isCompleted ||= completed;
      const { lost } = this.deadline;
      return lost === undefined || lost === "revoked" ? { wasOurs: true, isRecorded: completed } : notOurs;
    }
    const ended = await this.#endOnce(completed);
    if (ended.wasOurs !== undefined || ended.isRecorded) return ended;
    throw new LeaseServiceError(
      "LEASE_NO_ANSWER",
      `an answer to the release of ${quoted(this.key)} was lost, and others have had the lock ` +
        "since: it is not known whether the release had landed. Nothing stays held",
    );
  }

  /** Releases it for all of its handles, in the background. */
  letGo(): void {
    this.#holds = 1;
    void this.#endOnce(false);
  }

  #endOnce(completed: boolean): Promise<Ended> {
    this.#isEnding = true;
    if (this.#ending === undefined) {
      this.#ending = this.#end(completed || this.#isCompleted).catch((error: unknown) => {
        // The lock may still be held: the caller may try again.
        this.#ending = undefined;
        if (!isOperational(error)) {
          this.#publish({ type: "error", operation: "release", error: asError(error) });
        }
        throw error;
      });
      this.#context.lifecycle.follow(this, this.#ending);
    }
    return this.#ending;
  }

  async #renewOnce(
    budgetMs: number,
    send: SendUpdate,
    cut: AbortSignal,
    corrections = mostCorrections,
    overtakings = 0,
  ): Promise<void> {
    const { clock, retentionMs } = this.#context;
    const { record, leaseDurationMs } = this.terms;
    if (!this.#isSeen) await this.#see({ withinMs: budgetMs, signal: cut });
    const since = clock.moment();
    const shown = Math.max(this.#shown.expiresAt, this.deadline.expiresAt);
    const expiresAt = clock.expiryOf(since, leaseDurationMs, shown);
    const { ownClock } = this;
    const version = this.#version + 1;
    this.#version = version;
    const renewal = { shown: this.#shown, version, expiresAt, ownClock, leaseDurationMs, retentionMs };
    const result = await send(this.form.renew(renewal), { withinMs: budgetMs, signal: cut, since });

    const now = this.#ownIn(result.item);
    if (now === undefined) {
      this.#isGone = true;
      this.deadline.end(...this.#lossBy(result.item));
      return;
    }
    this.#shown = now;
    this.form.confirmed?.(result.item);
    if (now.version === version && now.expiresAt === expiresAt) {
      const { believedMs, isSound } = clock.checkExpiry(expiresAt, since, leaseDurationMs, ownClock);
      if (believedMs > 0) this.deadline.confirm({ since, forMs: believedMs, ownClock }, expiresAt);
      // A confirmation after the deadline revives nothing.
      if (believedMs > 0 && this.deadline.lost === undefined) this.#publish({ type: "renewed", expiresAt });
      if (now.revocation !== undefined) this.deadline.end("revoked", now.revocation);
      if (isSound || this.deadline.lost !== undefined) return;
      // This answer has told the service's time, and the written expiry was too far from it.
      if (corrections > 0) return await this.#renewOnce(budgetMs, send, cut, corrections - 1, overtakings);
      if (believedMs === 0) throw clocksMoved(record.key);
      return;
    }
    // Another process renews the same token, as after a hand-over: continue from its version.
    this.#version = Math.max(this.#version, now.version);
    if (overtakings === mostOvertakings)
      throw new LeaseServiceError(
        "LEASE_CONFLICT",
        `another process renewed the lock ${quoted(record.key)} meanwhile, each time`,
      );
    await this.#renewOnce(budgetMs, send, cut, corrections, overtakings + 1);
  }

  /**
   * Reads a seat that was adopted by a handle, before its first write. The write repeats what the seat takes of the
   * item, and the item's counters have to stay equal to that. If the seat is gone, the write is refused, and the
   * refusal tells why.
   */
  async #see(bounds?: Bounds): Promise<void> {
    const key = leaseItemKey(this.key, this.sortKey);
    const item = await this.#context.table.get({ key, consistent: true }, bounds);
    const now = this.#ownIn(item);
    if (now === undefined) return;
    this.form.confirmed?.(item);
    this.#shown = now;
    this.#version = Math.max(this.#version, now.version);
    this.#isSeen = true;
  }

  /**
   * A late copy of the acquisition may have written the token again, with another fencing token. Nobody holds that
   * lease.
   */
  #ownIn(item: Item | undefined): LeaseRecord | undefined {
    const { token, fencingToken } = this.terms.record;
    const now = leaseOf(this.form, item, token);
    return now?.fencingToken === fencingToken ? now : undefined;
  }

  /** Why the lease is lost, by an item that does not show it. */
  #lossBy(item: Item | undefined): [reason: LeaseLostReason, detail?: string] {
    const { token } = this.terms.record;
    const isClosed = leaseOf(this.form, item, cooldownToken(token)) !== undefined;
    // If several leases share the item, none of them has replaced this one.
    const holder = this.terms.record.seat === undefined ? this.form.leasesIn(item)[0] : undefined;
    if (holder !== undefined) {
      return [isClosed ? "released" : "taken", `held by ${quoted(holder.owner)}`];
    }
    if (isClosed || lastReleasedToken(item) === token) return ["released"];
    // Without an item, ttl has removed the lease. With another token's tombstone, another caller took it over and
    // released it.
    return [item === undefined ? "expired" : "taken"];
  }

  async #end(completed: boolean): Promise<Ended> {
    const { clock, gate } = this.#context;
    const { record } = this.terms;
    if (record.seat !== undefined && !record.reentrant && this.deadline.lost === undefined) {
      this.#lastBelief = { since: clock.moment(), forMs: this.deadline.remainingMs() };
    }
    this.deadline.end("released");
    if (this.#renewing !== undefined) await this.settleRenewal();
    if (this.#isGone) {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed: false });
      return notOurs;
    }

    const slot = completed ? this.terms.slot : undefined;
    let confirmed = false;
    try {
      const { applied, item, retried } = await gate.giveBack(() => this.#sendRelease(slot));
      confirmed = applied || wasReleasedByHolder(item, record.token);
      if (!confirmed) {
        const isKnown = this.#ownIn(item) !== undefined || wasBroken(item, record.token);
        if (isKnown || !(retried || this.#mayHaveEnded)) return notOurs;
        // Nobody could take the seat yet, so an earlier copy of the release has removed it.
        confirmed = this.#isStillBelieved();
      }
      // The release that landed may be an earlier one, which left the slot open.
      const isRecorded = slot !== undefined && (applied || (lastDoneSlot(item) ?? "") >= slot);
      if (!confirmed) return { wasOurs: undefined, isRecorded };
      this.form.released?.();
      return { wasOurs: true, isRecorded };
    } catch (error) {
      if (error instanceof LeaseError && error.mayHaveLanded) this.#mayHaveEnded = true;
      throw error;
    } finally {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed });
    }
  }

  /** The time limit counts from here: the release may have waited in the gate before. */
  async #sendRelease(slot: string | undefined): Promise<UpdateResult> {
    const { clock, retentionMs, table } = this.#context;
    if (!this.#isSeen) await this.#see();
    const at = clock.moment();
    const leftMs = this.#cooldownLeftMs(at);
    // No later write would correct a wrong wall clock.
    const ownClock = !clock.isTold;
    const cooldown =
      leftMs > 0 ? { until: clock.expiryOf(at, leftMs), ownClock, forMs: Math.ceil(leftMs) } : undefined;
    const ending = { shown: this.#shown, now: clock.timeOf(at), retentionMs, slot, cooldown };
    return await table.update(this.form.release(ending), { since: at });
  }

  /** Whether only the holder, or an operator, can have ended the seat so far. */
  #isStillBelieved(): boolean {
    if (this.#lastBelief === undefined) return false;
    const { since, forMs } = this.#lastBelief;
    return this.#context.clock.elapsedSince(since) < forMs;
  }

  /** How much longer the lock has to stay closed; on the monotonic clock if this process has acquired it. */
  #cooldownLeftMs(at: Moment): number {
    const { record, heldSince, cooldownUntil } = this.terms;
    if (cooldownUntil === undefined) return 0;
    const cooldownMs = cooldownUntil - record.acquiredAt;
    const { clock } = this.#context;
    if (heldSince !== undefined) return cooldownMs - (at.monotonic - heldSince);
    // If the service's time is not known, the whole cooldown begins now.
    return cooldownMs - (clock.isTold ? Math.max(0, clock.timeOf(at) - record.acquiredAt) : 0);
  }

  /** Lets a renewal that is under way finish, or aborts it. So a renewal never runs beside the release. */
  protected async settleRenewal(): Promise<void> {
    const renewing = this.#renewing;
    if (renewing === undefined) return;
    await settles(this.#context.clock, renewing.done, renewalGraceMs);
    const message = "the renewal was cut off by the end of its lease";
    renewing.cut.abort(new LeaseServiceError("LEASE_NO_ANSWER", message));
    // Ignored: the renewal's own caller gets its error.
    await renewing.done.catch(() => undefined);
  }

  /** Called by the deadline alone: the lease protects nothing from now on. */
  ended(reason: LeaseLostReason): void {
    this.#context.lifecycle.forget(this);
    for (const listener of this.#endListeners) listener();
    if (!this.#isEnding) this.#publish({ type: "lost", reason, heldMs: this.#heldMs() });
  }

  #throwIfLost(): void {
    if (this.deadline.lost !== undefined) throw this.deadline.error;
  }

  #heldMs(): number {
    return Math.round(this.#context.clock.monotonic() - this.#heldSince);
  }

  #publish(event: HeldLeaseEvent): void {
    const { key, sortKey, owner, fencingToken } = this.terms.record;
    this.#context.publish(
      event.type === "error"
        ? { ...event, key, sortKey, owner }
        : { ...event, key, sortKey, owner, fencingToken },
    );
  }
}

/** The fields of an event that differ from one event of a lease to the next. */
type HeldLeaseEvent = LeaseEvent extends infer Event
  ? Event extends { readonly type: "renewed" | "lost" | "released" | "error" }
    ? Omit<Event, "key" | "sortKey" | "owner" | "fencingToken">
    : never
  : never;

function clocksMoved(key: string): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_NO_ANSWER",
    `this machine's clocks moved apart while the lock ${quoted(key)} was renewed, each time: renew it again`,
  );
}
