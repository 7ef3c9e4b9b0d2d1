import type { HoldOptions, LeaseClient, LeaseEvent, LeaseHandle } from "@leasehold/client";
import {
  Acquirer,
  type AcquisitionTerms,
  type ClientInternals,
  checkAcquireOptions,
  checkData,
  checkDue,
  checkHandle,
  checkKey,
  checkKnown,
  checkText,
  HeldLease,
  InvalidOptionsError,
  internalsOf,
  Lease,
  LeaseLostError,
  LeaseUnavailableError,
  LockForm,
  leaseItemKey,
  leaseSortKey,
  limits,
  type ProtocolContext,
  parkCallback,
  SlotDoneError,
  waiterSortKeyPrefix,
  wasReleasedByHolder,
} from "@leasehold/client/internal";

/** Options of a {@link DurableLock}. */
export interface DurableLockOptions
  extends Pick<HoldOptions, "leaseDurationMs" | "data" | "slot" | "lockAtLeastForMs"> {
  /**
   * Whether work goes on under the lease in this process. When it does not, the end of a lease by this process's
   * clock is no event: the process may have been frozen, and another process may have renewed the lease.
   */
  readonly isWorking: () => boolean;
}

/** The result of an attempt to acquire. */
export type Outcome =
  | { readonly state: "granted"; readonly lease: Lease }
  | { readonly state: "refused"; readonly error: LeaseUnavailableError }
  | { readonly state: "done"; readonly error: SlotDoneError };

/** A waiting owner without a process. */
export interface Waiter {
  /** As for {@link DurableLock.attempt}. */
  readonly owner: string;
  /** In epoch milliseconds; the same each time that the same owner parks. */
  readonly waitingSince: number;
  /** Lambda's id of the callback that the release completes. */
  readonly callbackId: string;
  /** When the callback times out, in epoch milliseconds. */
  readonly expiresAt: number;
}

/** Lambda's limit for a callback's id. */
const callbackIdBytes = 1024;

/** No time in milliseconds has more digits. */
const longestTime = String(Number.MAX_SAFE_INTEGER).length;

/** The longest owner that a lock takes, in bytes: it has to fit into a waiter's sort key, behind a time. */
export const longestOwner: number = limits.sortKeyBytes - waiterSortKeyPrefix.length - longestTime - 1;

/**
 * A lock for a holder that outlives its process, and whose calls may be repeated: the steps of a durable execution.
 *
 * Each call is independent. A lease belongs to the owner and not to this process: it is not in `client.held()`, and
 * `client.close()` does not release it. `@leasehold/durable` is built on this class.
 *
 * Rejects as the client does.
 */
export class DurableLock {
  /** The lock's name. */
  readonly key: string;
  /** By how much a renewal prolongs the lease. */
  readonly leaseDurationMs: number;
  readonly #internals: ClientInternals;
  readonly #context: ProtocolContext;
  readonly #terms: AcquisitionTerms;
  readonly #data: string | undefined;

  /** Throws InvalidOptionsError and SlotNotDueError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: DurableLockOptions) {
    this.#internals = internalsOf(client);
    const { owner, times, context } = this.#internals;
    const { isWorking, ...given } = checkKnown(
      options,
      ["leaseDurationMs", "data", "slot", "lockAtLeastForMs", "isWorking"],
      "options",
    );
    this.key = checkKey(key);
    this.#terms = checkAcquireOptions(given, true, owner, times);
    this.leaseDurationMs = this.#terms.leaseDurationMs;
    this.#data = checkData(given.data);
    checkDue(key, this.#terms, context.clock);
    if (!Number.isFinite(context.clockSkewMs)) {
      const allowed =
        "a number of milliseconds: who forgets everything between two looks cannot watch a holder";
      throw new InvalidOptionsError("clockSkewMs", context.clockSkewMs, allowed);
    }
    const publish = (event: LeaseEvent): void => {
      if (event.type !== "lost" || event.reason !== "expired" || isWorking()) context.publish(event);
    };
    this.#context = { ...context, hold: () => undefined, publish };
  }

  /** The time by the client's clock, in epoch milliseconds. */
  now(): number {
    return this.#context.clock.now();
  }

  /**
   * Tries once to acquire the lock for an owner. The owner is an identity that no other caller has, and a repetition
   * of the same call uses it again.
   *
   * 1 request for a free lock. 2 to take over from a dead holder, or from an earlier attempt of the same owner whose
   * reply was lost. After a takeover the lease has a new token and a larger fencing token, so the process of the
   * earlier attempt can change nothing.
   */
  async attempt(owner: string): Promise<Outcome> {
    const { format } = this.#internals;
    const identity = { owner: checkText("owner", owner, longestOwner), reentrant: true, resumes: true };
    const call = { ...this.#terms, ...identity, data: this.#data, key: this.key, sortKey: leaseSortKey };
    try {
      // A new one each time: it remembers what it has acquired, and would share that with the owner's next attempt.
      const held = await new Acquirer(this.#context).acquire(call);
      return { state: "granted", lease: new Lease(this.#context, held, format, this.#terms.slot) };
    } catch (error) {
      if (error instanceof LeaseUnavailableError) return { state: "refused", error };
      if (error instanceof SlotDoneError) return { state: "done", error };
      throw error;
    }
  }

  /**
   * Parks an owner, so that the release of the lock completes its callback. An owner that was parked before keeps its
   * position.
   *
   * 1 transaction of a check and a write. Resolves to false, and writes nothing, when the lock is free.
   */
  async park(waiter: Waiter): Promise<boolean> {
    const { retentionMs } = this.#context;
    const owner = checkText("owner", waiter.owner, longestOwner);
    const callbackId = checkText("callbackId", waiter.callbackId, callbackIdBytes);
    const parked = { ...waiter, owner, callbackId, key: this.key, retentionMs };
    const { applied } = await this.#context.table.transact(parkCallback(parked));
    return applied;
  }

  /**
   * Takes a granted lease on again from its handle, in another process or a later invocation. Sends nothing.
   *
   * It protects nothing until its first renewal is confirmed, however young the handle is: the lease may have been
   * lost meanwhile.
   */
  resume(handle: LeaseHandle): Lease {
    const terms = checkHandle(handle, this.#context.table.tableName);
    // Versions have to grow. Versions from the time are larger than those of earlier processes, which this process
    // does not know.
    const record = { ...terms.record, version: Math.max(terms.record.version, this.now()) };
    const held = new HeldLease(
      this.#context,
      new LockForm(record.key, record.sortKey),
      { ...terms, record },
      undefined,
    );
    return new Lease(this.#context, held, this.#internals.format, terms.slot);
  }

  /** Whether the holder of a token released the lock itself, and no operator broke its lease. 1 request. */
  async wasReleasedByHolder(token: string): Promise<boolean> {
    const key = leaseItemKey(this.key);
    return wasReleasedByHolder(await this.#context.table.get({ key, consistent: true }), token);
  }

  /** Why a lease is lost, by a renewal: 1 request. Undefined when the table shows that it is not. */
  async lossOf(handle: LeaseHandle): Promise<LeaseLostError | undefined> {
    try {
      await this.resume(handle).renew();
      return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError) return error;
      throw error;
    }
  }
}
