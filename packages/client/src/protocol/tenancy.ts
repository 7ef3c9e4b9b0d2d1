import { LeaseError, type LeaseLostReason, LeaseServiceError } from "../errors/errors.ts";
import { asError, isOperational } from "../errors/operational.ts";
import type { LeaseEvent } from "../events.ts";
import { type Completion, close, release, renew } from "../expressions.ts";
import {
  type LeaseRecord,
  lastDoneSlot,
  lastReleasedToken,
  readRecord,
  wasBroken,
  wasReleasedByHolder,
} from "../record.ts";
import type { CallOptions, UpdateRequest, UpdateResult } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import { type Moment, pause } from "../time/clock.ts";
import { callStore, type ProtocolContext } from "./context.ts";
import type { Removal } from "./lifecycle.ts";
import { type Belief, Validity } from "./validity.ts";

/** What identifies a tenancy and what it asks for when it renews. */
export interface TenancyTerms {
  readonly record: LeaseRecord;
  readonly leaseDurationMs: number;
  /** When it was acquired, on the monotonic clock. @default - by the record, which another process may have written */
  readonly heldSince?: number;
  /** Until when a release keeps the lock closed, in epoch milliseconds; undefined to open it at once. */
  readonly closedUntil: number | undefined;
  /** The run that it stands for. */
  readonly slot: string | undefined;
}

/** What the end of a tenancy has come to. */
export interface Ended {
  /** Whether the lock was still this token's to end. */
  readonly wasOurs: boolean;
  /** Whether its slot is recorded as done, or will be when the last handle ends. */
  readonly isRecorded: boolean;
}

const notOurs: Ended = { wasOurs: false, isRecorded: false };

/** Sends one conditional write; heartbeats pass one that lets writes travel together. */
export type SendUpdate = (request: UpdateRequest, options: CallOptions) => Promise<UpdateResult>;

/** One renewal takes no longer than this, nor than half of what is left, so that a hanging one leaves time for another. */
const longestRenewalMs = 5_000;
/** How often one renewal is repeated at once, because its answer showed that it wrote a wrong expiry. */
const mostCorrections = 1;
/** A release waits this long for a renewal that is under way before it cuts it off. */
const renewalGraceMs = 1_000;

/**
 * One token's hold on a lock: its renewals, at most one at a time, and its end, never beside a renewal.
 */
export class Tenancy {
  readonly terms: TenancyTerms;
  readonly validity: Validity;
  /** What its release removes from the table. */
  readonly removal: Removal;
  readonly #context: ProtocolContext;
  /** On the monotonic clock. */
  readonly #heldSince: number;
  #version: number;
  /** Whether the table has been seen without our token: then there is nothing left to release. */
  #isGone = false;
  #renewing: { readonly done: Promise<void>; readonly cut: AbortController } | undefined;
  #isEnding = false;
  #ending: Promise<Ended | "unknown"> | undefined;
  /** Whether a release may have landed, unknown to us. */
  #mayHaveEnded = false;
  #holds = 1;
  /** Whether one of its handles has asked for the slot to be recorded. */
  #isCompleted = false;
  readonly #endListeners: (() => void)[] = [];

  /** Without a belief it is unconfirmed: it protects nothing until a renewal has shown that it still stands. */
  constructor(context: ProtocolContext, terms: TenancyTerms, belief: Belief | undefined) {
    const { record } = terms;
    this.terms = terms;
    this.#context = context;
    this.#version = record.version;
    const { clock } = context;
    this.#heldSince = terms.heldSince ?? clock.monotonic() - Math.max(0, clock.now() - record.acquiredAt);
    this.validity = new Validity(record.key, context.clock, record.expiresAt, (reason) =>
      this.#ended(reason),
    );
    const { validity } = this;
    this.removal = {
      key: record.key,
      place: record.place,
      get expiresAt() {
        return validity.expiresAt;
      },
    };
    if (belief !== undefined) this.validity.confirm(belief, record.expiresAt);
  }

  get version(): number {
    return this.#version;
  }

  /**
   * Until when another process may believe in it, in epoch milliseconds of the service: the table may show a later
   * expiry, but those who only watch the record do not wait for that.
   */
  get believedUntil(): number {
    const { clock } = this.#context;
    const now = clock.earliest() ?? clock.now();
    return Math.min(this.validity.expiresAt, Math.floor(now + this.validity.remainingMs()));
  }

  /** Calls back when it ends, for whatever reason. */
  onEnd(listener: () => void): void {
    this.#endListeners.push(listener);
  }

  /** One more handle shares it; it ends with the last one. */
  retain(): void {
    this.#holds += 1;
  }

  /** Prolongs it: 1 request. Callers at the same time share one. Rejects when it is lost or the service fails. */
  async renew(send: SendUpdate): Promise<void> {
    this.#throwIfLost();
    if (this.#renewing === undefined) {
      const cut = new AbortController();
      // An unconfirmed tenancy has no deadline yet.
      const remainingMs = this.validity.remainingMs() || this.terms.leaseDurationMs;
      const budgetMs = Math.min(remainingMs / 2, longestRenewalMs);
      const done = this.#renewOnce(budgetMs, send, cut.signal).finally(() => {
        this.#renewing = undefined;
      });
      this.#renewing = { done, cut };
    }
    await this.#renewing.done;
    this.#throwIfLost();
  }

  /** Ends the holder's belief in it, for its heartbeat met a mistake in the program. It stays in the table. */
  fail(error: unknown): void {
    if (this.validity.lost !== undefined) return;
    this.#publish({ type: "error", operation: "renew", error: asError(error) });
    this.validity.end("failed", undefined, { cause: error });
  }

  /**
   * Ends it: 1 request, none if it is known to be gone, or while it has other handles. `completed` records its slot as
   * done, when the last handle ends.
   *
   * Rejects with LeaseServiceError where the service did not confirm. Where others have had the lock since, it stays
   * unknown whether an earlier copy of the release had landed, or whether the lock was taken away before.
   */
  async release(completed: boolean): Promise<Ended> {
    if (this.#holds > 1) {
      this.#holds -= 1;
      this.#isCompleted ||= completed;
      const { lost } = this.validity;
      return lost === undefined || lost.reason === "revoked"
        ? { wasOurs: true, isRecorded: completed }
        : notOurs;
    }
    const ended = await this.#endOnce(completed);
    if (ended !== "unknown") return ended;
    throw new LeaseServiceError(
      "LEASE_NO_ANSWER",
      `an answer to the release of ${JSON.stringify(this.terms.record.key)} was lost, and others have had the lock ` +
        "since: it is not known whether the release had landed. Nothing stays held",
    );
  }

  /** Ends it for all of its handles, in the background. */
  letGo(): void {
    this.#holds = 1;
    void this.#endOnce(false);
  }

  #endOnce(completed: boolean): Promise<Ended | "unknown"> {
    this.#isEnding = true;
    if (this.#ending === undefined) {
      this.#ending = this.#end(completed || this.#isCompleted).catch((error: unknown) => {
        // The lock may still be ours: the caller may try again.
        this.#ending = undefined;
        if (!isOperational(error)) {
          this.#publish({ type: "error", operation: "release", error: asError(error) });
        }
        throw error;
      });
      this.#context.lifecycle.follow(this.removal, this.#ending);
    }
    return this.#ending;
  }

  async #renewOnce(
    budgetMs: number,
    send: SendUpdate,
    cut: AbortSignal,
    corrections = mostCorrections,
  ): Promise<void> {
    const { clock, retentionMs } = this.#context;
    const { record, leaseDurationMs } = this.terms;
    const since = clock.moment();
    const expiresAt = clock.expiryOf(since, leaseDurationMs, this.validity.expiresAt);
    const version = this.#version + 1;
    this.#version = version;
    const renewal = {
      key: record.key,
      place: record.place,
      token: record.token,
      fencingToken: record.fencingToken,
      version,
      expiresAt,
      leaseDurationMs,
      retentionMs,
    };
    const result = await withBudget(clock, budgetMs, cut, (call) => send(renew(renewal), call), since);

    const now = readRecord(result.item);
    if (now === undefined || !this.#isOurs(now)) {
      this.#isGone = true;
      this.validity.end(this.#lossBy(result, now), now && `held by ${JSON.stringify(now.owner)}`);
      return;
    }
    if (now.version === version && now.expiresAt === expiresAt) {
      const { believedMs, isSound } = clock.checkExpiry(expiresAt, since, leaseDurationMs);
      if (believedMs > 0) this.validity.confirm({ since, forMs: believedMs }, expiresAt);
      // A confirmation that comes after the deadline revives nothing.
      if (believedMs > 0 && this.validity.lost === undefined) this.#publish({ type: "renewed", expiresAt });
      if (now.revocation !== undefined) this.validity.end("revoked", now.revocation);
      if (isSound || this.validity.lost !== undefined) return;
      // This answer has told the service's time, which the expiry was too far from.
      if (corrections > 0) return await this.#renewOnce(budgetMs, send, cut, corrections - 1);
      if (believedMs === 0) throw clocksMoved(record.key);
      return;
    }
    // Another process renews the same token, as after a hand-over: carry on from its version.
    this.#version = Math.max(this.#version, now.version);
    await this.#renewOnce(budgetMs, send, cut, corrections);
  }

  /** A late copy of the acquisition may have brought the token back, with another fencing token: for nobody. */
  #isOurs(now: LeaseRecord | undefined): boolean {
    const { token, fencingToken } = this.terms.record;
    return now?.token === token && now.fencingToken === fencingToken;
  }

  #lossBy(result: UpdateResult, now: LeaseRecord | undefined): LeaseLostReason {
    if (now !== undefined) return now.closed ? "released" : "taken";
    if (lastReleasedToken(result.item) === this.terms.record.token) return "released";
    // Without an item ttl has removed it; with another's tombstone somebody took it over and let it go.
    return result.item === undefined ? "expired" : "taken";
  }

  async #end(completed: boolean): Promise<Ended | "unknown"> {
    const { clock } = this.#context;
    this.validity.end("released");
    await this.#settleRenewal();
    if (this.#isGone) {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed: false });
      return notOurs;
    }

    const { record } = this.terms;
    const slot = completed ? this.terms.slot : undefined;
    const at = clock.moment();
    const remainsClosed = this.#remainsClosed(at);
    const ending: Completion = {
      slot,
      key: record.key,
      place: record.place,
      token: record.token,
      fencingToken: record.fencingToken,
      now: clock.timeOf(at),
      retentionMs: this.#context.retentionMs,
    };
    const request =
      remainsClosed > 0
        ? close({
            ...ending,
            closedUntil: clock.expiryOf(at, remainsClosed),
            closedForMs: Math.ceil(remainsClosed),
          })
        : release(ending);
    let confirmed = false;
    try {
      const result = await callStore(this.#context, (store, call) => store.update(request, call));
      confirmed = result.applied || wasReleasedByHolder(result.item, record.token);
      // What has landed may be an earlier release, which left the slot open.
      const isRecorded = slot !== undefined && (result.applied || (lastDoneSlot(result.item) ?? "") >= slot);
      if (confirmed) return { wasOurs: true, isRecorded };
      const mayHaveEnded = result.retried || this.#mayHaveEnded;
      const isKnown = this.#isOurs(readRecord(result.item)) || wasBroken(result.item, record.token);
      return mayHaveEnded && !isKnown ? "unknown" : notOurs;
    } catch (error) {
      if (error instanceof LeaseError && error.mayHaveLanded) this.#mayHaveEnded = true;
      throw error;
    } finally {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed });
    }
  }

  /** For how much longer the lock has to stay closed; on the monotonic clock, where this process has acquired it. */
  #remainsClosed(at: Moment): number {
    const { record, heldSince, closedUntil } = this.terms;
    if (closedUntil === undefined) return 0;
    const closedForMs = closedUntil - record.acquiredAt;
    const heldMs =
      heldSince === undefined
        ? Math.max(0, this.#context.clock.timeOf(at) - record.acquiredAt)
        : at.monotonic - heldSince;
    return closedForMs - heldMs;
  }

  /** Lets a renewal that is under way finish, or cuts it off, so that it never runs beside the release. */
  async #settleRenewal(): Promise<void> {
    const renewing = this.#renewing;
    if (renewing === undefined) return;
    // Ignored: the renewal's own caller has its error.
    const done = renewing.done.catch(() => undefined);
    const grace = new AbortController();
    const graceIsOver = pause(this.#context.clock, renewalGraceMs, grace.signal);
    await Promise.race([done, graceIsOver]);
    grace.abort();
    const message = "cut off by the release of its lease";
    renewing.cut.abort(new LeaseServiceError("LEASE_NO_ANSWER", message));
    await done;
  }

  #ended(reason: LeaseLostReason): void {
    for (const listener of this.#endListeners) listener();
    if (!this.#isEnding) this.#publish({ type: "lost", reason, heldMs: this.#heldMs() });
  }

  #throwIfLost(): void {
    if (this.validity.lost !== undefined) throw this.validity.lost;
  }

  #heldMs(): number {
    return Math.round(this.#context.clock.monotonic() - this.#heldSince);
  }

  #publish(event: TenancyEvent): void {
    const { key, place, owner, fencingToken } = this.terms.record;
    const subject = { key, place, owner };
    this.#context.publish(
      event.type === "error" ? { ...subject, ...event } : { ...subject, fencingToken, ...event },
    );
  }
}

/** The part of an event that is not said of every one of a tenancy's. */
type TenancyEvent = LeaseEvent extends infer Event
  ? Event extends { readonly type: "renewed" | "lost" | "released" | "error" }
    ? Omit<Event, "key" | "place" | "owner" | "fencingToken">
    : never
  : never;

function clocksMoved(key: string): LeaseServiceError {
  return new LeaseServiceError(
    "LEASE_NO_ANSWER",
    `this machine's clocks moved apart while the lock ${JSON.stringify(key)} was renewed, each time: renew it again`,
  );
}
