/// <reference lib="esnext.disposable" preserve="true" />

import { showInternals } from "./client-internals.ts";
import { isDocumentClient } from "./dynamodb/document-client.ts";
import { nameAbort } from "./errors/aborted.ts";
import { brandClass } from "./errors/brand.ts";
import { ClientClosedError, CloseIncompleteError } from "./errors/closing.ts";
import {
  InvalidOptionsError,
  LeaseUnavailableError,
  SlotDoneError,
  SlotMismatchError,
} from "./errors/errors.ts";
import { publish } from "./events.ts";
import type { ValueFormat } from "./fencing.ts";
import { handleOf, Lease, type LeaseHandle, runUnder } from "./lease.ts";
import {
  type HolderOptions,
  LeaseAdmin,
  type LeasePage,
  type ListOptions,
  type ListPagesOptions,
  type SortKeyOptions,
  type TakeBackSlotOptions,
} from "./lease-admin.ts";
import { checkHandle } from "./options/check-handle.ts";
import {
  type ClientTimes,
  checkAcquireOptions,
  checkClientOptions,
  checkHeartbeat,
} from "./options/check-options.ts";
import {
  checkData,
  checkDuration,
  checkKey,
  checkKnown,
  checkText,
  checkWork,
} from "./options/check-values.ts";
import { defaultOwner } from "./options/default-owner.ts";
import type {
  AcquireOptions,
  CloseOptions,
  DynamoDBSender,
  LeaseClientOptions,
  TryAcquireOptions,
  WaitOptions,
} from "./options/options.ts";
import { type AcquireCall, Acquirer } from "./protocol/acquirer.ts";
import { type ProtocolContext, type Randomness, systemRandomness } from "./protocol/context.ts";
import { ExpiryDetector } from "./protocol/expiry-detector.ts";
import type { HeldLease } from "./protocol/held-lease.ts";
import { Lifecycle } from "./protocol/lifecycle.ts";
import { RequestGate } from "./protocol/request-gate.ts";
import { shortLeaseWatch } from "./protocol/short-lease-watch.ts";
import { SkewWatch } from "./protocol/skew-watch.ts";
import type { LeaseRecord } from "./record.ts";
import { leaseSortKey, limits } from "./schema.ts";
import { callBudgetMs, TimedStore } from "./store/timed-store.ts";
import type { LeaseStore } from "./store.ts";
import { type Clock, systemClock } from "./time/clock.ts";
import { ServiceClock } from "./time/service-clock.ts";

/**
 * Makes the store of a client that is given none. The entries differ in it, so that a bundle holds the AWS SDK only where
 * it is used.
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
 * What the LeaseClient of every entry has: it acquires and looks after leases in one table. A subclass makes the store of
 * a client that is given none.
 */
export class LeaseClient implements AsyncDisposable {
  static {
    brandClass(LeaseClient, "LeaseClient");
  }
  readonly #context: ProtocolContext;
  readonly #times: ClientTimes;
  readonly #owner: string;
  readonly #format: ValueFormat;
  readonly #acquirer: Acquirer;
  readonly #admin: LeaseAdmin;
  readonly #lifecycle: Lifecycle;

  /** Throws {@link InvalidOptionsError}. Sends nothing. */
  constructor(options: LeaseClientOptions, makeStore: MakeStore) {
    const { given, times } = checkClientOptions(options);
    this.#times = times;
    const { clock = systemClock, randomness = systemRandomness, onEvent, dynamodb } = given;
    const { clockSkewMs, retentionMs } = times;
    const emit: ProtocolContext["publish"] = (event) => publish(event, onEvent);
    const store = given.store ?? makeStore(given.tableName ?? "", { clock, randomness, dynamodb });
    const serviceClock = new ServiceClock(clock, store.isLocal ?? false, clockSkewMs, () => skewWatch.look());
    const skewWatch = new SkewWatch(serviceClock, clockSkewMs, emit);
    this.#lifecycle = new Lifecycle(clock);
    this.#owner =
      given.owner === undefined
        ? defaultOwner(checkText("randomness.token()", randomness.token(), limits.ownerBytes))
        : checkText("owner", given.owner, limits.ownerBytes);
    this.#format = dynamodb !== undefined && isDocumentClient(dynamodb) ? "native" : "attributeValue";
    this.#context = {
      table: new TimedStore(store, serviceClock),
      clock: serviceClock,
      detector: new ExpiryDetector(serviceClock, clockSkewMs),
      gate: new RequestGate(serviceClock),
      randomness,
      clockSkewMs,
      retentionMs,
      publish: emit,
      // One slow answer of a store at hand takes no time that is worth a word.
      noteLease: store.isLocal ? () => undefined : shortLeaseWatch(emit),
      lifecycle: this.#lifecycle,
      hold: (lease) => this.#lifecycle.hold(lease),
    };
    this.#acquirer = new Acquirer(this.#context);
    this.#admin = new LeaseAdmin(this.#context);
    showInternals(this, {
      context: this.#context,
      format: this.#format,
      owner: this.#owner,
      times: this.#times,
      acquirer: this.#acquirer,
      acquireAt: async (key, sortKey, options) => {
        const call = this.#callFor(key, options, true, sortKey);
        return this.#handleOf(await this.#acquirer.acquire(call), call);
      },
    });
  }

  /**
   * Acquires a lock, waiting up to `waitMs` for its holder.
   *
   * 1 request for a lock that is free, 2 to take over from a holder whose time is over; while it waits, reads.
   * Rejects with {@link LeaseUnavailableError} when somebody else still holds it, with {@link SlotDoneError} when
   * the `slot` is done already, with {@link SlotMismatchError} when a `reentrant` owner holds the lock for another one, with
   * LeaseAbortedError when the signal aborts, whose reason is the error's `cause`, and with LeaseItemError where another
   * program has written the lock's item; in every case of failure nothing stays held.
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<Lease> {
    try {
      const call = this.#callFor(key, options, true);
      return this.#handleOf(await this.#acquirer.acquire(call), call);
    } catch (error) {
      throw nameAbort(key, options.signal, error);
    }
  }

  /** Like {@link LeaseClient.acquire}, but never waits, and gives undefined when somebody else holds the lock or the slot is done. */
  async tryAcquire(key: string, options: TryAcquireOptions = {}): Promise<Lease | undefined> {
    try {
      const call = this.#callFor(key, options, false);
      return this.#handleOf(await this.#acquirer.acquire(call), call);
    } catch (error) {
      if (error instanceof LeaseUnavailableError || error instanceof SlotDoneError) return undefined;
      throw nameAbort(key, options.signal, error);
    }
  }

  /**
   * Acquires a lock, runs the work, and releases the lock whatever becomes of the work.
   *
   * Resolves to the work's result if the lease protected it to its end, which completes its `slot`, or was revoked;
   * rejects with LeaseLostError if it did not, for then the work may have overlapped another holder's: also where
   * nothing but the release finds that it was broken meanwhile. The work's own error comes first. A release that fails
   * does not hide the result: the lock frees itself when the lease ends, and the `released` event says so.
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
   * Takes on a lease from another process's `lease.toJSON()`. Sends nothing.
   *
   * Until its first renewal is confirmed, the lease protects the adopter until `clockSkewMs` before `expiresAt`, by the
   * service's clock as this client's answers have told it; before the client's first answer by the wall clock, which has
   * to be within `clockSkewMs` of the service's. A handle that is older than that is adopted all the same: it protects
   * nothing until a renewal has shown that nobody took the lock.
   */
  adopt(handle: LeaseHandle, options: Pick<AcquireOptions, "heartbeat"> = {}): Lease {
    const { heartbeat } = checkKnown(options, ["heartbeat"], "options");
    const terms = checkHandle(handle, this.#context.table.tableName);
    const held = this.#acquirer.adopt(terms, checkHeartbeat(heartbeat, terms.leaseDurationMs));
    return new Lease(this.#context, held, this.#format, terms.slot);
  }

  /**
   * Reads who holds a lock; undefined when nobody does. A lease that expired and was not released is shown. 1 consistent
   * read. With `sortKey`, the same of another lease under the key; of a semaphore or a read-write lock the one that was acquired
   * first, for `inspectAll` shows all of them. Rejects with
   * LeaseItemError where another program has written the item.
   */
  async inspect(key: string, options: SortKeyOptions = {}): Promise<LeaseRecord | undefined> {
    return await this.#admin.inspect(key, options);
  }

  /**
   * Reads all leases under a key that are held or have not been released, whatever primitives they belong to: the lock,
   * permits of a semaphore, readers and writer, runs of a job, tasks. Their `sortKey` tells. 1 consistent query for each
   * megabyte of the items under the key. An item that cannot be read is left out, and the `unreadable` event names it.
   */
  async inspectAll(key: string): Promise<LeaseRecord[]> {
    return await this.#admin.inspectAll(key);
  }

  /**
   * Goes through the locks that are held or have not been released, in no order, by pages as they are wanted; with `all`
   * through the leases of the other primitives, too.
   *
   * Reads the whole table, 1 request for each megabyte: for people and tools, not for hot paths. May lag a moment behind. An
   * item that cannot be read is left out, and the `unreadable` event names it.
   *
   * ```ts
   * for await (const lease of client.list({ prefix: "import/" })) console.log(lease.key, lease.owner);
   * ```
   */
  async *list(options: ListOptions = {}): AsyncGenerator<LeaseRecord, void, undefined> {
    checkKnown(options, ["prefix", "all"], "options");
    for await (const { leases } of this.#admin.listPages(options)) yield* leases;
  }

  /**
   * Lists the same by the pages in which it is read, each with a cursor from which another process can go on: for those
   * whose time may be over before the table is. A page may be empty, and others follow.
   *
   * 1 request for each page, of a megabyte. Leases that are acquired behind the cursor are not seen.
   *
   * ```ts
   * for await (const { leases, next } of client.listPages({ prefix: "desk/" })) {
   *   console.log(leases.length, next === undefined ? "and that was all" : `more behind ${next.pk}`);
   * }
   * ```
   */
  async *listPages(options: ListPagesOptions = {}): AsyncGenerator<LeasePage, void, undefined> {
    yield* this.#admin.listPages(options);
  }

  /**
   * Breaks the lease of a holder that will not let go. BE CAREFUL: the holder is not asked, and works on until its
   * next renewal or its deadline.
   *
   * Needs the token that it means to break (see {@link LeaseClient.inspect}), so that it cannot hit a later holder, and
   * the `sortKey` of a lease that is not the lock's own. A task that is broken so waits again, or, if that was its last
   * attempt, is parked by the next worker that comes by; a run shows as lost. 1 request; 2 for a permit, a read lock or a write
   * lock. Resolves to false when another token, or none, holds the lock: `onRefused` is told which of the two.
   *
   * ```ts
   * for (const { key, sortKey, token } of await client.inspectAll("payment-api")) {
   *   await client.forceRelease(key, { sortKey, token });
   * }
   * ```
   */
  async forceRelease(key: string, options: HolderOptions): Promise<boolean> {
    return await this.#admin.forceRelease(key, options);
  }

  /**
   * Asks the holder of a lease to stop: its signal aborts with the reason `revoked` when it next renews. A holder
   * that does not renew does not hear of it. The lock stays closed until it is released or expires.
   *
   * Needs the token of the lease that it means, and the `sortKey` of one that is not the lock's own. 1 request. Resolves to
   * false when another token, or none, holds the lock: `onRefused` is told which of the two.
   */
  async requestRevocation(
    key: string,
    options: HolderOptions & { readonly reason?: string },
  ): Promise<boolean> {
    return await this.#admin.requestRevocation(key, options);
  }

  /**
   * Gives the leases that are held at this moment, in the order of acquisition, whatever primitives they belong to:
   * locks, permits, read and write locks, groups, leadership, runs, tasks, computations; adopted ones as well. One that
   * a reentrant owner has several times is listed once. Sends nothing.
   *
   * Not in it: what `FairLock.checkIn` has won, which belongs to its owner and not to this process.
   *
   * ```ts
   * for (const { key, sortKey, expiresAt } of client.held()) console.log(key, sortKey, new Date(expiresAt).toISOString());
   * ```
   */
  held(): Lease[] {
    return this.#lifecycle.held.flatMap((lease) => handleOf(lease) ?? []);
  }

  /**
   * Lets everything go, for a process that is about to end: every lease of {@link LeaseClient.held} is released, however
   * many handles a reentrant owner has; every wait is called off, and its ticket leaves the queue; and what is being
   * released or taken back in the background is waited for. Work under a lease is not waited for: its signal aborts.
   *
   * A wait that is called off rejects with {@link ClientClosedError}, and so does every later attempt to get a lease.
   * Reads, `forceRelease` and `requestRevocation` still work.
   *
   * 1 request for each lease and each ticket, all at the same time. Resolves when the service has confirmed all of them.
   * Rejects with {@link CloseIncompleteError} when it has not within `timeoutMs`, or when a request failed; the client is
   * closed all the same, and the error tells which keys may stay held, and until when. Calling it again waits again, and
   * sends nothing.
   *
   * A lease that was handed to another process, with `lease.toJSON()` and `adopt`, is one lease: closing the client of
   * either process releases it for both. Give leases that outlive the process a client of their own.
   *
   * ```ts
   * process.once("SIGTERM", async () => {
   *   await client.close({ timeoutMs: 5_000 });
   *   process.exit();
   * });
   * ```
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkKnown(options, ["timeoutMs"], "options");
    await this.#lifecycle.close(checkDuration("timeoutMs", options.timeoutMs ?? callBudgetMs, 0));
  }

  /** Closes it, without complaint: what cannot be released now frees itself when its lease ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (error) {
      if (!(error instanceof CloseIncompleteError)) throw error;
    }
  }

  /** Reads the latest slot that is done under a key; undefined where none is. 1 consistent read. */
  async doneSlot(key: string): Promise<string | undefined> {
    return await this.#admin.doneSlot(key);
  }

  /**
   * Takes back a slot that is done, so that it and those before it can be run again. For an operator, where a slot was
   * done by mistake: one that lies far ahead keeps out every run until then.
   *
   * Needs the slot that it means (see {@link LeaseClient.doneSlot}), so that it cannot hit a later one; `to` is the last
   * one that shall stay done. The holder of the lock keeps it. 1 request. Resolves to whether `to` is the latest slot
   * that is done: false when it is neither the one that was seen nor `to`.
   *
   * ```ts
   * const doneSlot = await client.doneSlot("close-unpaid-orders");
   * if (doneSlot !== undefined && doneSlot > new Date().toISOString()) {
   *   await client.takeBackSlot("close-unpaid-orders", { doneSlot, to: "2026-11-21T08:00:00.000Z" });
   * }
   * ```
   */
  async takeBackSlot(key: string, options: TakeBackSlotOptions): Promise<boolean> {
    return await this.#admin.takeBackSlot(key, options);
  }

  /** Validates a call. Throws InvalidOptionsError, and the reason of a signal that has aborted. */
  #callFor(key: string, options: WaitOptions, mayWait: boolean, sortKey: string = leaseSortKey): AcquireCall {
    checkKey(key);
    const terms = checkAcquireOptions(options, mayWait, this.#owner, this.#times);
    const data = checkData(terms.data);
    terms.signal?.throwIfAborted();
    return { ...terms, key, sortKey, data, resumes: terms.reentrant };
  }

  #handleOf(held: HeldLease, { slot }: AcquireCall): Lease {
    return new Lease(this.#context, held, this.#format, slot);
  }
}
