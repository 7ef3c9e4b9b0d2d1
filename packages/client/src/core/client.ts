/// <reference lib="esnext.disposable" preserve="true" />

import { nameAbort } from "../base/abort.ts";
import { brandClass } from "../base/brand.ts";
import { checkAcquireOptions, checkClientOptions, checkDue, checkHeartbeat } from "../base/check-options.ts";
import { checkData, checkDuration, checkKey, checkKnown, checkWork } from "../base/check-values.ts";
import { type Clock, type Randomness, systemClock, systemRandomness } from "../base/clock.ts";
import { DefaultOwner } from "../base/default-owner.ts";
import {
  InvalidOptionsError,
  LeaseUnavailableError,
  SlotDoneError,
  SlotMismatchError,
} from "../base/errors.ts";
import { checkHandle, type LeaseHandle } from "../base/handle.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import type {
  AcquireOptions,
  CloseOptions,
  DynamoDBSender,
  LeaseClientOptions,
  TryAcquireOptions,
  WaitOptions,
} from "../base/options.ts";
import { lastDoneSlot, readRecord } from "../base/record.ts";
import { leaseItemKey, leaseSortKey } from "../base/schema.ts";
import type { Item, LeaseStore } from "../base/store.ts";
import { isDocumentClient } from "../stores/sdk/encoding.ts";
import { acquireLease, adoptLease } from "./acquire.ts";
import { Core, showCore } from "./core.ts";
import { handleOf, Lease, runUnder } from "./lease.ts";
import { ClientClosedError, CloseIncompleteError } from "./lifecycle.ts";
import { LockForm } from "./lock-form.ts";
import type { AcquireCall } from "./order.ts";

/**
 * Makes the store of a client without a `store`. The entries differ in it, so that a bundle has the AWS SDK only if its
 * entry uses the SDK.
 */
export type MakeStore = (
  tableName: string,
  parts: {
    readonly clock: Clock;
    readonly randomness: Randomness;
    readonly dynamodb: DynamoDBSender | undefined;
  },
) => LeaseStore;

/**
 * The base of every entry's LeaseClient: it acquires and manages leases in one table. A subclass makes the store of a
 * client without a `store`.
 */
export class LeaseClient implements AsyncDisposable {
  static {
    brandClass(LeaseClient, "LeaseClient");
  }
  readonly #core: Core;

  /** Throws {@link InvalidOptionsError}. Sends nothing. */
  constructor(options: LeaseClientOptions, makeStore: MakeStore) {
    const { given, times } = checkClientOptions(options);
    const { clock = systemClock, randomness = systemRandomness, dynamodb, renewals, onEvent } = given;
    const store = given.store ?? makeStore(given.tableName ?? "", { clock, randomness, dynamodb });
    const owner = given.owner === undefined ? new DefaultOwner(randomness, clock) : { current: given.owner };
    const format = dynamodb !== undefined && isDocumentClient(dynamodb) ? "native" : "attributeValue";
    this.#core = new Core({ store, clock, randomness, times, owner, format, renewals, onEvent });
    showCore(this, this.#core);
  }

  /**
   * Acquires a lock, waiting up to `waitMs` for its holder.
   *
   * 1 request for a free lock, 2 to take over from a holder whose lease has ended; while it waits, reads.
   *
   * It excludes the other locks of that key: fair ones, groups, leaders. It does not exclude holders of a Semaphore or of a
   * ReadWriteLock of the same key. Use a key for one of the three kinds.
   *
   * Rejects:
   * - with {@link LeaseUnavailableError} when another caller still holds the lock.
   * - with {@link SlotDoneError} when the `slot` is done already.
   * - with {@link SlotNotDueError} when the `slot` is a Date more than a minute ahead of this machine's clock.
   * - with {@link SlotMismatchError} when a `reentrant` owner holds the lock for another slot.
   * - with LeaseAbortedError when the signal aborts. The signal's reason is the error's `cause`.
   * - with LeaseItemError when another program has written the lock's item.
   *
   * In every case of failure nothing stays held.
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<Lease> {
    const call = callFor(this.#core, key, options, true);
    try {
      return new Lease(await acquireLease(this.#core, call), call.slot);
    } catch (error) {
      throw nameAbort(key, call.signal, error);
    }
  }

  /**
   * Like {@link LeaseClient.acquire}, but never waits, and gives undefined when another caller holds the lock or the
   * slot is done.
   */
  async tryAcquire(key: string, options: TryAcquireOptions = {}): Promise<Lease | undefined> {
    const call = callFor(this.#core, key, options, false);
    try {
      return new Lease(await acquireLease(this.#core, call), call.slot);
    } catch (error) {
      if (error instanceof LeaseUnavailableError || error instanceof SlotDoneError) return undefined;
      throw nameAbort(key, call.signal, error);
    }
  }

  /**
   * Acquires a lock, runs the work, and releases the lock, however the work ends.
   *
   * Resolves to the work's result if the lease protected it to its end, which completes its `slot`, or was revoked.
   * Work that releases the lease itself leaves the slot open, and its result is given.
   * Otherwise rejects with LeaseLostError, because the work may have overlapped another holder's; also when only the
   * release finds that the lease was broken meanwhile. The work's own error comes first. A release that fails does
   * not hide the result: the lock frees itself when the lease ends, and the `released` event says so.
   *
   * Without options, the work comes second: `withLease(key, work)`.
   */
  async withLease<T>(
    key: string,
    options: AcquireOptions,
    work: (lease: Lease) => Promise<T> | T,
  ): Promise<T>;
  async withLease<T>(key: string, work: (lease: Lease) => Promise<T> | T): Promise<T>;
  async withLease<T>(
    key: string,
    optionsOrWork: AcquireOptions | ((lease: Lease) => Promise<T> | T),
    workAfterOptions?: (lease: Lease) => Promise<T> | T,
  ): Promise<T> {
    const isWorkSecond = typeof optionsOrWork === "function" && workAfterOptions === undefined;
    const work = isWorkSecond ? optionsOrWork : workAfterOptions;
    const options = isWorkSecond ? {} : (optionsOrWork as AcquireOptions);
    checkWork(work);
    return await runUnder(await this.acquire(key, options), work);
  }

  /**
   * Adopts a lease from another process's `lease.toJSON()`. Sends nothing.
   *
   * Until its first renewal is confirmed, the lease protects the adopter until `clockSkewMs` before `expiresAt`, by the
   * service's clock, as this client's answers have told it. Before the client's first answer, and with an older handle,
   * it protects nothing until a renewal has shown that no other caller took the lock. The handle of a permit, a reader or a
   * writer is refused: its Semaphore or ReadWriteLock adopts it.
   *
   * Unknown members of a handle are ignored: another version may have written them. A handle of another `format` is
   * refused with InvalidOptionsError.
   */
  adopt(handle: LeaseHandle, options: Pick<AcquireOptions, "heartbeat"> = {}): Lease {
    const { heartbeat } = checkKnown(options, ["heartbeat"], "options");
    const terms = checkHandle(handle, this.#core.tableName);
    const { key, sortKey } = terms.record;
    const heartbeatMs = checkHeartbeat(heartbeat, terms.leaseDurationMs);
    return new Lease(adoptLease(this.#core, new LockForm(key, sortKey), terms, heartbeatMs), terms.slot);
  }

  /**
   * Reads which lease holds a lock; undefined when the lock is free. Shows a lease that has expired and was not
   * released. 1 consistent read.
   *
   * `LeaseAdmin` of `@leasehold/client/admin` shows the other leases of a key and of the table. Rejects with
   * LeaseItemError when another program has written the item.
   */
  async inspect(key: string): Promise<LeaseRecord | undefined> {
    return readRecord(await this.#read(key));
  }

  /**
   * Gives the leases that this client holds at this moment, in the order of acquisition, of all primitives: locks,
   * permits, read and write locks, groups, leadership, runs, tasks, computations; adopted ones as well. A lease with
   * several handles of a reentrant owner is listed once. Sends nothing.
   *
   * A lease of `FairLock.checkIn` is not in the list: it belongs to its owner and not to this process.
   *
   * ```ts
   * for (const { key, sortKey, expiresAt } of client.held()) console.log(key, sortKey, new Date(expiresAt).toISOString());
   * ```
   */
  held(): Lease[] {
    return this.#core.lifecycle.held.flatMap((lease) => handleOf(lease) ?? []);
  }

  /**
   * Releases everything, for a process that is about to end. Every lease of {@link LeaseClient.held} is released,
   * with all handles of a reentrant owner. Every wait ends, and its ticket leaves the queue. The call waits for
   * releases in the background. It does not wait for work under a lease: the work's signal aborts.
   *
   * Those waits reject with {@link ClientClosedError}, and so does every later attempt to get a lease. Reads
   * still work, and so do a `LeaseAdmin` and a `LeaseOperator` of this client.
   *
   * 1 request for each lease and each ticket, up to 48 at the same time. Resolves when the service has confirmed all of
   * them. Rejects with {@link CloseIncompleteError} when it has not within `timeoutMs`, or when a request failed. The
   * client is closed then too, and the error names the keys that may stay held, and until when. Calling it again
   * waits again, and sends nothing.
   *
   * Without `timeoutMs` it waits as long as the service goes on confirming: thousands of leases take their time.
   *
   * A lease that was handed to another process, with `lease.toJSON()` and `adopt`, is one lease: closing the client
   * of either process releases it for both. Give leases that outlive the process a client of their own.
   *
   * ```ts
   * process.once("SIGTERM", async () => {
   *   await client.close({ timeoutMs: 5_000 });
   *   process.exit();
   * });
   * ```
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const { timeoutMs } = checkKnown(options, ["timeoutMs"], "options");
    const { gate, lifecycle } = this.#core;
    const closed = lifecycle.close(
      timeoutMs === undefined ? undefined : checkDuration("timeoutMs", timeoutMs, 0),
    );
    gate.endRenewals();
    await closed;
  }

  /**
   * Closes the client, and ignores failures of the service: a lease that cannot be released now frees itself when it
   * ends.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (error) {
      if (!(error instanceof CloseIncompleteError)) throw error;
    }
  }

  /** Reads the latest slot that is done under a key; undefined when there is none. 1 consistent read. */
  async doneSlot(key: string): Promise<string | undefined> {
    return lastDoneSlot(await this.#read(key));
  }

  #read(key: string): Promise<Item | undefined> {
    return this.#core.get({ key: leaseItemKey(checkKey(key)), consistent: true });
  }
}

/** Validates a call. Throws InvalidOptionsError, and the reason of a signal that has aborted. */
function callFor(core: Core, key: string, options: WaitOptions, mayWait: boolean): AcquireCall {
  checkKey(key);
  const terms = checkAcquireOptions(options, mayWait, core.owner, core.times);
  const data = checkData(terms.data);
  checkDue(key, terms, core.clock);
  return { ...terms, key, sortKey: leaseSortKey, data, resumes: terms.reentrant };
}

/** As `client.acquire`, for a lease at another sort key under the key. */
export async function acquireAt(
  core: Core,
  key: string,
  sortKey: string,
  options: WaitOptions,
): Promise<Lease> {
  const call = { ...callFor(core, key, options, true), sortKey };
  return new Lease(await acquireLease(core, call), call.slot);
}
