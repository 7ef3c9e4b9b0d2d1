/// <reference lib="esnext.disposable" preserve="true" />

import { onAbort } from "../base/abort.ts";
import { checkOptions, oneOf, type Rules, text } from "../base/check-values.ts";
import { type LeaseErrorCode, LeaseLostError } from "../base/errors.ts";
import type { LeaseHandle } from "../base/handle.ts";
import { ifOperational } from "../base/operational.ts";
import { leaseSortKey } from "../base/schema.ts";
import {
  type ConditionCheckOptions,
  type Fence,
  type FenceOptions,
  fenceFragments,
  type LeaseConditionCheck,
  transactItem,
} from "./fencing.ts";
import type { Ended } from "./form.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Held } from "./lifecycle.ts";
import { runTraced } from "./work-trace.ts";

export const conditionCheckRules: Rules<ConditionCheckOptions> = {
  format: oneOf("native", "attributeValue"),
};
const fenceRules: Rules<FenceOptions> = { ...conditionCheckRules, attribute: text(255) };

/** Returns a handle of a held lease; undefined if it has none, or has ended. */
export function handleOf(lease: Held): Lease | undefined {
  const [handle] = lease.handles as readonly Lease[];
  return handle?.held ? handle : undefined;
}

/**
 * A lock that is held, for a time.
 *
 * Between the check of `held` and the next action, a process may be frozen for longer than the lease lasts. If that
 * can do harm, let the write itself refuse, with {@link Lease.fence} or {@link Lease.conditionCheck}.
 *
 * ```ts
 * await using lease = await client.acquire("import", { heartbeat: true });
 * await importAll({ signal: lease.signal });
 * ```
 */
export class Lease implements AsyncDisposable {
  readonly #lease: HeldLease;
  readonly #slot: string | undefined;
  /** Only of a reentrant lease, which its owner may go on to hold by another handle. */
  readonly #end: AbortController | undefined;
  #released: Promise<Ended> | undefined;

  /**
   * @internal Leases are made by a LeaseClient. One handle of a reentrant lease may stand for its slot, and another one
   * for none.
   */
  constructor(lease: HeldLease, slot: string | undefined) {
    this.#lease = lease;
    this.#slot = slot;
    lease.handles = lease.handles.concat(this);
    if (!lease.record.reentrant) return;
    const end = new AbortController();
    onAbort(
      end.signal,
      onAbort(lease.signal, (reason) => end.abort(reason)),
    );
    this.#end = end;
  }

  /** The lock's name. */
  get key(): string {
    return this.#lease.record.key;
  }

  /** The sort key under the lock's name: "lease", or that of the permit, run or task. */
  get sortKey(): string {
    return this.#lease.record.sortKey;
  }

  /** Readable label of the holder. */
  get owner(): string {
    return this.#lease.record.owner;
  }

  /** Unique id of this acquisition. */
  get token(): string {
    return this.#lease.record.token;
  }

  /** Grows with every acquisition of the key: of two holders, the one with the larger number came later. */
  get fencingToken(): number {
    return this.#lease.record.fencingToken;
  }

  /** When it was acquired, in epoch milliseconds of the acquirer's clock. */
  get acquiredAt(): number {
    return this.#lease.record.acquiredAt;
  }

  /**
   * When it ends unless it is renewed, in epoch milliseconds of the service's time, where that is known. Compare it with no
   * clock of this machine, which may be wrong, and ask {@link Lease.remainingMs}.
   */
  get expiresAt(): number {
    return this.#lease.expiresAt;
  }

  /** The slot that it stands for, if any. */
  get slot(): string | undefined {
    return this.#slot;
  }

  /** The payload that was stored with it. */
  get data(): unknown {
    return this.#lease.record.data;
  }

  /** Whether the lease protects its holder at this moment, by the holder's own clock. Sends nothing. */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  /** How much longer the lease protects its holder, in milliseconds; 0 once it does not. Sends nothing. */
  remainingMs(): number {
    return this.#released === undefined ? this.#lease.remainingMs() : 0;
  }

  /**
   * Aborts with a {@link LeaseLostError} as soon as the lease does not protect its holder any more. The error says
   * why. It aborts at the holder's own deadline, even if a renewal hangs; at a renewal that finds the lock taken or
   * its revocation requested; and at the release.
   *
   * A timer can fire late in a process that was frozen; reading this property, or `held`, looks at the clock.
   */
  get signal(): AbortSignal {
    // Reading it looks at the clock.
    const { signal } = this.#lease;
    return this.#end?.signal ?? signal;
  }

  /**
   * Prolongs the lease by its duration, counted from now.
   *
   * 1 request. It is given up after half of the time that is left, or 5 s, so that there is time for another. Calls
   * at the same time share it, and so does a heartbeat. Rejects with {@link LeaseLostError} when the lease is lost or
   * released. Rejects with LeaseServiceError when the service did not confirm: then the lease is held until its
   * deadline, and the call may be repeated.
   */
  async renew(): Promise<void> {
    if (this.#released !== undefined) throw new LeaseLostError(this.key, "released");
    await this.#lease.renew();
    // A handle that was adopted after its expiry is held from now on.
    this.#lease.list();
  }

  /**
   * Releases the lock. A lock that is no longer this lease's is not touched.
   *
   * 1 request; none when the lock is known to be another caller's, or while another handle of a reentrant lease is in
   * use. Never runs beside a renewal. Resolves to whether the lock was still this lease's to release; calling it
   * again gives the same answer. Rejects with LeaseServiceError when the service did not confirm: call it again, or
   * let the lease expire. It also rejects so when a reply was lost and other callers have had the lock since: then
   * the release may have landed, or the lock may have been taken before.
   */
  async release(): Promise<boolean> {
    const { wasOurs, isRecorded } = await this.end(false);
    return wasOurs ?? isRecorded;
  }

  /**
   * Releases the lock and records its `slot` as done, so that no caller runs that slot, or an earlier one, again.
   *
   * As {@link Lease.release} in all else, with its single request; without a slot it is the same. A slot whose lease
   * is released, lost or never ended stays open, and a retry runs it again. So it resolves to false after a
   * `release()`, which has left the slot open. While another handle of a reentrant lease is in use, the slot is
   * recorded when the last of them ends.
   */
  async complete(): Promise<boolean> {
    const { wasOurs, isRecorded } = await this.end(this.#slot !== undefined);
    return this.#slot === undefined ? wasOurs === true : isRecorded;
  }

  /**
   * Releases it. A failure of the service is no error here: a lock that cannot be released now frees itself when its
   * lease ends.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(ifOperational(undefined));
  }

  /** Returns what another process needs to `adopt` the lease. Both processes then hold the same lease. */
  toJSON(): LeaseHandle {
    const lease = this.#lease;
    const { key, sortKey, owner, token, fencingToken, acquiredAt, seat, reentrant, data } = lease.record;
    const { cooldownUntil } = lease;
    const slot = this.#slot;
    return {
      tableName: lease.core.tableName,
      key,
      owner,
      token,
      version: lease.version,
      fencingToken,
      acquiredAt,
      expiresAt: lease.believedUntil,
      ...(lease.ownClock && { ownClock: true }),
      leaseDurationMs: lease.leaseDurationMs,
      ...(cooldownUntil !== undefined && { cooldownUntil }),
      ...(slot !== undefined && { slot }),
      ...(sortKey !== leaseSortKey && { sortKey }),
      ...(seat && { seat: { ...seat, reentrant, ...(data !== undefined && { data }) } }),
    };
  }

  /**
   * Gives the parts of a write to your own item that succeeds only while no later holder of this lock has written it.
   *
   * Every write of the item has to use them, because the item itself remembers the highest fencing token. A deleted
   * item forgets it. If a stale holder's write must not bring an item back, mark the item as deleted instead. Sends
   * nothing. Throws InvalidOptionsError.
   *
   * ```ts
   * const fence = lease.fence();
   * await documents.send(
   *   new UpdateCommand({
   *     TableName: "reports",
   *     Key: { id: "daily" },
   *     UpdateExpression: `${fence.UpdateExpression}, #total = :total`,
   *     ConditionExpression: fence.ConditionExpression,
   *     ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#total": "total" },
   *     ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":total": 42 },
   *   }),
   * );
   * ```
   */
  fence(options: FenceOptions = {}): Fence {
    const { attribute = "fence", format = this.#lease.core.format } = checkOptions(options, fenceRules);
    return fenceFragments(attribute, this.fencingToken, format);
  }

  /**
   * Gives an entry for your own transaction, which then succeeds only while this lease holds the lock, by its token
   * and its fencing token.
   *
   * Stricter than {@link Lease.fence}, and your items need no attribute for it. It adds a condition check to the
   * transaction: 2 write units. A transaction that meets a renewal, or another caller's attempt to acquire, is
   * cancelled with the reason TransactionConflict: send it again. After the lease is lost or released, the condition
   * cannot hold. Your transaction is then cancelled (TransactionCanceledException), with ConditionalCheckFailed as
   * the reason of this entry, and `signal.reason` says why. Sends nothing by itself. Throws InvalidOptionsError.
   *
   * ```ts
   * await documents.send(
   *   new TransactWriteCommand({
   *     TransactItems: [lease.conditionCheck(), { Put: { TableName: "orders", Item: { id: "42", state: "closed" } } }],
   *   }),
   * );
   * ```
   */
  conditionCheck(options: ConditionCheckOptions = {}): LeaseConditionCheck {
    const { core, form, record } = this.#lease;
    const { format = core.format } = checkOptions(options, conditionCheckRules);
    // A proof writes nothing, so its entry is a check.
    return transactItem(core.tableName, form.proof(record), format) as LeaseConditionCheck;
  }

  /** @internal Why it protects nothing any more; undefined when its holder released it. */
  get loss(): LeaseLostError | undefined {
    // Reading the time that is left looks at the clock.
    return this.remainingMs() > 0 || this.#released !== undefined ? undefined : this.#lease.error;
  }

  /** @internal Ends it once, whatever later calls ask for. */
  end(completed: boolean): Promise<Ended> {
    this.#lease.handles = this.#lease.handles.filter((handle) => handle !== this);
    this.#released ??= this.#lease.release(completed).catch((error: unknown) => {
      this.#released = undefined;
      throw error;
    });
    this.#end?.abort(new LeaseLostError(this.key, "released"));
    return this.#released;
  }

  /** @internal Renews it in the background, until it ends or the returned function is called. */
  keepAlive(intervalMs: number): () => void {
    return this.#lease.keepAlive(intervalMs);
  }

  /** @internal Publishes that the slot's work is done and could not be recorded. */
  tellCompletionFailed(slot: string, code: LeaseErrorCode): void {
    this.#lease.tellCompletionFailed(slot, code);
  }
}

/** Whether a lease has protected its work to the end: a holder that was asked to stop has lost nothing. */
export function hasProtected(loss: LeaseLostError | undefined): boolean {
  return loss === undefined || loss.reason === "revoked";
}

/**
 * Runs work under a lease, and releases the lease, however the work ends.
 *
 * The work's own error comes first. If the release then meets a mistake in the program, only an `error` event reports
 * it. Work that releases the lease itself leaves its slot open, and its result is returned. Otherwise it resolves only
 * if the lease protected the work to its end, which completes the lease's slot, or was revoked; else it rejects with
 * LeaseLostError. A release that fails, or whose reply was lost, does not hide a result: the lock frees itself when the
 * lease ends.
 */
export async function runUnder<T>(lease: Lease, work: (lease: Lease) => Promise<T> | T): Promise<T> {
  let isComplete = false;
  try {
    const result = await runTraced(lease, () => work(lease));
    const { loss } = lease;
    if (!hasProtected(loss)) throw loss;
    // Revoked work may have stopped half-way: its slot stays open.
    isComplete = loss === undefined;
    if (isComplete) {
      const ended = await lease.end(lease.slot !== undefined).catch(ifOperational(undefined));
      // The lease was broken or taken while it had time left, and the work has not noticed.
      if (ended?.wasOurs === false) throw new LeaseLostError(lease.key, "taken");
    }
    return result;
  } finally {
    // Ignored: the work's own error comes first, and the `error` event reports a mistake.
    if (!isComplete) await lease.release().catch(() => undefined);
  }
}
