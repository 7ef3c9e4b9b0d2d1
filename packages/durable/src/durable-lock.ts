import type { HoldOptions, LeaseClient, LeaseEvent, LeaseHandle } from "@leasehold/client";
import {
  type AcquisitionTerms,
  acquireLease,
  type Core,
  checkAcquireOptions,
  checkData,
  checkDue,
  checkHandle,
  checkKey,
  coreOf,
  HeldLease,
  InvalidOptionsError,
  Lease,
  LeaseLostError,
  LockForm,
  leaseItemKey,
  leaseSortKey,
  limits,
  mayPass,
  parkCallback,
  transact,
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

/** A waiting owner without a process. */
export interface ParkedOwner {
  /** As for {@link DurableLock.attempt}. */
  readonly owner: string;
  /** In epoch milliseconds; the same each time that the same owner parks. */
  readonly waitingSince: number;
  /** Lambda's id of the callback that the release completes. */
  readonly callbackId: string;
  /** When the callback times out, in epoch milliseconds. */
  readonly expiresAt: number;
}

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
  readonly #core: Core;
  /** The lease belongs to its owner and to no process. */
  readonly #form: LockForm;
  readonly #terms: AcquisitionTerms;
  readonly #data: string | undefined;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: DurableLockOptions) {
    const core = coreOf(client);
    this.#core = core;
    const { isWorking, ...given } = options;
    this.key = checkKey(key);
    this.#terms = checkAcquireOptions(given, true, core.owner, core.times);
    this.leaseDurationMs = this.#terms.leaseDurationMs;
    this.#data = checkData(given.data);
    const { clockSkewMs } = core.times;
    if (!Number.isFinite(clockSkewMs)) {
      const allowed =
        "a number of milliseconds: who forgets everything between two looks cannot watch a holder";
      throw new InvalidOptionsError("clockSkewMs", clockSkewMs, allowed);
    }
    this.#form = Object.assign(new LockForm(key, leaseSortKey), {
      isListed: false,
      // Shared, it would be given to the owner's next attempt, without a word of the table.
      shareKey: false as const,
      mutes: (event: LeaseEvent) => event.type === "lost" && event.reason === "expired" && !isWorking(),
    });
  }

  /** The time by the client's clock, in epoch milliseconds. */
  now(): number {
    return this.#core.clock.now();
  }

  /**
   * Throws SlotNotDueError for a slot that this machine's clock does not know as due yet. Not for a replay: another
   * machine's clock has decided, and the lease may be held. Sends nothing.
   */
  checkDue(): void {
    checkDue(this.key, this.#terms, this.#core.clock);
  }

  /**
   * Tries once to acquire the lock for an owner. The owner is an identity that no other caller has, and a repetition
   * of the same call uses it again.
   *
   * 1 request for a free lock. 2 to take over from a dead holder, or from an earlier attempt of the same owner whose
   * reply was lost. After a takeover the lease has a new token and a larger fencing token, so the process of the
   * earlier attempt can change nothing.
   */
  async attempt(owner: string): Promise<Lease> {
    const identity = { owner, reentrant: true, resumes: true };
    const call = { ...this.#terms, ...identity, data: this.#data, key: this.key, sortKey: leaseSortKey };
    const held = await acquireLease(this.#core, call, this.#form);
    return new Lease(held, held.slot);
  }

  /**
   * Parks an owner, so that the release of the lock completes its callback. An owner that was parked before keeps its
   * position.
   *
   * 1 transaction of a check and a write. Resolves to false, and writes nothing, when the lock is free.
   */
  async park(waiter: ParkedOwner): Promise<boolean> {
    const { retentionMs } = this.#core.times;
    const { applied } = await transact(this.#core, parkCallback({ ...waiter, key: this.key, retentionMs }));
    return applied;
  }

  /**
   * Takes a granted lease on again from its handle, in another process or a later invocation. Sends nothing.
   *
   * It protects nothing until its first renewal is confirmed, however young the handle is: the lease may have been
   * lost meanwhile.
   */
  resume(handle: LeaseHandle): Lease {
    const terms = checkHandle(handle, this.#core.tableName);
    // Versions have to grow. Versions from the time are larger than those of earlier processes, which this process
    // does not know.
    const record = { ...terms.record, version: Math.max(terms.record.version, this.now()) };
    return new Lease(new HeldLease(this.#core, this.#form, { ...terms, record }), terms.slot);
  }

  /** Whether the holder of a token released the lock itself, and no operator broke its lease. 1 request. */
  async wasReleasedByHolder(token: string): Promise<boolean> {
    const key = leaseItemKey(this.key);
    return wasReleasedByHolder(await this.#core.get({ key, consistent: true }), token);
  }

  /**
   * Why a lease that could not be released is lost, by a renewal: 1 request. Undefined when the table shows that it is
   * not.
   */
  async lossOf(handle: LeaseHandle): Promise<LeaseLostError | undefined> {
    try {
      await this.resume(handle).renew();
      return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError) return error;
      // It is lost in any case, and a later attempt could not tell that from a release of its own.
      if (mayPass(error)) return new LeaseLostError(this.key, "taken");
      throw error;
    }
  }
}
