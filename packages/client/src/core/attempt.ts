import type { Moment } from "../base/clock.ts";
import { LeaseError, LeaseServiceError, quoted, SlotDoneError } from "../base/errors.ts";
import type { LeaseErrorEvent } from "../base/events.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { asError, isOperational } from "../base/operational.ts";
import { lastDoneSlot } from "../base/record.ts";
import type { Item, UpdateResult } from "../base/store.ts";
import { type CallBudget, callBudgetMs, shortestBudgetMs } from "../base/timed-call.ts";
import type { Grant } from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import type { Core } from "./core.ts";
import type { Belief } from "./deadline.ts";
import { type Availability, type LeaseForm, leaseOf, type Takeover } from "./form.ts";

/** What one acquisition asks for; its durations have been validated. */
export interface LeaseTerms {
  readonly key: string;
  readonly sortKey: string;
  readonly owner: string;
  readonly leaseDurationMs: number;
  /** Whether the same owner may share the lease while it is held. */
  readonly reentrant: boolean;
  /** Whether the call shares, or takes over, a reentrant lease of the same owner. */
  readonly resumes: boolean;
  /** JSON text. */
  readonly data: string | undefined;
  /** The slot that the lease stands for. */
  readonly slot: string | undefined;
}

/** The lease was acquired. */
export interface Granted {
  readonly granted: true;
  readonly record: LeaseRecord;
  readonly belief: Belief;
  /** The holders that the lease was taken over from. */
  readonly takeovers: readonly Takeover[];
  /** The item as the granting write left it. */
  readonly item: Item | undefined;
}

/** The lease was not acquired, and the item shows why. */
export interface Refused {
  readonly granted: false;
  readonly availability: Availability;
  readonly item: Item | undefined;
}

/** A write that takes or prolongs the lease, and the moment before it is sent. */
interface OwnWrite extends Grant {
  readonly at: Moment;
  readonly ownClock: boolean;
}

/** How many renewals may follow a grant at once, until the deadline and the table agree on its end. */
const mostRenewals = 2;

/**
 * One acquisition, from its first request to its end, under one token.
 *
 * All tries use the same token. So the next try recognises a write whose answer was lost, and `abandon` can take it
 * back.
 */
export class Attempt {
  readonly token: string;
  readonly form: LeaseForm;
  readonly #core: Core;
  readonly #terms: LeaseTerms;
  readonly #retentionMs: number;
  /**
   * The version of the last write. Each write has another version, so that an observer does not mistake it for an
   * earlier one.
   */
  #version = 0;
  /** Whether a write of this attempt may have landed, or may yet land, without an answer. */
  #isUncertain = false;
  /** Whether an answer has shown a write of this attempt in the item. */
  #hasLanded = false;
  /** Whether a write of this attempt was to take over another lease. */
  #passes = false;

  constructor(core: Core, form: LeaseForm, terms: LeaseTerms) {
    this.token = core.randomness.token();
    this.form = form;
    this.#core = core;
    this.#terms = terms;
    this.#retentionMs = form.retentionMs ?? core.times.retentionMs;
  }

  /**
   * Tries once: 1 request, or 2 when the refusal shows leases that may be taken over and `known` has not shown them.
   * First waits up to `withinMs` until the client's request gate has room.
   *
   * Rejects with SlotDoneError, and when the service fails. After a rejection the caller tries again or calls
   * `abandon`.
   */
  async try(
    { withinMs, signal }: CallBudget & { readonly withinMs: number },
    known?: Availability,
  ): Promise<Granted | Refused> {
    const core = this.#core;
    const entered = core.gate.enter(withinMs, signal);
    const waitedMs = typeof entered === "number" ? entered : await entered;
    let failure: unknown;
    try {
      const usefulMs = Math.max(this.#terms.leaseDurationMs, shortestBudgetMs);
      const leftMs = Math.max(withinMs - waitedMs, shortestBudgetMs);
      const budget = { withinMs: Math.min(leftMs, usefulMs, callBudgetMs), signal };
      let takeovers = known?.takeovers ?? [];
      for (let isSecond = false; ; isSecond = true) {
        const passed = takeovers.map(({ from }) => from);
        this.#passes ||= passed.length > 0;
        const clearings = this.form.clear?.(passed) ?? [];
        let outcome: Granted | Refused | undefined;
        if (clearings.length > 0) outcome = await this.#clear(clearings, budget);
        if (outcome === undefined) {
          const own = this.#nextWrite();
          const timed = { ...budget, since: own.at };
          const sent =
            this.form.acquireBy?.(own, passed, timed) ?? core.update(this.form.acquire(own, passed), timed);
          const result = await sent.catch(this.#doubted);
          if (result.retried) this.#isUncertain = true;
          const isOurs = result.applied || this.#isOurs(result.item);
          outcome = isOurs ? await this.#settle(result, own, budget, takeovers) : this.#refused(result.item);
        }
        // The second try takes over what the first refusal has shown. The caller's next try handles a second refusal.
        if (outcome.granted || outcome.availability.takeovers.length === 0 || isSecond) return outcome;
        takeovers = outcome.availability.takeovers;
      }
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      core.gate.leave(failure);
    }
  }

  /** Whether a write of this attempt has landed, or may still land, also if its lease is over or was taken by now. */
  get mayHaveLanded(): boolean {
    return this.#hasLanded || this.#isUncertain;
  }

  /**
   * Gives the acquisition up.
   *
   * A write that may have landed is taken back in the background, and the caller does not wait: 1 request, or 2 when
   * another caller holds the lock and a takeover may be under way. If that fails too, the lock frees itself when the
   * lease ends.
   */
  abandon(): void {
    if (!this.#isUncertain) return;
    const { clock, lifecycle } = this.#core;
    const { key, sortKey, owner, leaseDurationMs } = this.#terms;
    const cancellation = { token: this.token, now: clock.now(), retentionMs: this.#retentionMs };
    const taken = takeBack(this.#core, {
      cancel: this.form.cancel(cancellation),
      revoke: this.form.revoke(cancellation, this.#passes),
      isOurs: (item) => this.#isOurs(item),
    });
    const removal = { key, sortKey, expiresAt: clock.now() + leaseDurationMs };
    lifecycle.remove(removal, taken, inBackground(this.#core, { key, sortKey, owner, operation: "cancel" }));
  }

  /** When this attempt can succeed, as the item shows it. Throws SlotDoneError. */
  judge(item: Item | undefined): Availability {
    const { key, slot } = this.#terms;
    const done = lastDoneSlot(item) ?? "";
    if (slot !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);
    return this.form.judge(item, this.#terms, this.#core.detector);
  }

  #refused(item: Item | undefined): Refused {
    return { granted: false, availability: this.judge(item), item };
  }

  #nextWrite(latestVersion = 0): OwnWrite {
    const { clock } = this.#core;
    const { owner, leaseDurationMs, reentrant, data, slot } = this.#terms;
    this.#version = Math.max(this.#version, latestVersion) + 1;
    const at = clock.moment();
    return {
      at,
      token: this.token,
      version: this.#version,
      owner,
      acquiredAt: clock.timeOf(at),
      expiresAt: clock.expiryOf(at, leaseDurationMs),
      // The answer to the first request tells the service's time. The own clock is marked here only if answers do not
      // tell it.
      ownClock: clock.isUntold,
      leaseDurationMs,
      retentionMs: this.#retentionMs,
      reentrant,
      data,
      slot,
    };
  }

  /** Removes the leases that the acquiring write cannot remove. Returns the refusal if one was judged wrongly. */
  async #clear(clearings: readonly Write[], budget: CallBudget): Promise<Refused | undefined> {
    for (const clearing of clearings) {
      const { applied, item } = await this.#core.update(clearing, budget);
      if (!applied) return this.#refused(item);
    }
    return undefined;
  }

  /** An unanswered write may have landed. */
  readonly #doubted = (error: unknown): never => {
    if (error instanceof LeaseError && error.mayHaveLanded) this.#isUncertain = true;
    throw error;
  };

  #isOurs(item: Item | undefined): boolean {
    return leaseOf(this.form, item, this.token)?.owner === this.#terms.owner;
  }

  /**
   * Turns an item with this attempt's token into a grant.
   *
   * The table's expiry must equal the deadline's, and must be right by the service's clock. It differs if an earlier
   * try's write landed late, or if this was the first request of a machine with a wrong wall clock. A lease whose
   * answer took too long has expired already. One renewal corrects each of these cases.
   */
  async #settle(
    result: UpdateResult,
    granting: OwnWrite,
    budget: CallBudget,
    takeovers: readonly Takeover[],
  ): Promise<Granted | Refused> {
    this.#hasLanded = true;
    let written = granting;
    let { item } = result;
    let record: LeaseRecord | undefined = this.#readOwn(item);
    for (let left = mostRenewals; record !== undefined; left -= 1) {
      const belief = this.#beliefIn(record, written, left === 0);
      if (belief !== undefined) {
        this.form.confirmed?.(item);
        const told = takeovers.filter(({ from }) => isHolder(from) && (this.form.announces?.(from) ?? true));
        return { granted: true, record, belief, takeovers: told, item };
      }
      if (left === 0) {
        this.#isUncertain = true;
        const { key, leaseDurationMs } = this.#terms;
        throw new LeaseServiceError(
          "LEASE_NO_ANSWER",
          `the answers for the lock ${quoted(key)} take longer than its lease of ${leaseDurationMs} ms: ` +
            "lengthen leaseDurationMs",
        );
      }
      written = this.#nextWrite(record.version);
      const renewing = this.form.renew({ ...written, shown: record });
      try {
        ({ item } = await this.#core.update(renewing, { ...budget, since: written.at }));
        record = leaseOf(this.form, item, this.token);
      } catch (error) {
        // The lease is won, even if its renewal fails.
        this.#isUncertain = true;
        throw error;
      }
    }
    return this.#refused(item);
  }

  /** Reads the own lease. If another program has spoilt a number in it, the lease has to be taken back. */
  #readOwn(item: Item | undefined): LeaseRecord {
    const wasUncertain = this.#isUncertain;
    this.#isUncertain = true;
    const record = leaseOf(this.form, item, this.token);
    if (record === undefined) {
      throw new LeaseServiceError(
        "LEASE_REQUEST_REJECTED",
        `the reply for the lock ${quoted(this.#terms.key)} does not show the record that was written: ` +
          "check what lies between the client and DynamoDB",
      );
    }
    this.#isUncertain = wasUncertain;
    return record;
  }

  /**
   * For how long a record with this token protects the caller; undefined if a renewal has to correct the record first.
   */
  #beliefIn(record: LeaseRecord, written: OwnWrite, isLast: boolean): Belief | undefined {
    const { at, version, expiresAt, ownClock, leaseDurationMs } = written;
    // Another renewer of this token, such as the other end of a hand-over, may use the same version with another
    // expiry.
    if (record.version !== version || record.expiresAt !== expiresAt) return undefined;
    const { clock } = this.#core;
    const { believedMs, isSound } = clock.checkExpiry(expiresAt, at, leaseDurationMs, ownClock);
    const isUseful = clock.elapsedSince(at) < believedMs;
    return isUseful && (isSound || isLast) ? { since: at, forMs: believedMs, ownClock } : undefined;
  }
}

/** A cooldown and an ended pause are no holders that a caller takes over from. */
export function isHolder({ inCooldown, pause }: LeaseRecord): boolean {
  return !inCooldown && pause === undefined;
}

/** The writes that take back a grant whose answer was lost. */
export interface TakingBack {
  /** Removes the lease if the item has it; refused if another caller's lease is in the way. */
  readonly cancel: Write;
  /**
   * Revokes the token beside another caller's lease, so that a late grant is refused; undefined if no late grant is
   * possible.
   */
  readonly revoke: Write | undefined;
  /** Whether an item shows the lease. */
  readonly isOurs: (item: Item | undefined) => boolean;
}

/**
 * Takes back a grant whose write may have landed, may be under way or may be lost: 1 request, 2 when another caller's
 * lease is in the way, 3 when the item changes meanwhile.
 *
 * Returns the result of the last cancellation; undefined if the token was revoked before its grant landed.
 */
export function takeBack(
  core: Pick<Core, "gate" | "update">,
  { cancel, revoke, isOurs }: TakingBack,
): Promise<UpdateResult | undefined> {
  return core.gate.giveBack(async () => {
    const cancelled = await core.update(cancel);
    if (cancelled.applied || revoke === undefined) return cancelled;
    const revoked = await core.update(revoke);
    if (revoked.applied && !isOurs(revoked.item)) return undefined;
    // Either the grant has landed just now, or the other lease has ended.
    return await core.update(cancel);
  });
}

/** Ends a promise that nobody waits for: ignores failures of the service, and publishes every other error. */
export function inBackground(
  core: Pick<Core, "publish">,
  work: Pick<LeaseErrorEvent, "key" | "sortKey" | "owner" | "operation">,
): (error: unknown) => void {
  return (error) => {
    if (!isOperational(error)) core.publish({ type: "error", ...work, error: asError(error) });
  };
}
