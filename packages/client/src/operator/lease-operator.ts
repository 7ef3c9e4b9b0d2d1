import type { LeaseClient } from "../client.ts";
import { internalsOf } from "../client-internals.ts";
import type { LeaseStateOptions } from "../lease-state.ts";
import { leasesIn } from "../looks.ts";
import { checkKey, checkOptions, duration, label, type Rules, text } from "../options/check-values.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { type LastHolder, type LeaseRecord, lastHolderIn } from "../record.ts";
import { leaseItemKey, leaseSortKey, limits } from "../schema.ts";
import { isSeatSortKey } from "../seats/schema.ts";
import type { SeatRecord } from "../seats/seat.ts";
import { askSeatToStop, breakSeat } from "../seats/seat-writes.ts";
import { breakLease, type LeaseAddress, requestRevocation } from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import type { Item } from "../store.ts";
import { type AuditEntry, type OperatorAction, usualAuditRetentionMs } from "./audit-entry.ts";
import { type AuditOptions, auditTrail } from "./audit-trail.ts";
import { type HistoryOptions, historyOf } from "./history.ts";
import { detailsOf, type KeyDetails } from "./key-details.ts";
import type { LeaseChange } from "./lease-changes.ts";
import { checkPause, PauseAttempt, type PauseLeaves, type PauseOptions, resume } from "./pause.ts";
import { TracedWrite } from "./traced-write.ts";

/** Options of a {@link LeaseOperator}. */
export interface LeaseOperatorOptions {
  /** Who acts: a person or a tool. At most 1000 bytes. */
  readonly by: string;
  /** For how long traces are kept. From a minute to 366 days. @default 30 days */
  readonly auditRetentionMs?: number;
}

/** Which lease an action is about. */
export interface StopOptions {
  /** The lease's token, as `describe`, `inspectAll` and `list` show it, so that no later holder is hit. */
  readonly token: string;
  /** The lease's sort key, as `LeaseRecord.sortKey` has it. @default "lease", the lock's own */
  readonly sortKey?: string;
  /** Told to the holder, and kept in the trace. At most 1024 bytes. @default - "revocation requested" */
  readonly reason?: string;
}

/** Which lease to break, and why. */
export interface BreakOptions extends StopOptions {
  /** Kept in the trace. At most 1024 bytes. */
  readonly reason: string;
}

/** Options of {@link LeaseOperator.resume}. */
export interface ResumeOptions {
  /** The token of the pause, as it was seen. @default - whichever pause is there */
  readonly token?: string;
  /** Kept in the trace. At most 1024 bytes. @default - none */
  readonly reason?: string;
}

/** What became of an action. Only `done` has changed anything and has left a trace. */
export type OperatorResult =
  /** It is done. `lease` is the lease that it was done to, as it was seen; of a pause, the pause itself. */
  | {
      readonly outcome: "done";
      readonly lease: LeaseRecord;
      readonly entry: AuditEntry;
      /** Of a pause: what it leaves as it is. */
      readonly leaves?: PauseLeaves;
    }
  /** Nobody holds it: it was released or broken meanwhile, or ttl has removed it. */
  | { readonly outcome: "free"; readonly lastHolder: LastHolder | undefined }
  /** Another lease is there than the one that was meant; for `resume`, one that is no pause. */
  | { readonly outcome: "heldByAnother"; readonly holder: LeaseRecord };

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
 * An action and its trace are one transaction: 1 consistent GetItem and 1 TransactWriteItems (4 write units). It acts on
 * the lease of the given token alone, and says what it has found instead. When an answer is lost, it sends the same
 * transaction again, and recognises its own trace. Two operators at once: one of them has done it, the other finds the
 * lock free.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError, LeaseConfigurationError,
 * LeaseItemError, and with LeaseServiceError. After one with `mayHaveLanded`, look again: the action may be done.
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
  /** Who acts. */
  readonly by: string;
  readonly #context: ProtocolContext;
  readonly #retentionMs: number;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, options: LeaseOperatorOptions) {
    const given = checkOptions(options ?? {}, operatorRules, "options", ["by"]);
    this.#context = internalsOf(client).context;
    this.by = given.by;
    this.#retentionMs = given.auditRetentionMs ?? usualAuditRetentionMs;
  }

  /** The moment for `leaseState`, by the service's clock as the client's answers have told it. Sends nothing. */
  moment(): LeaseStateOptions {
    return { nowMs: this.#context.clock.now(), clockSkewMs: this.#context.clockSkewMs };
  }

  /**
   * Reads everything under a key but its history: what `client.describe` shows, the line, permits, and what operators
   * have done. 1 consistent query for each megabyte of the items under the key. An item that cannot be read is left
   * out, and the client's `unreadable` event names it.
   */
  async describe(key: string): Promise<KeyDetails> {
    return await detailsOf(this.#context, key);
  }

  /**
   * Asks the holder of a lease to stop: its signal aborts at its next renewal. A holder that does not renew does not
   * hear of it. The lock stays held until the holder releases it or its lease ends.
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
   * Breaks a lease. BE CAREFUL: its holder works on until its next renewal or its deadline, and until then two may be
   * at work.
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
   * Keeps a key closed on purpose, until `forMs` is over or {@link LeaseOperator.resume}: its lock (fair locks, groups and
   * leadership are the lock's), its semaphore and its read-write lock, in one transaction, whether they have been used or
   * not. Callers are refused as by any holder, with the owner `paused by …`; `LeaseUnavailableError.pause` and
   * `LeaseRecord.pause` tell them that nothing is stuck.
   *
   * Waits up to `waitMs` for the present holder of the lock, as any caller does, and does not ask it to stop.
   * `heldByAnother` when that time is over, or when the key is paused already; then nothing is closed. Permits, readers and
   * writers that are there keep theirs until they end, and `leaves.finishing` names them. A key's runs, tasks and
   * computations go on, and `leaves.notPaused` names those that are there.
   *
   * 3 consistent GetItems, 3 Querys of one item, and 1 TransactWriteItems (8 write units). A pause whose answer was lost is
   * recognised. One that ends without an answer, as when the signal aborts, is taken back before the call rejects: 1
   * request, or 5. Where that fails too, it rejects with LeaseServiceError with `mayHaveLanded`.
   */
  async pause(key: string, options: PauseOptions): Promise<OperatorResult> {
    const terms = checkPause(checkKey(key), options, this.by);
    return await new PauseAttempt(this.#context, terms, this.#retentionMs).take();
  }

  /**
   * Ends a pause early, and opens all that it has closed. It never ends the lease of a holder: that one is
   * `heldByAnother`. 3 consistent GetItems and 1 TransactWriteItems (8 write units).
   */
  async resume(key: string, options: ResumeOptions = {}): Promise<OperatorResult> {
    const { token, reason } = checkOptions(options, resumeRules);
    const terms = { key: checkKey(key), token, by: this.by, reason, auditRetentionMs: this.#retentionMs };
    const result = await resume(this.#context, terms);
    return "outcome" in result ? result : refusalBy(result.refusedBy);
  }

  /**
   * Reads what operators have done: with `key`, to one key, the oldest first, 1 consistent query for each megabyte;
   * otherwise to all keys, or to those with a `prefix`, in no order. That reads the whole table, 1 request for each
   * megabyte.
   */
  async *audit(options: AuditOptions = {}): AsyncGenerator<AuditEntry, void, undefined> {
    yield* auditTrail(this.#context, options);
  }

  /**
   * Reads what has happened to a key's lock, the oldest first: who acquired it, and how each hold ended. It is kept where
   * the table is made with `LeaseTable({ history })`; otherwise there is nothing. 1 consistent query for each megabyte,
   * or for each `limit` changes.
   */
  async *history(key: string, options: HistoryOptions = {}): AsyncGenerator<LeaseChange, void, undefined> {
    yield* historyOf(this.#context, key, options);
  }

  /** Looks for the lease that is meant, and does something to it, with a trace. */
  async #act(
    action: OperatorAction,
    meant: LeaseAddress & { readonly token: string },
    reason: string | undefined,
    writeOf: (lease: LeaseRecord, now: number) => Write,
  ): Promise<OperatorResult> {
    const { table, clock } = this.#context;
    const { sortKey = leaseSortKey, token } = meant;
    const key = checkKey(meant.key);
    const item = await table.get({ key: leaseItemKey(key, sortKey), consistent: true });
    const lease = leasesIn(item).find((one) => one.token === token);
    if (lease === undefined) return refusalBy(item);
    const at = clock.now();
    const { owner, acquiredAt, fencingToken } = lease;
    const holder = { owner, acquiredAt, fencingToken };
    const entry: AuditEntry = { key, sortKey, at, action, by: this.by, reason, holder, until: undefined };
    const sent = await new TracedWrite(this.#context, entry, this.#retentionMs).send([writeOf(lease, at)]);
    return sent.applied ? { outcome: "done", lease, entry } : refusalBy(sent.refusals[0]?.item);
  }
}

/** Of several leases in one item the first speaks for all. */
function refusalBy(item: Item | undefined): OperatorResult {
  const [holder] = leasesIn(item);
  if (holder === undefined) return { outcome: "free", lastHolder: lastHolderIn(item) };
  return { outcome: "heldByAnother", holder };
}
