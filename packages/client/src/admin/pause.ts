import { untilAborted } from "../base/abort.ts";
import { checkOptions, checkSignal, duration, type Rules, text } from "../base/check-values.ts";
import { LeaseServiceError, LeaseUnavailableError, quoted, saying } from "../base/errors.ts";
import { optionalWholeIn, unlessUnreadable } from "../base/item-values.ts";
import { type LastHolder, type LeaseRecord, leaseState } from "../base/lease-record.ts";
import { isOperational } from "../base/operational.ts";
import { attributeNames, leaseItemKey, leaseSortKey, limits, taskSortKeyPrefix } from "../base/schema.ts";
import type { Item, TransactionResult } from "../base/store.ts";
import { type CallBudget, callBudgetMs } from "../base/timed-call.ts";
import { isHolder, type Refused } from "../core/attempt.ts";
import { type Core, query, unreadableIn } from "../core/core.ts";
import { LockForm } from "../core/lock-form.ts";
import { RetryLoop } from "../core/wait-loop.ts";
import { isSeatSortKey, seatsIn } from "../primitives/seats/seat.ts";
import { type AuditEntry, TracedWrite, under } from "./audit.ts";
import { leasesIn } from "./looks.ts";
import { close, closedSortKeys, endPauses, type SeenItems } from "./pause-writes.ts";

/** Options of {@link LeaseOperator.pause}. */
export interface PauseOptions {
  /** How long the pause lasts, from when it has the lock. From 1 s to 366 days. */
  readonly forMs: number;
  /** Shown to everyone who looks, and kept in the trace. At most 1024 bytes. */
  readonly reason: string;
  /** How long to wait for the present holder of the lock. From 0 to 366 days. @default 0 */
  readonly waitMs?: number;
  /** Ends the wait. @default - none */
  readonly signal?: AbortSignal;
}

/** The kinds of items under a key that a pause does not close. */
export type NotPaused = "runs" | "tasks" | "computations";

/** What a pause does not close. */
export interface PauseLeaves {
  /** Earlier permits, readers and writers, as they were read: their holders finish. */
  readonly finishing: readonly LeaseRecord[];
  /** What goes on under the key: slots of a job with a run history, tasks, computations of a single flight. */
  readonly notPaused: readonly NotPaused[];
}

/** The outcome of an action. Only `done` has changed anything and has left a trace. */
export type OperatorResult =
  /** It is done. `lease` is the lease of the action, as the look has shown it; for a pause, the pause itself. */
  | {
      readonly outcome: "done";
      readonly lease: LeaseRecord;
      readonly entry: AuditEntry;
      /** For a pause: what it does not close. */
      readonly leaves?: PauseLeaves;
    }
  /** Nobody holds it: it was released or broken meanwhile, or ttl has removed it. */
  | { readonly outcome: "free"; readonly lastHolder: LastHolder | undefined }
  /** Another lease is there than the given one; for `resume`, a lease that is no pause. */
  | { readonly outcome: "heldByAnother"; readonly holder: LeaseRecord };

/** The terms of a wanted pause, validated. */
interface PauseTerms extends PauseOptions {
  readonly key: string;
  readonly by: string;
}

const pauseRules: Rules<PauseOptions> = {
  forMs: duration(1_000),
  reason: text(limits.revocationBytes),
  waitMs: duration(0),
  signal: checkSignal,
};

/** The prefixes of the sort keys of items that a pause does not close. */
const prefixes: Readonly<Record<NotPaused, string>> = {
  runs: "run#",
  tasks: taskSortKeyPrefix,
  computations: "cache#",
};

/** Throws InvalidOptionsError. */
export function checkPause(key: string, options: PauseOptions, by: string): PauseTerms {
  return { ...checkOptions(options ?? {}, pauseRules, "options", ["forMs", "reason"]), key, by };
}

/** The pause has the key. */
interface Paused {
  readonly granted: true;
  readonly lease: LeaseRecord;
  readonly entry: AuditEntry;
}

/** The most times in a row that other callers may win before the wait begins again. */
const mostPauseRounds = 3;

/**
 * One pause, from its first look to its end, under one token: the lock's own lease, a seat in each item of seats, and
 * its trace, in one transaction. It takes back a pause that ends without an answer.
 */
export class PauseAttempt {
  readonly #core: Core;
  readonly #terms: PauseTerms;
  readonly #retentionMs: number;
  readonly #token: string;
  readonly #owner: string;
  readonly #form: LockForm;
  /** The trace of the last try. */
  #entry: AuditEntry | undefined;
  /**
   * The largest fencing number of a try. A later try's number is larger, so no copy of an earlier try can land after
   * it.
   */
  #fence = 0;
  /** Tries that may have landed, or may still land, without an answer. At most one of them has landed. */
  readonly #doubtful: TracedWrite[] = [];
  /** The lease that is in the way, by the last answer. */
  #blocker: LeaseRecord | undefined;
  #finishing: readonly LeaseRecord[] = [];

  constructor(core: Core, terms: PauseTerms, retentionMs: number) {
    this.#core = core;
    this.#terms = terms;
    this.#retentionMs = retentionMs;
    this.#token = core.randomness.token();
    this.#owner = `paused by ${terms.by}`;
    this.#form = new LockForm(terms.key, leaseSortKey);
  }

  async take(): Promise<OperatorResult> {
    const { key, signal } = this.#terms;
    try {
      const [notPaused, { lease, entry }] = await untilAborted(key, signal, async () => {
        // Not `whileOpen`: a write that has landed counts, even if the client has been closed since.
        const call = this.#core.lifecycle.begin(signal);
        try {
          return [await this.#notPaused(call.signal), await this.#takeOrLeave(call.signal)] as const;
        } finally {
          call.end();
        }
      });
      return { outcome: "done", lease, entry, leaves: { finishing: this.#finishing, notPaused } };
    } catch (error) {
      if (!(error instanceof LeaseUnavailableError)) throw error;
      // The lock was released at the very end of the wait, and is free.
      const holder = this.#blocker;
      if (holder === undefined) return { outcome: "free", lastHolder: undefined };
      return { outcome: "heldByAnother", holder };
    }
  }

  /** Gets the pause, or leaves nothing of it behind. */
  async #takeOrLeave(signal: AbortSignal): Promise<Paused> {
    const { key, waitMs = 0 } = this.#terms;
    const call = { key, sortKey: leaseSortKey, owner: this.#owner, reentrant: false, waitMs };
    const attempt = {
      token: this.#token,
      judge: (item: Item | undefined) => this.#judge(item),
      try: (budget: CallBudget) => this.#try(budget),
    };
    try {
      const terms = { ...call, retry: { strategy: "untilExpiry" } as const, signal };
      return await new RetryLoop<Paused>(this.#core, this.#form, terms).grant(attempt, () => undefined);
    } catch (error) {
      if (this.#doubtful.length > 0) await this.#takeBackAfter(error);
      throw error;
    }
  }

  #judge(item: Item | undefined): Refused["availability"] {
    const caller = { owner: this.#owner, resumes: false };
    const availability = this.#form.judge(item, caller, this.#core.detector);
    this.#blocker = availability.blocker;
    return availability;
  }

  async #try({ withinMs, signal }: CallBudget): Promise<Paused | Refused> {
    const { key } = this.#terms;
    // A read that hangs leaves time for others.
    const budget = { signal, withinMs: Math.min(withinMs ?? callBudgetMs, callBudgetMs) };
    let seen = await readClosed(this.#core, key, budget);
    for (let round = 1; ; round += 1) {
      const [item, ...seatItems] = seen;
      const own = this.#form.leasesIn(item).find(({ token }) => token === this.#token);
      // An earlier try has landed, and its answer was lost.
      if (own !== undefined && this.#entry !== undefined) {
        this.#finishing = this.#holdersIn(seatItems);
        return { granted: true, lease: own, entry: this.#entry };
      }
      const availability = this.#judge(item);
      if (availability.claimableInMs > 0 || round > mostPauseRounds)
        return { granted: false, availability, item };
      const outcome = await this.#write(seen, availability, signal);
      if ("granted" in outcome) {
        this.#finishing = this.#holdersIn(seatItems);
        return outcome;
      }
      const [lock] = outcome.refusals;
      seen = lock === undefined ? await readClosed(this.#core, key, budget) : [lock.item, ...seatItems];
    }
  }

  #holdersIn(items: SeenItems): readonly LeaseRecord[] {
    const onUnreadable = unreadableIn(this.#core);
    const leases = items.flatMap((item) => unlessUnreadable(() => seatsIn(item), onUnreadable) ?? []);
    return this.#core.detector.unexpired(leases.filter(({ pause }) => pause === undefined));
  }

  async #write(
    seen: SeenItems,
    { takeovers: [takeover] }: Refused["availability"],
    signal: AbortSignal | undefined,
  ): Promise<Paused | Pick<TransactionResult, "refusals">> {
    const { clock, times } = this.#core;
    const { key, by, reason, forMs } = this.#terms;
    const since = clock.moment();
    const acquiredAt = clock.timeOf(since);
    // A transaction's answer has no items, so the number is chosen beforehand.
    const [lock] = seen;
    const shown = (lock && optionalWholeIn(lock, attributeNames.fence)) ?? 0;
    this.#fence = Math.max(acquiredAt, shown, this.#fence) + 1;
    const lease: LeaseRecord = {
      ...{ key, sortKey: leaseSortKey, owner: this.#owner, token: this.#token, version: 1 },
      fencingToken: this.#fence,
      ...{ acquiredAt, expiresAt: clock.expiryOf(since, forMs), leaseDurationMs: forMs },
      ...(clock.isUntold && { ownClock: true }),
      ...{
        inCooldown: false,
        reentrant: false,
        data: { by, reason },
        revocation: undefined,
        pause: { by, reason },
      },
    };
    const holder = takeover && isHolder(takeover.from) ? holderOf(takeover.from) : undefined;
    const entry: AuditEntry = {
      ...{ key, sortKey: leaseSortKey, at: acquiredAt, action: "pause", by, reason },
      ...{ holder, until: lease.expiresAt },
    };
    this.#entry = entry;
    const traced = new TracedWrite(this.#core, entry, this.#retentionMs);
    try {
      const sent = await traced.send(close(lease, takeover?.from, seen, times.retentionMs), signal);
      return sent.applied ? { granted: true, lease, entry } : sent;
    } finally {
      if (traced.mayHaveLanded) this.#doubtful.push(traced);
    }
  }

  /** Takes back a failed pause before its caller gets the error. Rejects if the service does not confirm. */
  async #takeBackAfter(error: unknown): Promise<void> {
    const { clock, lifecycle } = this.#core;
    const { key, forMs } = this.#terms;
    const taken = this.#takeBack();
    lifecycle.follow({ key, sortKey: leaseSortKey, expiresAt: clock.now() + forMs }, taken);
    try {
      await taken;
    } catch (failure) {
      if (!isOperational(failure)) throw failure;
      const message =
        `the pause of ${quoted(key)} ended before the service had confirmed it (${saying(error)}), and could not be ` +
        `taken back (${saying(failure)}): look whether it is closed, and resume it`;
      throw new LeaseServiceError("LEASE_NO_ANSWER", message, { cause: error });
    }
  }

  /** Revokes the pause if it has not landed, otherwise resumes it: 1 request for each try, or 4 more. */
  async #takeBack(): Promise<void> {
    const { key, by } = this.#terms;
    const areRevoked = await Promise.all(this.#doubtful.map((traced) => traced.revoke()));
    if (areRevoked.every((isRevoked) => isRevoked)) return;
    const reason = "it was taken back: its caller had not heard that it was done";
    await resume(this.#core, { key, token: this.#token, by, reason, auditRetentionMs: this.#retentionMs });
  }

  async #notPaused(signal: AbortSignal): Promise<readonly NotPaused[]> {
    const { key } = this.#terms;
    const found = await Promise.all(
      Object.entries(prefixes).map(async ([kind, prefix]) => {
        const range = { from: prefix, to: `${prefix}~` };
        const asked = { ...under({ key }, range), consistent: false, limit: 1 };
        const { items } = await query(this.#core, asked, { signal });
        return items.length > 0 ? [kind as NotPaused] : [];
      }),
    );
    return found.flat();
  }
}

/** What a resume ends. */
interface ResumeTerms {
  readonly key: string;
  /** The pause's own token; undefined for any pause. */
  readonly token: string | undefined;
  readonly by: string;
  readonly reason: string | undefined;
  readonly auditRetentionMs: number;
}

/**
 * Opens everything that a pause has closed: 3 reads and 1 transaction. Repeats this if others change the items
 * meanwhile.
 */
export async function resume(
  core: Core,
  { key, token, by, reason, auditRetentionMs }: ResumeTerms,
): Promise<OperatorResult | { readonly refusedBy: Item | undefined }> {
  const { clock, times } = core;
  for (let round = 1; ; round += 1) {
    const items = await readClosed(core, key, {});
    // After the read, whose answers correct a wrong wall clock.
    const moment = { nowMs: clock.now(), clockSkewMs: times.clockSkewMs };
    const [lock] = items;
    const pauses = items
      .flatMap((item): readonly LeaseRecord[] => {
        return isSeatSortKey(item?.[attributeNames.sortKey]) ? seatsIn(item) : leasesIn(item);
      })
      .filter((one) => one.pause !== undefined && (token === undefined || one.token === token))
      // The rest of an ended pause in an item of seats keeps nobody out.
      .filter((one) => one.seat === undefined || leaseState(one, moment) === "paused");
    const [lease] = pauses;
    if (lease === undefined || round > mostPauseRounds) return { refusedBy: lock };
    const at = clock.now();
    const entry: AuditEntry = {
      ...{ key, sortKey: leaseSortKey, at, action: "resume", by, reason },
      ...{ holder: holderOf(lease), until: undefined },
    };
    const traced = new TracedWrite(core, entry, auditRetentionMs);
    const { applied } = await traced.send(endPauses(pauses, at, times.retentionMs));
    if (applied) return { outcome: "done", lease, entry };
  }
}

/** Reads all items that a pause closes, the lock first. */
function readClosed(core: Core, key: string, budget: CallBudget): Promise<SeenItems> {
  return Promise.all(
    closedSortKeys.map((sortKey) => core.get({ key: leaseItemKey(key, sortKey), consistent: true }, budget)),
  );
}

function holderOf({ owner, acquiredAt, fencingToken }: LeaseRecord): AuditEntry["holder"] {
  return { owner, acquiredAt, fencingToken };
}
