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

/** The request of one acquisition; its durations have been validated. */
export interface AcquireTerms {
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
  readonly prospect: Prospect;
  readonly item: Item | undefined;
}

/** A write that takes or prolongs the lease: its time, and the version and expiry that identify it. */
interface OwnWrite {
  readonly at: Moment;
  readonly version: number;
  readonly expiresAt: number;
  readonly ownClock: boolean;
}

/** A cooldown, an ended pause and the intent of a waiting writer are no holders that a caller takes over from. */
function isHolder({ inCooldown, pause, seat }: LeaseRecord): boolean {
  return !inCooldown && pause === undefined && seat?.kind !== "intent";
}

/** How many renewals may follow a grant at once, until the deadline and the table agree on its end. */
const mostRenewals = 2;

/**
 * One acquisition, from its first request to its end, under one token.
 *
 * All tries use the same token. So the next try recognises a write whose answer was lost, and `abandon` can take it
 * back.
 */
export class AcquireAttempt {
  readonly token: string;
  readonly form: LeaseForm;
  readonly #context: ProtocolContext;
  readonly #terms: AcquireTerms;
  /**
   * The version of the last write. Each write has another version, so that an observer does not mistake it for an
   * earlier one.
   */
  #version = 0;
  /** Whether a write of this attempt may have landed, or may yet land, without an answer. */
  #uncertain = false;
  /** Whether a write of this attempt was to take over another lease. */
  #passes = false;

  constructor(context: ProtocolContext, form: LeaseForm, terms: AcquireTerms) {
    this.token = context.randomness.token();
    this.form = form;
    this.#context = context;
    this.#terms = terms;
  }

  /**
   * Tries once: 1 request, or 2 when the refusal shows leases that may be taken over and `known` has not shown them.
   * First waits up to `withinMs` until the client's request gate has room.
   *
   * Rejects with SlotDoneError, and when the service fails. After a rejection the caller tries again or calls
   * `abandon`.
   */
  async try(
    { withinMs, signal }: Bounds & { readonly withinMs: number },
    known?: Prospect,
  ): Promise<Granted | Refused> {
    const { gate, table } = this.#context;
    // Taken before the first request is sent: the lease counts from then.
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
        // The second try takes over what the first refusal has shown. The caller's next try handles a second refusal.
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
   * A write that may have landed is taken back in the background, and the caller does not wait: 1 request, or 2 when
   * another caller holds the lock and a takeover may be under way. If that fails too, the lock frees itself when the
   * lease ends.
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

  /** Removes the leases that the acquiring write cannot remove. Returns the refusal if one was judged wrongly. */
  async #clear(clearings: readonly Write[], bounds: Bounds): Promise<Refused | undefined> {
    for (const clearing of clearings) {
      const { applied, item } = await this.#context.table.update(clearing, bounds);
      if (!applied) return this.#refused(item);
    }
    return undefined;
  }

  /** An unanswered write may have landed. */
  readonly #doubted = (error: unknown): never => {
    if (error instanceof LeaseError && error.mayHaveLanded) this.#uncertain = true;
    throw error;
  };

  #isOurs(item: Item | undefined): boolean {
    return leaseOf(this.form, item, this.token)?.owner === this.#terms.owner;
  }

  /** Skips versions that others wrote with this token, too. */
  #nextWrite(latestVersion = 0): OwnWrite {
    const { clock } = this.#context;
    this.#version = Math.max(this.#version, latestVersion) + 1;
    const at = clock.moment();
    const expiresAt = clock.expiryOf(at, this.#terms.leaseDurationMs);
    // The answer to the first request tells the service's time. The own clock is marked here only if answers do not
    // tell it.
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

  /** What an item promises this attempt. Throws SlotDoneError. */
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
   * Turns an item with this attempt's token into a grant.
   *
   * The table's expiry must equal the deadline's, and must be right by the service's clock. It differs if an earlier
   * try's write landed late, or if this was the first request of a machine with a wrong wall clock. A lease whose
   * answer took too long has expired already. One renewal corrects each of these cases.
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
        // The lease is won, even if its renewal fails.
        this.#uncertain = true;
        throw error;
      }
    }
    return this.#refused(item);
  }

  /** Reads the own lease. If another program has spoilt a number in it, the lease has to be taken back. */
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

  /**
   * For how long a record with this token protects the caller; undefined if a renewal has to correct the record first.
   */
  #beliefIn(
    record: LeaseRecord,
    { at, version, expiresAt, ownClock }: OwnWrite,
    isLast: boolean,
  ): Belief | undefined {
    // Another renewer of this token, such as the other end of a hand-over, may use the same version with another
    // expiry.
    if (record.version !== version || record.expiresAt !== expiresAt) return undefined;
    const { clock } = this.#context;
    const { leaseDurationMs } = this.#terms;
    const { believedMs, isSound } = clock.checkExpiry(expiresAt, at, leaseDurationMs, ownClock);
    const isUseful = clock.elapsedSince(at) < believedMs;
    return isUseful && (isSound || isLast) ? { since: at, forMs: believedMs, ownClock } : undefined;
  }
}
