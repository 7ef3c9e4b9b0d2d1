import type { LeaseLostReason } from "../errors.ts";
import type { LeaseEvent } from "../events.ts";
import { type Completion, close, release, renew } from "../expressions.ts";
import { type LeaseRecord, lastReleasedToken, readRecord, wasReleasedByHolder } from "../record.ts";
import type { CallOptions, UpdateRequest, UpdateResult } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import { type Moment, moment, sleep } from "../time/clock.ts";
import { callStore, type ProtocolContext } from "./context.ts";
import { Validity } from "./validity.ts";

/** What identifies a tenancy and what it asks for when it renews. */
export interface TenancyTerms {
  readonly record: LeaseRecord;
  readonly leaseDurationMs: number;
  /** Until when a release keeps the lock closed, in epoch milliseconds; undefined to open it at once. */
  readonly closedUntil: number | undefined;
  /** The run that it stands for. */
  readonly slot: string | undefined;
}

/** Sends one conditional write; heartbeats pass one that lets writes travel together. */
export type SendUpdate = (request: UpdateRequest, options: CallOptions) => Promise<UpdateResult>;

/** One renewal takes no longer than this, nor than half of what is left, so that a hanging one leaves time for another. */
const longestRenewalMs = 5_000;
/** A release waits this long for a renewal that is under way before it cuts it off. */
const renewalGraceMs = 1_000;

/**
 * One token's hold on a lock: its renewals, at most one at a time, and its end, never beside a renewal.
 */
export class Tenancy {
  readonly terms: TenancyTerms;
  readonly validity: Validity;
  readonly #context: ProtocolContext;
  /** On the monotonic clock. */
  readonly #heldSince: number;
  readonly #closedUntil: number | undefined;
  #version: number;
  /** Whether the table has been seen without our token: then there is nothing left to release. */
  #isGone = false;
  #renewing: { readonly done: Promise<void>; readonly cut: AbortController } | undefined;
  #isEnding = false;
  #ending: Promise<boolean> | undefined;
  #holds = 1;
  readonly #endListeners: (() => void)[] = [];

  /** Without `since` it is unconfirmed: it protects nothing until a renewal has shown that it still stands. */
  constructor(context: ProtocolContext, terms: TenancyTerms, since: Moment | undefined) {
    const { record } = terms;
    this.terms = terms;
    this.#context = context;
    this.#version = record.version;
    const now = moment(context.clock);
    this.#heldSince = since?.monotonic ?? now.monotonic - (now.wall - record.acquiredAt);
    this.validity = new Validity(record.key, context.clock, record.expiresAt, (reason) =>
      this.#ended(reason),
    );
    // Kept on the monotonic clock, so that a jump of the wall clock does not open the lock early.
    this.#closedUntil =
      terms.closedUntil === undefined ? undefined : now.monotonic + terms.closedUntil - now.wall;
    if (since !== undefined) this.validity.confirm(since, terms.leaseDurationMs);
  }

  get version(): number {
    return this.#version;
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

  /**
   * Ends it: 1 request, none if it is known to be gone. Tells whether it was still this token's to end.
   *
   * `completed` records its slot as done.
   */
  release(completed: boolean): Promise<boolean> {
    if (this.#holds > 1) {
      this.#holds -= 1;
      return Promise.resolve(true);
    }
    this.#isEnding = true;
    this.#ending ??= this.#end(completed).catch((error: unknown) => {
      // The lock may still be ours: the caller may try again.
      this.#ending = undefined;
      throw error;
    });
    return this.#ending;
  }

  async #renewOnce(budgetMs: number, send: SendUpdate, cut: AbortSignal): Promise<void> {
    const { clock, retentionMs } = this.#context;
    const { record, leaseDurationMs } = this.terms;
    const since = moment(clock);
    const expiresAt = since.wall + leaseDurationMs;
    const version = this.#version + 1;
    this.#version = version;
    const renewal = {
      key: record.key,
      place: record.place,
      token: record.token,
      version,
      expiresAt,
      leaseDurationMs,
      retentionMs,
    };
    const result = await withBudget(clock, budgetMs, cut, (call) => send(renew(renewal), call), since);
    this.#context.noteOffset(result.offset);

    const now = readRecord(result.item);
    if (now?.token !== record.token) {
      this.#isGone = true;
      this.validity.end(this.#lossBy(result, now), now && `held by ${JSON.stringify(now.owner)}`);
      return;
    }
    if (now.version === version && now.expiresAt === expiresAt) {
      this.validity.confirm(since, leaseDurationMs);
      // A confirmation that comes after the deadline revives nothing.
      if (this.validity.lost === undefined) this.#publish({ type: "renewed", expiresAt });
      if (now.revocation !== undefined) this.validity.end("revoked", now.revocation);
      return;
    }
    // Another process renews the same token, as after a hand-over: carry on from its version.
    this.#version = Math.max(this.#version, now.version);
    await this.#renewOnce(budgetMs, send, cut);
  }

  #lossBy(result: UpdateResult, now: LeaseRecord | undefined): LeaseLostReason {
    if (now !== undefined) return now.closed ? "released" : "taken";
    if (lastReleasedToken(result.item) === this.terms.record.token) return "released";
    // Without an item ttl has removed it; with another's tombstone somebody took it over and let it go.
    return result.item === undefined ? "expired" : "taken";
  }

  async #end(completed: boolean): Promise<boolean> {
    const { clock } = this.#context;
    this.validity.end("released");
    await this.#settleRenewal();
    if (this.#isGone) {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed: false });
      return false;
    }

    const { record } = this.terms;
    const now = clock.now();
    const remainsClosed = this.#closedUntil === undefined ? 0 : this.#closedUntil - clock.monotonic();
    const ending: Completion = {
      slot: completed ? this.terms.slot : undefined,
      key: record.key,
      place: record.place,
      token: record.token,
      now,
      retentionMs: this.#context.retentionMs,
    };
    const request =
      remainsClosed > 0 ? close({ ...ending, closedUntil: Math.ceil(now + remainsClosed) }) : release(ending);
    let confirmed = false;
    try {
      const result = await callStore(this.#context, (store, call) => store.update(request, call));
      confirmed = result.applied || wasReleasedByHolder(result.item, record.token);
      return confirmed;
    } finally {
      this.#publish({ type: "released", heldMs: this.#heldMs(), confirmed });
    }
  }

  /** Lets a renewal that is under way finish, or cuts it off, so that it never runs beside the release. */
  async #settleRenewal(): Promise<void> {
    const renewing = this.#renewing;
    if (renewing === undefined) return;
    const done = renewing.done.catch(() => undefined);
    const grace = new AbortController();
    const graceIsOver = sleep(this.#context.clock, renewalGraceMs, grace.signal).catch(() => undefined);
    await Promise.race([done, graceIsOver]);
    grace.abort();
    renewing.cut.abort(new Error("cut off by the release of its lease"));
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
    this.#context.publish({ key, place, owner, fencingToken, ...event });
  }
}

/** The part of an event that is not said of every one of a tenancy's. */
type TenancyEvent = LeaseEvent extends infer Event
  ? Event extends { readonly type: "renewed" | "lost" | "released" }
    ? Omit<Event, "key" | "place" | "owner" | "fencingToken">
    : never
  : never;
