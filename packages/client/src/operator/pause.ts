import { untilAborted } from "../errors/aborted.ts";
import { LeaseUnavailableError } from "../errors/errors.ts";
import { acquireAmongOthers } from "../group/expressions.ts";
import { checkOptions, checkSignal, duration, type Rules, text } from "../options/check-values.ts";
import type { Refused } from "../protocol/acquire-attempt.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { whileOpen } from "../protocol/lifecycle.ts";
import { LockForm } from "../protocol/lock-form.ts";
import { RetryLoop } from "../protocol/wait-loop.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, leaseItemKey, leaseSortKey, limits } from "../schema.ts";
import { optionalWholeIn } from "../store/item-values.ts";
import type { Bounds } from "../store/timed-store.ts";
import { amended } from "../store/write.ts";
import type { Item } from "../store.ts";
import type { AuditEntry } from "./audit-entry.ts";
import type { OperatorResult } from "./lease-operator.ts";
import { TracedWrite } from "./traced-write.ts";

/** Options of {@link LeaseOperator.pause}. */
export interface PauseOptions {
  /** For how long, from when the lock is had. From 1 s to 366 days. */
  readonly forMs: number;
  /** Shown to everybody who looks, and kept in the trace. At most 1024 bytes. */
  readonly reason: string;
  /** How long to wait for the present holder. From 0 to 366 days. @default 0 */
  readonly waitMs?: number;
  /** Ends the wait. @default - none */
  readonly signal?: AbortSignal;
}

/** A pause that is asked for, validated. */
interface PauseTerms extends PauseOptions {
  readonly key: string;
  readonly by: string;
}

const rules: Rules<PauseOptions> = {
  forMs: duration(1_000),
  reason: text(limits.revocationBytes),
  waitMs: duration(0),
  signal: checkSignal,
};

/** Throws InvalidOptionsError. */
export function checkPause(key: string, options: PauseOptions, by: string): PauseTerms {
  return { ...checkOptions(options ?? {}, rules, "options", ["forMs", "reason"]), key, by };
}

/** A pause that was had. */
interface Paused {
  readonly granted: true;
  readonly lease: LeaseRecord;
  readonly entry: AuditEntry;
}

/** Others win this often in a row at most before the wait begins again. */
const mostRounds = 3;

/**
 * One pause, from its first look to its end, under one token: the lock's own lease, marked as a pause, and its trace, in
 * one transaction.
 */
export class PauseAttempt {
  readonly #context: ProtocolContext;
  readonly #terms: PauseTerms;
  readonly #retentionMs: number;
  readonly #token: string;
  readonly #owner: string;
  readonly #form: LockForm;
  /** The trace of the last try. */
  #entry: AuditEntry | undefined;
  /** Who is in the way, as the last answer has shown it. */
  #blocker: LeaseRecord | undefined;

  constructor(context: ProtocolContext, terms: PauseTerms, retentionMs: number) {
    this.#context = context;
    this.#terms = terms;
    this.#retentionMs = retentionMs;
    this.#token = context.randomness.token();
    this.#owner = `paused by ${terms.by}`;
    this.#form = new LockForm(terms.key, leaseSortKey);
  }

  async take(): Promise<OperatorResult> {
    const { key, waitMs = 0, signal } = this.#terms;
    const call = { key, sortKey: leaseSortKey, owner: this.#owner, reentrant: false, waitMs };
    const attempt = {
      token: this.#token,
      judge: (item: Item | undefined) => this.#judge(item),
      try: (bounds: Bounds) => this.#try(bounds),
    };
    try {
      const { lease, entry } = await untilAborted(key, signal, () =>
        whileOpen(this.#context.lifecycle, signal, (either) => {
          const terms = { ...call, retry: { strategy: "untilExpiry" } as const, signal: either };
          return new RetryLoop<Paused>(this.#context, this.#form, terms).grant(attempt, () => undefined);
        }),
      );
      return { outcome: "done", lease, entry };
    } catch (error) {
      if (!(error instanceof LeaseUnavailableError)) throw error;
      // Released at the very end of the wait, it is free.
      const holder = this.#blocker;
      if (holder === undefined) return { outcome: "free", lastHolder: undefined };
      return { outcome: "heldByAnother", holder };
    }
  }

  #judge(item: Item | undefined): Refused["prospect"] {
    const caller = { owner: this.#owner, resumes: false };
    const prospect = this.#form.judge(item, caller, this.#context.detector);
    this.#blocker = prospect.blocker;
    return prospect;
  }

  async #try({ withinMs, signal }: Bounds): Promise<Paused | Refused> {
    const { key } = this.#terms;
    const bounds = {
      signal,
      ...(withinMs === Number.POSITIVE_INFINITY || withinMs === undefined ? {} : { withinMs }),
    };
    let item = await this.#context.table.get({ key: leaseItemKey(key), consistent: true }, bounds);
    for (let round = 1; ; round += 1) {
      const own = this.#form.leasesIn(item).find(({ token }) => token === this.#token);
      // An earlier try has landed, and its answer was lost.
      if (own !== undefined && this.#entry !== undefined)
        return { granted: true, lease: own, entry: this.#entry };
      const prospect = this.#judge(item);
      if (prospect.claimableInMs > 0 || round > mostRounds) return { granted: false, prospect, item };
      const outcome = await this.#write(item, prospect, signal);
      if ("granted" in outcome) return outcome;
      item = outcome.item;
    }
  }

  async #write(
    seen: Item | undefined,
    { takeovers: [takeover] }: Refused["prospect"],
    signal: AbortSignal | undefined,
  ): Promise<Paused | { readonly item: Item | undefined }> {
    const { clock, retentionMs } = this.#context;
    const { key, by, reason, forMs } = this.#terms;
    const since = clock.moment();
    const acquiredAt = clock.timeOf(since);
    // A transaction answers without its items: the number is chosen beforehand.
    const fence = (seen && optionalWholeIn(seen, attributeNames.fence)) ?? 0;
    const lease: LeaseRecord = {
      ...{ key, sortKey: leaseSortKey, owner: this.#owner, token: this.#token, version: 1 },
      fencingToken: Math.max(acquiredAt, fence) + 1,
      ...{ acquiredAt, expiresAt: clock.expiryOf(since, forMs), leaseDurationMs: forMs },
      ownClock: clock.isUntold,
      ...{
        inCooldown: false,
        reentrant: false,
        data: { by, reason },
        revocation: undefined,
        pause: { by, reason },
      },
    };
    const grant = { ...lease, retentionMs, data: JSON.stringify(lease.data), slot: undefined };
    const taking = acquireAmongOthers(key, grant, takeover?.from, lease.fencingToken);
    const holder = takeover?.from.inCooldown === false ? holderOf(takeover.from) : undefined;
    const entry: AuditEntry = {
      ...{ key, sortKey: leaseSortKey, at: acquiredAt, action: "pause", by, reason },
      ...{ holder, until: lease.expiresAt },
    };
    this.#entry = entry;
    const write = amended(taking, { set: { [attributeNames.pauseToken]: this.#token } });
    const sent = await new TracedWrite(this.#context, entry, this.#retentionMs).send(write, signal);
    return sent.applied ? { granted: true, lease, entry } : { item: sent.item };
  }
}

function holderOf({ owner, acquiredAt, fencingToken }: LeaseRecord): AuditEntry["holder"] {
  return { owner, acquiredAt, fencingToken };
}
