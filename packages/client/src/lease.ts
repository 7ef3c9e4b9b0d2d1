/// <reference lib="esnext.disposable" preserve="true" />
import { InvalidOptionsError, LeaseLostError } from "./errors.ts";
import {
  type ConditionCheckOptions,
  type Fence,
  type FenceOptions,
  fenceFragments,
  type LeaseConditionCheck,
  leaseConditionCheck,
  type ValueFormat,
} from "./fencing.ts";
import type { ProtocolContext } from "./protocol/context.ts";
import type { Tenancy } from "./protocol/tenancy.ts";
import type { LeaseRecord } from "./record.ts";
import { leaseSortKey } from "./schema.ts";
import { checkKnown, checkText } from "./validation.ts";

/** A lease in a form that another process can adopt: plain JSON values. */
export interface LeaseHandle
  extends Pick<
    LeaseRecord,
    "key" | "owner" | "token" | "version" | "fencingToken" | "acquiredAt" | "expiresAt" | "leaseDurationMs"
  > {
  /** The table that the lease is in. */
  readonly tableName: string;
  /** Until when a release keeps the lock closed, in epoch milliseconds; absent to open it at once. */
  readonly closedUntil?: number;
  /** Which of the key's leases it is, where there are several. */
  readonly place?: string;
  /** The run that the lease stands for, if it stands for one. */
  readonly slot?: string;
}

/**
 * A lock that is held, for a time.
 *
 * Between asking `held` and acting, a process may be frozen for longer than the lease lasts: where that must not
 * do harm, make the write itself refuse, with {@link Lease.fence} or {@link Lease.conditionCheck}.
 *
 * ```ts
 * await using lease = await client.acquire("import", { heartbeat: true });
 * await importAll({ signal: lease.signal });
 * ```
 */
export class Lease implements AsyncDisposable {
  readonly #context: ProtocolContext;
  readonly #tenancy: Tenancy;
  readonly #format: ValueFormat;
  #release: Promise<boolean> | undefined;

  /** @internal Leases are made by a LeaseClient. */
  constructor(context: ProtocolContext, tenancy: Tenancy, format: ValueFormat) {
    this.#context = context;
    this.#tenancy = tenancy;
    this.#format = format;
  }

  /** The lock's name. */
  get key(): string {
    return this.#tenancy.terms.record.key;
  }

  /** Which of the key's leases it is: "lease", or the permit, run or task that it stands for. */
  get place(): string {
    return this.#tenancy.terms.record.place;
  }

  /** Readable label of who holds it. */
  get owner(): string {
    return this.#tenancy.terms.record.owner;
  }

  /** Unique id of this acquisition. */
  get token(): string {
    return this.#tenancy.terms.record.token;
  }

  /** Grows with every acquisition of the key: of two holders, the one with the larger number came later. */
  get fencingToken(): number {
    return this.#tenancy.terms.record.fencingToken;
  }

  /** When it was acquired, in epoch milliseconds of the clock of whoever acquired it. */
  get acquiredAt(): number {
    return this.#tenancy.terms.record.acquiredAt;
  }

  /** When it ends unless it is renewed, in epoch milliseconds of the clock of whoever renewed it last. */
  get expiresAt(): number {
    return this.#tenancy.validity.expiresAt;
  }

  /** The run that it stands for, if it stands for one. */
  get slot(): string | undefined {
    return this.#tenancy.terms.slot;
  }

  /** The payload that was stored with it. */
  get data(): unknown {
    return this.#tenancy.terms.record.data;
  }

  /** Whether it protects its holder at this moment, by the holder's own clock. Sends nothing. */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  /** How much longer it protects its holder, in milliseconds; 0 when it does not. Sends nothing. */
  remainingMs(): number {
    return this.#release === undefined ? this.#tenancy.validity.remainingMs() : 0;
  }

  /**
   * Aborts, with a {@link LeaseLostError} that says why, as soon as the lease does not protect its holder any more:
   * at the holder's own deadline even if a renewal hangs, at a renewal that finds the lock taken or its revocation
   * requested, and at the release.
   *
   * A timer can fire late in a process that was frozen; reading this property, or `held`, looks at the clock.
   */
  get signal(): AbortSignal {
    return this.#tenancy.validity.signal;
  }

  /** @internal Why it protects nothing any more, unless its holder let it go. */
  get loss(): LeaseLostError | undefined {
    return this.#release === undefined ? this.signal.reason : undefined;
  }

  /**
   * Prolongs the lease by its duration, counted from now.
   *
   * 1 request, which is given up after half of the time that is left, or 5 s, so that there is time for another.
   * Calls at the same time, a heartbeat's included, share it. Rejects with {@link LeaseLostError} when the
   * lease is lost or released; with LeaseServiceError when the service did not confirm, in which case the lease
   * stands until its deadline and the call may be repeated.
   */
  async renew(): Promise<void> {
    if (this.#release !== undefined) throw new LeaseLostError(this.key, "released");
    await this.#tenancy.renew((request, options) => this.#context.store.update(request, options));
  }

  /**
   * Lets the lock go. A lock that is not this lease's any more is left alone.
   *
   * 1 request; none when the lock is known to be somebody else's, or while another handle of a reentrant lease is
   * still out. Never runs beside a renewal. Resolves to whether the lock was still this lease's to release; calling
   * it again gives the same answer. Rejects with LeaseServiceError when the service did not confirm: call it again,
   * or let the lease expire.
   */
  release(): Promise<boolean> {
    return this.#end(false);
  }

  /**
   * Lets the lock go and records its `slot` as done, so that nobody runs that slot, or an earlier one, again.
   *
   * As {@link Lease.release} in all else, its single request included; without a slot it is the same. A slot whose
   * lease is released, lost or never ended stays open, and whoever retries it runs it again.
   */
  complete(): Promise<boolean> {
    return this.#end(true);
  }

  #end(completed: boolean): Promise<boolean> {
    this.#release ??= this.#tenancy.release(completed).catch((error: unknown) => {
      this.#release = undefined;
      throw error;
    });
    return this.#release;
  }

  /** Releases it, without complaint: a lock that cannot be released now frees itself when its lease ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => false);
  }

  /** Gives what another process needs to `adopt` the lease. The same lease goes on in both. */
  toJSON(): LeaseHandle {
    const { record, leaseDurationMs, closedUntil, slot } = this.#tenancy.terms;
    const { key, place, owner, token, fencingToken, acquiredAt } = record;
    return {
      tableName: this.#context.store.tableName,
      key,
      owner,
      token,
      version: this.#tenancy.version,
      fencingToken,
      acquiredAt,
      expiresAt: this.expiresAt,
      leaseDurationMs,
      ...(closedUntil === undefined ? {} : { closedUntil }),
      ...(slot === undefined ? {} : { slot }),
      ...(place === leaseSortKey ? {} : { place }),
    };
  }

  /**
   * Gives the parts of a write to your own item that succeeds only while no later holder of this lock has written it.
   *
   * Every write of the item has to carry them, for the item itself remembers the highest fencing token. An item that
   * is deleted forgets it: mark it as deleted instead, where a stale holder's write must not bring it back.
   * Sends nothing. Throws InvalidOptionsError.
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
    checkKnown(options, ["attribute", "format"], "options");
    const attribute = checkText("attribute", options.attribute ?? "fence", 255);
    return fenceFragments(attribute, this.fencingToken, checkFormat(options.format ?? this.#format));
  }

  /**
   * Gives an entry for your own transaction, which then succeeds only while this lease's token holds the lock.
   *
   * Stricter than {@link Lease.fence}, and your items need no attribute for it. It adds a condition check to the
   * transaction: 2 write units. A transaction that meets a renewal, or somebody else's attempt to acquire, is
   * cancelled with the reason TransactionConflict: send it again. Sends nothing by itself. Throws
   * InvalidOptionsError.
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
    checkKnown(options, ["format"], "options");
    const format = checkFormat(options.format ?? this.#format);
    return leaseConditionCheck(this.#context.store.tableName, this.#tenancy.terms.record, this.token, format);
  }
}

function checkFormat(format: unknown): ValueFormat {
  if (format === "native" || format === "attributeValue") return format;
  throw new InvalidOptionsError("format", format, "native or attributeValue");
}
