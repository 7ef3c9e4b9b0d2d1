import { type Moment, settles } from "../base/clock.ts";
import {
  LeaseError,
  type LeaseErrorCode,
  type LeaseLostReason,
  LeaseServiceError,
  quoted,
} from "../base/errors.ts";
import type { LeaseEvent } from "../base/events.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { asError, isOperational } from "../base/operational.ts";
import { lastDoneSlot, lastReleasedToken, wasBroken, wasReleasedByHolder } from "../base/record.ts";
import { cooldownToken, leaseItemKey } from "../base/schema.ts";
import type { ServiceClock } from "../base/service-clock.ts";
import type { CallOptions, Item, UpdateResult } from "../base/store.ts";
import { TimedCall } from "../base/timed-call.ts";
import type { Write } from "../statements/statement.ts";
import { type Core, request } from "./core.ts";
import { type Belief, LeaseDeadline } from "./deadline.ts";
import { type Ended, type HeldForm, leaseOf } from "./form.ts";
import type { Beating } from "./heartbeat.ts";
import type { Held } from "./lifecycle.ts";
import type { Shareable, SharedTimes } from "./sharing.ts";

/** What identifies a lease, and what its renewals ask for. */
export interface HeldLeaseTerms {
  readonly record: LeaseRecord;
  readonly leaseDurationMs: number;
  /**
   * The time of the acquisition, on the monotonic clock.
   * @default - by the record, which another process may have written
   */
  readonly heldSince?: number;
  /** When the lock's cooldown ends, in epoch milliseconds. @default - it has none */
  readonly cooldownUntil?: number | undefined;
  /** The slot that the lease stands for. @default - none */
  readonly slot?: string | undefined;
}

/** Sends one conditional write in a call of its own. A group's renewals travel together. */
export type SendUpdate = (write: Write, call: TimedCall) => Promise<UpdateResult>;

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
/** A release waits this long for a renewal that is under way; then it cuts the renewal off. */
const renewalGraceMs = 1_000;

/** One renewal, with the calls that it takes. */
class PendingRenewal {
  readonly send: SendUpdate;
  readonly #withinMs: number;
  done: Promise<void> = Promise.resolve();
  corrections = 0;
  overtakings = 0;
  #call: TimedCall | undefined;
  #reason: LeaseServiceError | undefined;

  constructor(withinMs: number, send: SendUpdate) {
    this.#withinMs = withinMs;
    this.send = send;
  }

  /** Makes one call, unless the renewal was cut off. */
  async call<T>(
    clock: ServiceClock,
    since: Moment | undefined,
    make: (call: TimedCall) => Promise<T>,
  ): Promise<T> {
    if (this.#reason !== undefined) throw this.#reason;
    const call = new TimedCall(clock, { withinMs: this.#withinMs, ...(since && { since }) });
    this.#call = call;
    try {
      return await make(call);
    } finally {
      call.end();
    }
  }

  cut(): void {
    this.#reason = new LeaseServiceError(
      "LEASE_NO_ANSWER",
      "the renewal was cut off by the end of its lease",
    );
    this.#call?.cut(this.#reason);
  }
}

const notOurs: Ended = { wasOurs: false, isRecorded: false };

/**
 * One token's hold on a lock: its deadline, its renewals, at most one at a time, and its release, never beside a
 * renewal.
 */
export class HeldLease extends LeaseDeadline implements Held, Beating, Shareable {
  readonly core: Core;
  readonly form: HeldForm;
  /** The slot that it stands for. */
  readonly slot: string | undefined;
  /** The handles that have not been released; several when an owner shares the lease reentrantly. */
  handles: readonly object[] = [];
  /** The interval of its heartbeat; the shortest that a handle has asked for. Infinite without a heartbeat. */
  renewEveryMs: number = Number.POSITIVE_INFINITY;
  #stopRenewing: (() => void) | undefined;
  #record: LeaseRecord;
  /** The version of the last renewal; the table may not have it yet. */
  #version: number;
  #leaseDurationMs: number;
  #cooldownUntil: number | undefined;
  /** On the monotonic clock. */
  readonly #heldSince: number;
  /** Whether this process has it by a handle: then its record tells when it was acquired. */
  readonly #isAdopted: boolean;
  /** Whether the table has shown what the writes repeat. Of a shared item, a handle alone can claim anything. */
  #isSeen: boolean;
  /** Whether an answer has shown the item without this token: then nothing is left to release. */
  #isGone = false;
  #renewing: PendingRenewal | undefined;
  /** Whether no renewal may begin: the primitive ends the lease by a write of its own. */
  #isStill = false;
  /** Whether its end is its holder's own wish: then it is not told as lost. */
  #isEnding = false;
  #ending: Promise<Ended> | undefined;
  /** Whether a release may have landed without an answer. */
  #mayHaveEnded = false;
  /** Time left at release; only for seats that are not reentrant. */
  #lastBelief: Belief | undefined;
  #holds = 1;
  /** Whether a handle has asked to record the slot as done. */
  #isCompleted = false;

  /** Without a belief the lease is unconfirmed: it protects nothing until a renewal confirms it. */
  constructor(core: Core, form: HeldForm, terms: HeldLeaseTerms, belief?: Belief) {
    const { record, heldSince } = terms;
    const { clock } = core;
    super(clock, record);
    this.core = core;
    this.form = form;
    this.slot = terms.slot;
    this.#record = record;
    this.#version = record.version;
    this.#leaseDurationMs = terms.leaseDurationMs;
    this.#cooldownUntil = terms.cooldownUntil;
    this.#isAdopted = heldSince === undefined;
    this.#isSeen = !(this.#isAdopted && form.isShared);
    this.#heldSince = heldSince ?? clock.monotonic() - Math.max(0, clock.now() - record.acquiredAt);
    if (belief !== undefined) this.confirm(belief, record.expiresAt);
  }

  get key(): string {
    return this.#record.key;
  }

  get sortKey(): string {
    return this.#record.sortKey;
  }

  /** The lease as the table showed it last. */
  get record(): LeaseRecord {
    return this.#record;
  }

  get version(): number {
    return this.#version;
  }

  /** By how much a renewal prolongs it. */
  get leaseDurationMs(): number {
    return this.#leaseDurationMs;
  }

  /** When the lock's cooldown ends, in epoch milliseconds; undefined without one. */
  get cooldownUntil(): number | undefined {
    return this.#cooldownUntil;
  }

  /**
   * Until when another process may believe in the lease, in epoch milliseconds of the service. The table may show a
   * later expiry, but observers do not wait for that.
   */
  get believedUntil(): number {
    const { clock } = this.core;
    const now = clock.earliest() ?? clock.now();
    return Math.min(this.expiresAt, Math.floor(now + this.remainingMs()));
  }

  /** Lists it among the leases that the client holds, and that closing the client releases. */
  list(): void {
    if (this.form.isListed ?? true) this.core.lifecycle.hold(this);
  }

  /**
   * Renews it in the background if an interval is given, until it ends or the returned function is called. A shared lease
   * may be shorter than its caller asked.
   */
  keepAlive(heartbeatMs: number | undefined): () => void {
    if (heartbeatMs !== undefined) {
      const durationMs = this.#leaseDurationMs;
      const wantedMs = heartbeatMs < durationMs / 2 ? heartbeatMs : durationMs / 3;
      this.renewEveryMs = Math.min(this.renewEveryMs, wantedMs);
      this.#stopRenewing ??= this.core.keeper.keep(this);
    }
    return () => {
      this.#stopRenewing?.();
      this.#stopRenewing = undefined;
    };
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
    if (lockAtLeastForMs > 0) {
      const until = this.#record.acquiredAt + this.#heldMs() + lockAtLeastForMs;
      this.#cooldownUntil = Math.max(this.#cooldownUntil ?? 0, until);
    }
    // As the table shows it: another caller's renewal for a longer duration may be under way, or may have failed.
    const isShort = (): boolean => this.#record.leaseDurationMs < askedDurationMs;
    if (!isShort()) return;
    this.#leaseDurationMs = Math.max(this.#leaseDurationMs, askedDurationMs);
    // Ignored: the renewal's caller gets its error. That renewal may write a shorter duration: then another one has to
    // follow.
    await this.#renewing?.done.catch(() => undefined);
    if (isShort()) await this.renew();
  }

  /**
   * Prolongs the lease: 1 request. Concurrent callers share one. Rejects when the lease is lost or the service fails.
   */
  async renew(
    send: SendUpdate = (write, call) => this.core.store.update(write.request(), call),
  ): Promise<void> {
    // An unconfirmed lease has no deadline yet. Reading the time that is left can end the lease.
    const leftMs = this.remainingMs() || this.#leaseDurationMs;
    this.#throwIfLost();
    if (this.#isStill) {
      const message = "the lease is being ended: renew it only after that has failed";
      throw new LeaseServiceError("LEASE_CONFLICT", message);
    }
    const earlier = this.#renewing;
    const renewal = earlier ?? new PendingRenewal(Math.min(leftMs / 2, longestRenewalMs), send);
    if (earlier === undefined) {
      this.#renewing = renewal;
      renewal.done = this.#renewOnce(renewal).finally(() => {
        this.#renewing = undefined;
      });
    }
    await renewal.done;
    this.#throwIfLost();
    // The earlier one may have been sent without it.
    if (earlier && !this.#isStill && this.form.hasReport) await this.renew(send);
  }

  /** Ends the holder's belief, because its heartbeat met a mistake in the program. The lease stays in the table. */
  fail(error: unknown): void {
    if (this.lost !== undefined) return;
    this.#publish({ type: "error", operation: "renew", error: asError(error) });
    this.over("failed", undefined, { cause: error });
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
      const { lost } = this;
      return lost === undefined || lost === "revoked" ? { wasOurs: true, isRecorded: completed } : notOurs;
    }
    const ended = await this.endOnce(completed);
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
    void this.endOnce(false);
  }

  /** Lets a renewal that is under way finish, or cuts it off. No renewal begins until the returned function is called. */
  async still(): Promise<() => void> {
    this.#isStill = true;
    await this.#settleRenewal();
    return () => {
      this.#isStill = false;
    };
  }

  /** The primitive has ended the lease by a write of its own, or has learnt that another caller has it. */
  close(confirmed: boolean): void {
    this.#isEnding = true;
    this.over(confirmed ? "released" : "taken");
    this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed });
  }

  /** Publishes that the slot's work is done and could not be recorded. */
  tellCompletionFailed(slot: string, code: LeaseErrorCode): void {
    this.#publish({ type: "completionFailed", slot, code });
  }

  protected ended(reason: LeaseLostReason): void {
    this.core.lifecycle.forget(this);
    if (!this.#isEnding) this.#publish({ type: "lost", reason, heldMs: this.#heldMs() });
  }

  /** Releases it for all of its handles. Gives the same answer again; after a rejection, it may be called again. */
  endOnce(completed: boolean): Promise<Ended> {
    if (this.#ending !== undefined) return this.#ending;
    this.#isEnding ||= this.form.endBy === undefined;
    const ending = this.form.endBy?.() ?? this.#end(completed || this.#isCompleted);
    this.#ending = ending.catch((error: unknown) => {
      // The lock may still be held: the caller may try again.
      this.#ending = undefined;
      if (!isOperational(error)) {
        this.#publish({ type: "error", operation: "release", error: asError(error) });
      }
      throw error;
    });
    this.core.lifecycle.follow(this, this.#ending);
    return this.#ending;
  }

  async #renewOnce(renewal: PendingRenewal): Promise<void> {
    const { clock, times } = this.core;
    if (!this.#isSeen) await renewal.call(clock, undefined, (call) => this.#see(call));
    const since = clock.moment();
    const leaseDurationMs = this.#leaseDurationMs;
    const expiresAt = clock.expiryOf(
      since,
      leaseDurationMs,
      Math.max(this.#record.expiresAt, this.expiresAt),
    );
    // The answer to a process's first request tells the service's time. The own clock is marked only if answers do not
    // tell the time, or if the lease had that mark so far.
    const ownClock = clock.isUntold || (!clock.isTold && this.#record.ownClock === true);
    const version = this.#version + 1;
    this.#version = version;
    const retentionMs = this.form.retentionMs ?? times.retentionMs;
    const shown = this.#record;
    const write = this.form.renew({ shown, version, expiresAt, ownClock, leaseDurationMs, retentionMs });
    const { item } = await renewal.call(clock, since, (call) => renewal.send(write, call));

    const now = this.#ownIn(item);
    if (now === undefined) {
      this.#isGone = true;
      this.over(...this.#lossBy(item));
      return;
    }
    this.#record = now;
    this.form.confirmed?.(item);
    if (now.version === version && now.expiresAt === expiresAt) {
      const { believedMs, isSound } = clock.checkExpiry(expiresAt, since, leaseDurationMs, ownClock);
      if (believedMs > 0) this.confirm({ since, forMs: believedMs, ownClock }, expiresAt);
      // A confirmation after the deadline revives nothing.
      if (believedMs > 0 && this.lost === undefined) this.#publish({ type: "renewed", expiresAt });
      if (now.revocation !== undefined) this.over("revoked", now.revocation);
      if (isSound || this.lost !== undefined) return;
      // This answer has told the service's time, and the written expiry was too far from it.
      renewal.corrections += 1;
      if (renewal.corrections <= mostCorrections) return await this.#renewOnce(renewal);
      if (believedMs === 0) throw clocksMoved(this.key);
      return;
    }
    // Another process renews the same token, as after a hand-over: continue from its version.
    this.#version = Math.max(this.#version, now.version);
    renewal.overtakings += 1;
    if (renewal.overtakings > mostOvertakings)
      throw new LeaseServiceError(
        "LEASE_CONFLICT",
        `another process renewed the lock ${quoted(this.key)} meanwhile, each time`,
      );
    await this.#renewOnce(renewal);
  }

  /**
   * Reads a lease of a shared item that was adopted by a handle, before its first write. If the lease is gone, the write
   * is refused, and the refusal tells why.
   */
  async #see(call: CallOptions): Promise<void> {
    const key = leaseItemKey(this.key, this.sortKey);
    const item = await this.core.store.get({ key, consistent: true }, call);
    const now = this.#ownIn(item);
    if (now === undefined) return;
    this.form.confirmed?.(item);
    this.#record = now;
    this.#version = Math.max(this.#version, now.version);
    this.#isSeen = true;
  }

  /**
   * A late copy of the acquisition may have written the token again, with another fencing token. Nobody holds that
   * lease.
   */
  #ownIn(item: Item | undefined): LeaseRecord | undefined {
    const { token, fencingToken } = this.#record;
    const now = leaseOf(this.form, item, token);
    return now?.fencingToken === fencingToken ? now : undefined;
  }

  /** Why the lease is lost, by an item that does not show it. */
  #lossBy(item: Item | undefined): [reason: LeaseLostReason, detail?: string] {
    const { form } = this;
    const { token } = this.#record;
    const isClosed = leaseOf(form, item, cooldownToken(token)) !== undefined;
    // If several leases share the item, none of them has replaced this one.
    const holder = form.isShared ? undefined : form.leasesIn(item)[0];
    if (holder !== undefined) return [isClosed ? "released" : "taken", `held by ${quoted(holder.owner)}`];
    if (isClosed || lastReleasedToken(item) === token) return ["released"];
    // Without an item, ttl has removed the lease. With another token's tombstone, another caller took it over and
    // released it.
    return [item === undefined ? "expired" : "taken"];
  }

  async #end(completed: boolean): Promise<Ended> {
    const { clock, gate } = this.core;
    const { token } = this.#record;
    if (this.form.isShared && !this.#record.reentrant && this.lost === undefined) {
      this.#lastBelief = { since: clock.moment(), forMs: this.remainingMs() };
    }
    this.over("released");
    if (this.#renewing !== undefined) await this.#settleRenewal();
    if (this.#isGone) {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed: false });
      return notOurs;
    }

    const slot = completed ? this.slot : undefined;
    let confirmed = false;
    try {
      const { applied, item, retried } = await gate.giveBack(() => this.#sendRelease(slot));
      confirmed = applied || wasReleasedByHolder(item, token) || this.form.showsRelease?.(item) === true;
      if (!confirmed) {
        const isKnown = this.#ownIn(item) !== undefined || wasBroken(item, token);
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
    const { clock, times } = this.core;
    if (!this.#isSeen) await request(this.core, {}, (_, call) => this.#see(call));
    const at = clock.moment();
    const leftMs = this.#cooldownLeftMs(at);
    // No later write would correct a wrong wall clock.
    const ownClock = !clock.isTold;
    const cooldown =
      leftMs > 0 ? { until: clock.expiryOf(at, leftMs), ownClock, forMs: Math.ceil(leftMs) } : undefined;
    const retentionMs = this.form.retentionMs ?? times.retentionMs;
    const ending = { shown: this.#record, now: clock.timeOf(at), retentionMs, slot, cooldown };
    return await this.core.update(this.form.release(ending), { since: at });
  }

  /** Whether only the holder, or an operator, can have ended the seat so far. */
  #isStillBelieved(): boolean {
    if (this.#lastBelief === undefined) return false;
    const { since, forMs } = this.#lastBelief;
    return this.core.clock.elapsedSince(since) < forMs;
  }

  /** How much longer the lock has to stay closed; on the monotonic clock if this process has acquired it. */
  #cooldownLeftMs(at: Moment): number {
    if (this.#cooldownUntil === undefined) return 0;
    const { acquiredAt } = this.#record;
    const cooldownMs = this.#cooldownUntil - acquiredAt;
    if (!this.#isAdopted) return cooldownMs - (at.monotonic - this.#heldSince);
    const { clock } = this.core;
    // If the service's time is not known, the whole cooldown begins now.
    return cooldownMs - (clock.isTold ? Math.max(0, clock.timeOf(at) - acquiredAt) : 0);
  }

  /** Lets a renewal that is under way finish, or cuts it off. So a renewal never runs beside the release. */
  async #settleRenewal(): Promise<void> {
    const renewal = this.#renewing;
    if (renewal === undefined) return;
    await settles(this.core.clock, renewal.done, renewalGraceMs);
    renewal.cut();
    // Ignored: the renewal's own caller gets its error.
    await renewal.done.catch(() => undefined);
  }

  #throwIfLost(): void {
    if (this.lost !== undefined) throw this.error;
  }

  #heldMs(): number {
    return Math.round(this.core.clock.monotonic() - this.#heldSince);
  }

  #publish(told: LeaseOwnEvent): void {
    if (!this.core.hears(told.type)) return;
    const { key, sortKey, owner, fencingToken } = this.#record;
    const subject = told.type === "error" ? { key, sortKey, owner } : { key, sortKey, owner, fencingToken };
    const event = { ...told, ...subject } as LeaseEvent;
    if (!this.form.mutes?.(event)) this.core.publish(event);
  }
}

/** The fields of an event that differ from one event of a lease to the next. */
type LeaseOwnEvent = LeaseEvent extends infer Event
  ? Event extends { readonly type: "renewed" | "lost" | "released" | "error" | "completionFailed" }
    ? Omit<Event, "key" | "sortKey" | "owner" | "fencingToken">
    : never
  : never;

function clocksMoved(key: string): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_NO_ANSWER",
    `this machine's clocks moved apart while the lock ${quoted(key)} was renewed, each time: renew it again`,
  );
}
