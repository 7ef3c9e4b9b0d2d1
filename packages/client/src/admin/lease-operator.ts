import { checkKey, checkOptions, duration, label, type Rules, text } from "../base/check-values.ts";
import type { LeaseRecord, LeaseStateOptions } from "../base/lease-record.ts";
import { lastHolderIn } from "../base/record.ts";
import { leaseItemKey, leaseSortKey, limits } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import type { LeaseClient } from "../core/client.ts";
import { type Core, coreOf } from "../core/core.ts";
import { isSeatSortKey, type SeatRecord } from "../primitives/seats/seat.ts";
import { askSeatToStop, breakSeat } from "../primitives/seats/seat-writes.ts";
import type { LeaseAddress } from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import {
  type AuditEntry,
  type AuditOptions,
  auditTrail,
  type OperatorAction,
  TracedWrite,
  usualAuditRetentionMs,
} from "./audit.ts";
import { type HistoryOptions, historyOf } from "./history.ts";
import { detailsOf, type KeyDetails } from "./key-details.ts";
import type { LeaseChange } from "./lease-changes.ts";
import { leasesIn } from "./looks.ts";
import { checkPause, type OperatorResult, PauseAttempt, type PauseOptions, resume } from "./pause.ts";
import { breakLease, requestRevocation } from "./statements.ts";

/** Options of a {@link LeaseOperator}. */
export interface LeaseOperatorOptions {
  /** The person or tool that acts. At most 1000 bytes. */
  readonly by: string;
  /** How long traces are kept. From a minute to 366 days. @default 30 days */
  readonly auditRetentionMs?: number;
}

/** Selects the lease of an action. */
export interface StopOptions {
  /** The lease's token, as `describe`, `inspectAll` and `list` show it. So the action cannot hit a later holder. */
  readonly token: string;
  /** The lease's sort key, as `LeaseRecord.sortKey` has it. @default "lease", the lock's own */
  readonly sortKey?: string;
  /** Shown to the holder, and kept in the trace. At most 1024 bytes. @default - "revocation requested" */
  readonly reason?: string;
}

/** Which lease to break, and why. */
export interface BreakOptions extends StopOptions {
  /** Kept in the trace. At most 1024 bytes. */
  readonly reason: string;
}

/** Options of {@link LeaseOperator.resume}. */
export interface ResumeOptions {
  /** The token of the pause, as a read has shown it. @default - any pause */
  readonly token?: string;
  /** Kept in the trace. At most 1024 bytes. @default - none */
  readonly reason?: string;
}

const operatorRules: Rules<LeaseOperatorOptions> = {
  by: text(limits.ownerBytes - 24),
  auditRetentionMs: duration(60_000),
};
const reason = text(limits.revocationBytes);
const stopRules: Rules<StopOptions> = { token: label, sortKey: text(limits.sortKeyBytes), reason };
const resumeRules: Rules<ResumeOptions> = { token: label, reason };

/**
 * Acts on the leases of others, for people and tools, and leaves a trace of each action: who, what, why.
 *
 * An action and its trace are one transaction: 1 consistent GetItem and 1 TransactWriteItems (4 write units). It acts
 * only on the lease of the given token, and otherwise returns what it has found. When an answer is lost, it sends the
 * same transaction again, and recognises its own trace. If two operators act at once, one of them has done it, and the
 * other finds the lock free.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError, LeaseItemError, and with LeaseServiceError. After an error with `mayHaveLanded`, look again:
 * the action may be done.
 *
 * ```ts
 * const operator = new LeaseOperator(client, { by: "alice@laptop" });
 * const [dead] = (await operator.describe("nightly-report")).leases;
 * if (dead?.state === "expired") {
 *   const result = await operator.break("nightly-report", { token: dead.token, reason: "INC-4411, host is gone" });
 *   console.log(result.outcome);
 * }
 * ```
 */
export class LeaseOperator {
  /** The person or tool that acts. */
  readonly by: string;
  readonly #core: Core;
  readonly #retentionMs: number;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, options: LeaseOperatorOptions) {
    const given = checkOptions(options ?? {}, operatorRules, "options", ["by"]);
    this.#core = coreOf(client);
    this.by = given.by;
    this.#retentionMs = given.auditRetentionMs ?? usualAuditRetentionMs;
  }

  /**
   * Returns the moment for `leaseState`, by the service's clock as the client's answers have told it. Sends nothing.
   */
  moment(): LeaseStateOptions {
    return { nowMs: this.#core.clock.now(), clockSkewMs: this.#core.times.clockSkewMs };
  }

  /**
   * Reads everything under a key but its history: what `LeaseAdmin.describe` shows, the line, permits, and what operators
   * have done. 1 consistent query for each megabyte of the items under the key. An unreadable item is left out, and the
   * client's `unreadable` event names it.
   */
  async describe(key: string): Promise<KeyDetails> {
    return await detailsOf(this.#core, key);
  }

  /**
   * Asks the holder of a lease to stop: its signal aborts at its next renewal. A holder that does not renew does not
   * notice. The lock stays held until the holder releases it or its lease ends.
   */
  async stop(key: string, options: StopOptions): Promise<OperatorResult> {
    const { reason = "revocation requested", ...lease } = checkOptions(options ?? {}, stopRules, "options", [
      "token",
    ]);
    return await this.#act("stop", { key, ...lease }, reason, ({ sortKey, token }) =>
      (isSeatSortKey(sortKey) ? askSeatToStop : requestRevocation)({ key, sortKey }, token, reason),
    );
  }

  /**
   * Breaks a lease. BE CAREFUL: its holder works on until its next renewal or its deadline. Until then two holders may
   * work at the same time.
   */
  async break(key: string, options: BreakOptions): Promise<OperatorResult> {
    const { reason, ...lease } = checkOptions(options ?? {}, stopRules, "options", ["token", "reason"]);
    return await this.#act("break", { key, ...lease }, reason, (record, now) =>
      isSeatSortKey(record.sortKey)
        ? breakSeat(record as SeatRecord)
        : breakLease({ key, sortKey: record.sortKey }, record.token, now),
    );
  }

  /**
   * Keeps a key closed on purpose, until `forMs` is over or {@link LeaseOperator.resume}. One transaction closes its
   * lock (which fair locks, groups and leadership use), its semaphore and its read-write lock, even if they were never
   * used. Callers are refused as by any holder, with the owner `paused by …`; `LeaseUnavailableError.pause` and
   * `LeaseRecord.pause` tell them that nothing is stuck.
   *
   * Waits up to `waitMs` for the present holder of the lock, as any caller does, and does not ask it to stop. The
   * outcome is `heldByAnother` when that time is over, or when the key is paused already; then nothing is closed.
   * Present holders of permits, read locks and write locks keep them until they end, and `leaves.finishing` names them.
   * A key's runs, tasks and computations go on, and `leaves.notPaused` names them.
   *
   * 3 consistent GetItems, 3 Querys of one item, and 1 TransactWriteItems (8 write units). The call recognises a pause
   * whose answer was lost. If it ends without an answer, as when the signal aborts, it takes the pause back before it
   * rejects: 1 request, or 5. If that fails too, it rejects with LeaseServiceError with `mayHaveLanded`.
   */
  async pause(key: string, options: PauseOptions): Promise<OperatorResult> {
    const terms = checkPause(checkKey(key), options, this.by);
    return await new PauseAttempt(this.#core, terms, this.#retentionMs).take();
  }

  /**
   * Ends a pause early, and opens everything that it has closed. It never ends a holder's lease: then the outcome is
   * `heldByAnother`. 3 consistent GetItems and 1 TransactWriteItems (8 write units).
   */
  async resume(key: string, options: ResumeOptions = {}): Promise<OperatorResult> {
    const { token, reason } = checkOptions(options, resumeRules);
    const terms = { key: checkKey(key), token, by: this.by, reason, auditRetentionMs: this.#retentionMs };
    const result = await resume(this.#core, terms);
    return "outcome" in result ? result : refusalBy(result.refusedBy);
  }

  /**
   * Reads the operators' actions. With `key`: those on one key, the oldest first, 1 consistent query for each megabyte.
   * Otherwise those on all keys, or on keys with a `prefix`, in no order; that reads the whole table, 1 request for
   * each megabyte.
   */
  async *audit(options: AuditOptions = {}): AsyncGenerator<AuditEntry, void, undefined> {
    yield* auditTrail(this.#core, options);
  }

  /**
   * Reads the changes of a key's lock, the oldest first: who acquired it, and how each hold ended. Only a table made
   * with `LeaseTable({ history })` keeps a history. 1 consistent query for each megabyte, or for each `limit` changes.
   */
  async *history(key: string, options: HistoryOptions = {}): AsyncGenerator<LeaseChange, void, undefined> {
    yield* historyOf(this.#core, key, options);
  }

  /** Reads the given lease, and acts on it, with a trace. */
  async #act(
    action: OperatorAction,
    meant: LeaseAddress & { readonly token: string },
    reason: string | undefined,
    writeOf: (lease: LeaseRecord, now: number) => Write,
  ): Promise<OperatorResult> {
    const core = this.#core;
    const { clock } = core;
    const { sortKey = leaseSortKey, token } = meant;
    const key = checkKey(meant.key);
    const item = await core.get({ key: leaseItemKey(key, sortKey), consistent: true });
    const lease = leasesIn(item).find((one) => one.token === token);
    if (lease === undefined) return refusalBy(item);
    const at = clock.now();
    const { owner, acquiredAt, fencingToken } = lease;
    const holder = { owner, acquiredAt, fencingToken };
    const entry: AuditEntry = { key, sortKey, at, action, by: this.by, reason, holder, until: undefined };
    const sent = await new TracedWrite(this.#core, entry, this.#retentionMs).send([writeOf(lease, at)]);
    return sent.applied ? { outcome: "done", lease, entry } : refusalBy(sent.refusals[0]?.item);
  }
}

/** If several leases share the item, the first one is reported. */
function refusalBy(item: Item | undefined): OperatorResult {
  const [holder] = leasesIn(item);
  if (holder === undefined) return { outcome: "free", lastHolder: lastHolderIn(item) };
  return { outcome: "heldByAnother", holder };
}
