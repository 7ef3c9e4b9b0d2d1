import { LeaseError, LeaseServiceError, quoted, SlotDoneError } from "../errors/errors.ts";
import { type LeaseRecord, lastDoneSlot } from "../record.ts";
import type { Grant } from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import { type Bounds, callBudgetMs, shortestBudgetMs } from "../store/timed-store.ts";
import type { Item, UpdateResult } from "../store.ts";
import type { Moment } from "../time/clock.ts";
import { inBackground, type ProtocolContext } from "./context.ts";
import type { Belief } from "./lease-deadline.ts";
import { type LeaseForm, leaseOf, type Prospect, type Takeover } from "./lease-form.ts";
import { takeBack } from "./take-back.ts";

/** What is to be acquired; durations have been validated. */
export interface AcquireTerms {
  readonly key: string;
  readonly sortKey: string;
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

/** A lease that is ours. */
export interface Granted {
  readonly granted: true;
  readonly record: LeaseRecord;
  readonly belief: Belief;
  /** From whom it was taken, where it was. */
  readonly takeovers: readonly Takeover[];
  /** The item as the granting write left it. */
  readonly item: Item | undefined;
}

/** What keeps it from us. */
export interface Refused {
  readonly granted: false;
  readonly prospect: Prospect;
  readonly item: Item | undefined;
}

/** A write of ours that takes the lease or prolongs it: when it was made, and what tells it from every other. */
interface OwnWrite {
  readonly at: Moment;
  readonly version: number;
  readonly expiresAt: number;
  readonly ownClock: boolean;
}

/** Neither a cooldown, nor a pause that is over, nor the intent of a writer that waits is a holder that was taken over. */
function isHolder({ inCooldown, pause, seat }: LeaseRecord): boolean {
  return !inCooldown && pause === undefined && seat?.kind !== "intent";
}

/** How often a grant is renewed at once, to agree with the table on when it ends. */
const mostRenewals = 2;

/**
 * One acquisition, from its first request to its end, under one token.
 *
 * The token stays the same over all tries, so that a write whose answer was lost is recognised by the next try, and can
 * be taken back when there is none.
 */
export class AcquireAttempt {
  readonly token: string;
  readonly form: LeaseForm;
  readonly #context: ProtocolContext;
  readonly #terms: AcquireTerms;
  /** The version of the last write: each one differs, so that an observer that judged an earlier one does not mistake them. */
  #version = 0;
  /** Whether a write of ours may have landed, or may yet land, unknown to us. */
  #uncertain = false;
  /** Whether a write of ours was to take another lease's place. */
  #passes = false;

  constructor(context: ProtocolContext, form: LeaseForm, terms: AcquireTerms) {
    this.token = context.randomness.token();
    this.form = form;
    this.#context = context;
    this.#terms = terms;
  }

  /**
   * Tries once: 1 request, or 2 where the refusal shows leases that may be taken over, and no `known` look has shown them
   * before. Waits until there is room for it beside the client's renewals, for up to `withinMs`.
   *
   * Rejects with SlotDoneError, and when the service fails; then another try, or `abandon`, has to follow.
   */
  async try(
    { withinMs, signal }: Bounds & { readonly withinMs: number },
    known?: Prospect,
  ): Promise<Granted | Refused> {
    const { gate, table } = this.#context;
    // Before the first request is made: its lease counts from there.
    const entered = gate.enter(withinMs, signal);
    const waitedMs = typeof entered === "number" ? entered : await entered;
    let failure: unknown;
    try {
      const usefulMs = Math.max(this.#terms.leaseDurationMs, shortestBudgetMs);
      const leftMs = Math.max(withinMs - waitedMs, shortestBudgetMs);
      const bounds = { withinMs: Math.min(leftMs, usefulMs, callBudgetMs), signal };

      let takeovers = known?.takeovers ?? [];
      for (let isSecond = false; ; isSecond = true) {
        const passed = takeovers.map(({ from }) => from);
        this.#passes ||= passed.length > 0;
        const clearings = this.form.clear?.(passed) ?? [];
        let outcome: Granted | Refused | undefined;
        if (clearings.length > 0) outcome = await this.#clear(clearings, bounds);
        if (outcome === undefined) {
          const own = this.#nextWrite();
          const write = this.form.acquire(this.#grant(own), passed);
          const result = await table.update(write, { ...bounds, since: own.at }).catch(this.#doubted);
          if (result.retried) this.#uncertain = true;
          const isOurs = result.applied || this.#isOurs(result.item);
          outcome = isOurs ? await this.#settle(result, own, bounds, takeovers) : this.#refused(result.item);
        }
        // What a refusal has shown may be taken over now; what this one shows is left to the caller's next try.
        if (outcome.granted || outcome.prospect.takeovers.length === 0 || isSecond) return outcome;
        takeovers = outcome.prospect.takeovers;
      }
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      gate.leave(failure);
    }
  }

  /**
   * Gives the acquisition up.
   *
   * Where a write may have landed it is taken back in the background, without waiting: 1 request, or 2 where another
   * holds the lock and a takeover may be under way. Should that fail too, the lock frees itself when the lease ends.
   */
  abandon(): void {
    if (!this.#uncertain) return;
    const { clock, lifecycle, retentionMs } = this.#context;
    const { key, sortKey, owner, leaseDurationMs } = this.#terms;
    const cancellation = { token: this.token, now: clock.now(), retentionMs };
    const taken = takeBack(this.#context, {
      cancel: this.form.cancel(cancellation),
      revoke: this.form.revoke(cancellation, this.#passes),
      isOurs: (item) => this.#isOurs(item),
    });
    const passed = inBackground(this.#context, { key, sortKey, owner, operation: "cancel" });
    lifecycle.remove({ key, sortKey, expiresAt: clock.now() + leaseDurationMs }, taken, passed);
  }

  /** Removes what the acquisition's own write cannot take along; gives what refuses that, for then it was judged wrongly. */
  async #clear(clearings: readonly Write[], bounds: Bounds): Promise<Refused | undefined> {
    for (const clearing of clearings) {
      const { applied, item } = await this.#context.table.update(clearing, bounds);
      if (!applied) return this.#refused(item);
    }
    return undefined;
  }

  /** A write that was not answered may have landed. */
  readonly #doubted = (error: unknown): never => {
    if (error instanceof LeaseError && error.mayHaveLanded) this.#uncertain = true;
    throw error;
  };

  #isOurs(item: Item | undefined): boolean {
    return leaseOf(this.form, item, this.token)?.owner === this.#terms.owner;
  }

  /** Versions that others wrote with this token are passed, too. */
  #nextWrite(latestVersion = 0): OwnWrite {
    const { clock } = this.#context;
    this.#version = Math.max(this.#version, latestVersion) + 1;
    const at = clock.moment();
    const expiresAt = clock.expiryOf(at, this.#terms.leaseDurationMs);
    // The answer to a first request tells the time: only where answers are known not to, it is given up beforehand.
    return { at, version: this.#version, expiresAt, ownClock: clock.isUntold };
  }

  #grant({ at, version, expiresAt, ownClock }: OwnWrite): Grant {
    const { owner, leaseDurationMs, reentrant, data, slot } = this.#terms;
    const { clock, retentionMs } = this.#context;
    const acquiredAt = clock.timeOf(at);
    const { token } = this;
    return {
      token,
      version,
      owner,
      acquiredAt,
      expiresAt,
      ownClock,
      leaseDurationMs,
      retentionMs,
      reentrant,
      data,
      slot,
    };
  }

  /** What an item that a look has brought promises this attempt. Throws SlotDoneError. */
  judge(item: Item | undefined): Prospect {
    this.#checkSlot(item);
    return this.form.judge(item, this.#terms, this.#context.detector);
  }

  #checkSlot(item: Item | undefined): void {
    const { key, slot } = this.#terms;
    const done = lastDoneSlot(item);
    if (slot !== undefined && done !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);
  }

  #refused(item: Item | undefined): Refused {
    return { granted: false, prospect: this.judge(item), item };
  }

  /**
   * Turns an item that shows our token into a grant.
   *
   * The table's expiry has to be the one that our deadline counts from, and right by the service's clock. It is not
   * where an earlier try's write landed late, nor where this was the first request of a machine whose wall clock is
   * wrong; and a lease whose answer took too long is over already. Then one renewal sets everything right.
   */
  async #settle(
    result: UpdateResult,
    granting: OwnWrite,
    bounds: Bounds,
    takeovers: readonly Takeover[],
  ): Promise<Granted | Refused> {
    const { key, leaseDurationMs } = this.#terms;
    const { retentionMs } = this.#context;
    let written = granting;
    let { item } = result;
    let record: LeaseRecord | undefined = this.#readOwn(item);
    for (let left = mostRenewals; record !== undefined; left -= 1) {
      const belief = this.#beliefIn(record, written, left === 0);
      if (belief !== undefined) {
        this.form.confirmed?.(item);
        return {
          granted: true,
          record,
          belief,
          takeovers: takeovers.filter(({ from }) => isHolder(from)),
          item,
        };
      }
      if (left === 0) {
        this.#uncertain = true;
        throw new LeaseServiceError(
          "LEASE_NO_ANSWER",
          `the answers for the lock ${quoted(key)} take longer than its lease of ${leaseDurationMs} ms: ` +
            "lengthen leaseDurationMs",
        );
      }
      written = this.#nextWrite(record.version);
      const { version, expiresAt, ownClock } = written;
      const renewal = { shown: record, version, expiresAt, ownClock, leaseDurationMs, retentionMs };
      const renewing = this.#context.table.update(this.form.renew(renewal), { ...bounds, since: written.at });
      try {
        ({ item } = await renewing);
        record = leaseOf(this.form, item, this.token);
      } catch (error) {
        // The lease is ours already, whatever has become of its renewal.
        this.#uncertain = true;
        throw error;
      }
    }
    return this.#refused(item);
  }

  /** Ours, but perhaps with a number in it that another program has spoilt: then it has to be taken back. */
  #readOwn(item: Item | undefined): LeaseRecord {
    const wasUncertain = this.#uncertain;
    this.#uncertain = true;
    const record = leaseOf(this.form, item, this.token);
    if (record === undefined) {
      throw new LeaseServiceError(
        "LEASE_REQUEST_REJECTED",
        `the reply for the lock ${quoted(this.#terms.key)} does not show the record that was written: ` +
          "check what lies between the client and DynamoDB",
      );
    }
    this.#uncertain = wasUncertain;
    return record;
  }

  /** For how long a record with our token protects us; undefined where a renewal has to correct the record first. */
  #beliefIn(
    record: LeaseRecord,
    { at, version, expiresAt, ownClock }: OwnWrite,
    isLast: boolean,
  ): Belief | undefined {
    // Another renewer of this token, as a hand-over's other end is, may use the same version with another expiry.
    if (record.version !== version || record.expiresAt !== expiresAt) return undefined;
    const { clock } = this.#context;
    const { leaseDurationMs } = this.#terms;
    const { believedMs, isSound } = clock.checkExpiry(expiresAt, at, leaseDurationMs, ownClock);
    const isUseful = clock.elapsedSince(at) < believedMs;
    return isUseful && (isSound || isLast) ? { since: at, forMs: believedMs, ownClock } : undefined;
  }
}
