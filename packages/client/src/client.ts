import { createDynamoDBClient } from "./dynamodb/client.ts";
import { DynamoDBLeaseStore, isDocumentClient } from "./dynamodb/store.ts";
import { InvalidOptionsError, LeaseUnavailableError, SlotDoneError } from "./errors.ts";
import { publish } from "./events.ts";
import { FairQueues } from "./fair/fair-queues.ts";
import { checkDataBesideQueue, type FairTerms, separateFairness } from "./fair/options.ts";
import type { ValueFormat } from "./fencing.ts";
import { checkHandle } from "./handle.ts";
import { showInternals } from "./internals.ts";
import { Lease, type LeaseHandle } from "./lease.ts";
import type { AcquireOptions, LeaseClientOptions, TryAcquireOptions, WaitOptions } from "./options.ts";
import {
  type ClientTimes,
  checkAcquireOptions,
  checkClientOptions,
  checkHeartbeat,
} from "./options-check.ts";
import { type ListOptions, Oversight, type PlaceOptions } from "./oversight.ts";
import { defaultOwner } from "./owner.ts";
import { Acquirer } from "./protocol/acquirer.ts";
import type { ProtocolContext } from "./protocol/context.ts";
import { Judge } from "./protocol/judge.ts";
import { SkewWatch } from "./protocol/skew-watch.ts";
import type { LeaseRecord } from "./record.ts";
import { leaseSortKey, limits } from "./schema.ts";
import { systemClock } from "./time/clock.ts";
import { runUnder } from "./under-lease.ts";
import { checkData, checkKey, checkKnown, checkText, checkWork } from "./validation.ts";

/**
 * Acquires and looks after leases in one table.
 *
 * Promised: at most one unexpired holder for each key while clocks differ by no more than `clockSkewMs`; fencing
 * tokens that strictly grow; a stale holder's renewal, release or fenced write changes nothing. Not promised: that
 * work stops when its lease is lost. A resource that neither checks the fencing token nor takes the lease's
 * condition check into its own transaction gets efficiency from a lease, not safety.
 *
 * Every method rejects with {@link InvalidOptionsError} before it sends anything, with LeaseTableError,
 * LeaseConfigurationError and LeaseServiceError.
 *
 * ```ts
 * const client = new LeaseClient({ tableName: "leases" });
 * const total = await client.withLease("nightly-report", { heartbeat: true }, async (lease) => {
 *   return await buildReport({ signal: lease.signal });
 * });
 * ```
 */
export class LeaseClient {
  readonly #context: ProtocolContext;
  readonly #times: ClientTimes;
  readonly #owner: string;
  readonly #format: ValueFormat;
  readonly #acquirer: Acquirer;
  readonly #queues: FairQueues;
  readonly #oversight: Oversight;

  /** Throws {@link InvalidOptionsError}. Sends nothing. */
  constructor(options: LeaseClientOptions) {
    this.#times = checkClientOptions(options);
    const { clock = systemClock, onEvent, dynamodb } = options;
    const { clockSkewMs, retentionMs } = this.#times;
    const randomness = options.randomness ?? {
      token: () => crypto.randomUUID(),
      fraction: () => Math.random(),
    };
    const emit: ProtocolContext["publish"] = (event) => publish(event, onEvent);
    const skewWatch = new SkewWatch(clock, clockSkewMs, emit);
    this.#owner =
      options.owner === undefined
        ? defaultOwner(randomness.token())
        : checkText("owner", options.owner, limits.ownerBytes);
    this.#format = dynamodb !== undefined && isDocumentClient(dynamodb) ? "native" : "attributeValue";
    this.#context = {
      store:
        options.store ??
        new DynamoDBLeaseStore(options.tableName ?? "", dynamodb ?? createDynamoDBClient(), clock),
      clock,
      randomness,
      clockSkewMs,
      retentionMs,
      publish: emit,
      noteOffset: (offset) => skewWatch.note(offset),
    };
    const judge = new Judge(clock, clockSkewMs);
    this.#acquirer = new Acquirer(this.#context, judge);
    this.#queues = new FairQueues(this.#context, judge);
    this.#oversight = new Oversight(this.#context);
    showInternals(this, {
      context: this.#context,
      format: this.#format,
      owner: this.#owner,
      times: this.#times,
      queues: this.#queues,
      acquirer: this.#acquirer,
      judge,
      acquireAt: (key, place, others, fair) => this.#acquire(key, { fair, others }, true, place),
    });
  }

  /**
   * Acquires a lock, waiting up to `waitMs` for its holder.
   *
   * 1 request for a lock that is free, 2 to take over from a holder whose time is over; while it waits, reads.
   * Rejects with {@link LeaseUnavailableError} when somebody else still holds it, with {@link SlotDoneError} when
   * the `slot` is done already, and with the signal's reason when that aborts; in every case of failure nothing
   * stays held.
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<Lease> {
    return await this.#acquire(key, separateFairness(options, true), true);
  }

  /** Like {@link LeaseClient.acquire}, but never waits, and gives undefined when somebody else holds the lock or the slot is done. */
  async tryAcquire(key: string, options: TryAcquireOptions = {}): Promise<Lease | undefined> {
    try {
      return await this.#acquire(key, separateFairness(options, false), false);
    } catch (error) {
      if (error instanceof LeaseUnavailableError || error instanceof SlotDoneError) return undefined;
      throw error;
    }
  }

  /**
   * Acquires a lock, runs the work, and releases the lock whatever becomes of the work.
   *
   * Resolves to the work's result if the lease protected it to its end, which completes its `slot`, or was revoked;
   * rejects with LeaseLostError if it did not, for then the work may have overlapped another holder's: also where
   * nothing but the release finds that it was broken meanwhile. The work's own error comes first. A release that fails
   * does not hide the result: the lock frees itself when the lease ends, and the `released` event says so.
   */
  async withLease<T>(
    key: string,
    options: AcquireOptions,
    work: (lease: Lease) => Promise<T> | T,
  ): Promise<T> {
    checkWork(work);
    return await runUnder(await this.acquire(key, options), work);
  }

  /**
   * Takes on a lease from another process's `lease.toJSON()`. Sends nothing.
   *
   * The lease protects the adopter until `expiresAt` by the adopter's wall clock, which has to be within
   * `clockSkewMs` of the others'. A handle that is older than that is adopted all the same: it protects nothing until
   * a renewal has shown that nobody took the lock.
   */
  adopt(handle: LeaseHandle, options: Pick<AcquireOptions, "heartbeat"> = {}): Lease {
    checkKnown(options, ["heartbeat"], "options");
    const record = checkHandle(handle, this.#context.store.tableName);
    const { leaseDurationMs, closedUntil, slot } = handle;
    const heartbeatMs = checkHeartbeat(options.heartbeat, leaseDurationMs);
    const tenancy = this.#acquirer.adopt({ record, leaseDurationMs, closedUntil, slot }, heartbeatMs);
    return new Lease(this.#context, tenancy, this.#format);
  }

  /**
   * Reads who holds a lock; undefined when nobody does. A lease that expired and was not released is shown. 1 consistent
   * read. With `place`, the same of another lease under the key, such as a permit of a semaphore.
   */
  async inspect(key: string, options: PlaceOptions = {}): Promise<LeaseRecord | undefined> {
    return await this.#oversight.inspect(key, options);
  }

  /**
   * Reads all leases under a key that are held or have not been released, whatever primitives they belong to: the lock,
   * permits of a semaphore, readers and writer, runs of a job, tasks. Their `place` tells. 1 consistent query for each
   * megabyte of the items under the key.
   */
  async inspectAll(key: string): Promise<LeaseRecord[]> {
    return await this.#oversight.inspectAll(key);
  }

  /**
   * Goes through the locks that are held or have not been released, in no order, by pages as they are wanted; with `all`
   * through the leases of the other primitives, too.
   *
   * Reads the whole table, 1 request for each 500 items: for people and tools, not for hot paths. May lag a moment
   * behind.
   *
   * ```ts
   * for await (const lease of client.list({ prefix: "import/" })) console.log(lease.key, lease.owner);
   * ```
   */
  async *list(options: ListOptions = {}): AsyncGenerator<LeaseRecord, void, undefined> {
    yield* this.#oversight.list(options);
  }

  /**
   * Breaks the lease of a holder that will not let go. BE CAREFUL: the holder is not asked, and works on until its
   * next renewal or its deadline.
   *
   * Needs the token that it means to break (see {@link LeaseClient.inspect}), so that it cannot hit a later holder, and
   * the `place` of a lease that is not the lock's own. A task that is broken so waits again, or, if that was its last
   * attempt, is parked by the next worker that comes by; a run shows as lost. 1 request. Resolves to false when another
   * token, or none, holds the lock.
   *
   * ```ts
   * for (const { key, place, token } of await client.inspectAll("payment-api")) {
   *   await client.forceRelease(key, { place, token });
   * }
   * ```
   */
  async forceRelease(key: string, options: PlaceOptions & { readonly token: string }): Promise<boolean> {
    return await this.#oversight.forceRelease(key, options);
  }

  /**
   * Asks the holder of a lease to stop: its signal aborts with the reason `revoked` when it next renews. A holder
   * that does not renew does not hear of it. The lock stays closed until it is released or expires.
   *
   * Needs the token of the lease that it means, and the `place` of one that is not the lock's own. 1 request. Resolves to
   * false when another token, or none, holds the lock.
   */
  async requestRevocation(
    key: string,
    options: PlaceOptions & { readonly token: string; readonly reason?: string },
  ): Promise<boolean> {
    return await this.#oversight.requestRevocation(key, options);
  }

  async #acquire(
    key: string,
    { fair, others }: { readonly fair: FairTerms | undefined; readonly others: WaitOptions },
    mayWait: boolean,
    place: string = leaseSortKey,
  ): Promise<Lease> {
    checkKey(key);
    const terms = checkAcquireOptions(others, mayWait, this.#owner, this.#times);
    const data = checkData(terms.data);
    if (fair !== undefined) checkDataBesideQueue(data);
    terms.signal?.throwIfAborted();
    const call = { ...terms, key, place, data };
    const tenancy = await this.#acquirer.acquire(call, fair && this.#queues.approach(call, fair));
    return new Lease(this.#context, tenancy, this.#format);
  }
}
