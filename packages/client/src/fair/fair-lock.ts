import type { LeaseClient } from "../client.ts";
import { fairLock } from "../expressions-fair.ts";
import { type ClientInternals, internalsOf } from "../internals.ts";
import { Lease } from "../lease.ts";
import { Acquisition, type Granted } from "../protocol/acquisition.ts";
import { callStore } from "../protocol/context.ts";
import { Heartbeat } from "../protocol/heartbeat.ts";
import { Reentrance } from "../protocol/reentrance.ts";
import { Tenancy } from "../protocol/tenancy.ts";
import type { LeaseRecord } from "../record.ts";
import { fairPlace } from "../schema-fair.ts";
import { checkKey, checkWork } from "../validation.ts";
import { Company } from "./company.ts";
import {
  checkFairLockOptions,
  checkFairOptions,
  type FairAcquireOptions,
  type FairLockOptions,
  type FairTerms,
} from "./options.ts";
import { typicalAfter, typicalHold } from "./queue.ts";
import { TurnStore } from "./turn-store.ts";
import { Waiter } from "./waiter.ts";

/** One who waits, as a look shows it. */
export interface WaitingCaller {
  /** Its owner label, cut to 64 bytes. */
  readonly owner: string;
  /** When it came, in epoch milliseconds of its own clock. */
  readonly since: number;
  /** 1 for the one whose turn comes next. */
  readonly place: number;
}

/** What a look at a fair lock shows. */
export interface FairLockState {
  /** Who holds it; undefined when nobody does. A lease that expired and was not released is shown. */
  readonly holder: LeaseRecord | undefined;
  /** Those who wait, in the order of their turns. */
  readonly waiting: readonly WaitingCaller[];
}

/**
 * A lock that is given to those who wait in the order in which they came.
 *
 * Whoever finds the lock held, or finds others waiting, joins a queue in the lock's own item. The order is the order in
 * which DynamoDB took the joinings in: no clock has a part in it. Promised, while clocks differ by no more than
 * `clockSkewMs`: everything that a lease promises; and that nobody who comes later is let in before a waiter whose
 * place stands. A place is prolonged by its waiter and lapses some seconds after a waiter has died, which is then
 * passed over. One that was only frozen for that long joins anew, at the end. Where clocks differ by more, or one
 * jumps, the order may suffer; mutual exclusion rests on the lease alone.
 *
 * A fair lock is not the same lock as `client.acquire` of its key, which knows of no queue: all callers have to use a
 * FairLock. Make one object for each key and keep it: the callers of one process wait together, and share their looks.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError and LeaseServiceError.
 *
 * ```ts
 * const printer = new FairLock(client, "label-printer", { maxWaiters: 50 });
 * await printer.withLease({ waitMs: 60_000, heartbeat: true }, async (lease) => {
 *   await printLabels({ signal: lease.signal });
 * });
 * ```
 */
export class FairLock {
  /** The key that the lock and its queue are under. */
  readonly key: string;
  /** How many may wait, as this object sees it. */
  readonly maxWaiters: number;
  readonly #client: ClientInternals;
  readonly #company: Company;
  readonly #heartbeat: Heartbeat;
  readonly #reentrance = new Reentrance();

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: FairLockOptions = {}) {
    const made = internalsOf(client);
    this.key = checkKey(key);
    this.maxWaiters = checkFairLockOptions(options).maxWaiters;
    this.#client = made;
    this.#company = new Company(made.context, this.key);
    this.#heartbeat = new Heartbeat(made.context);
  }

  /**
   * Acquires the lock, waiting up to `waitMs` for its turn.
   *
   * 1 request while nobody holds the lock or waits for it, 2 to take over from a holder whose time is over. Else 1 more
   * to join the queue, and then looks: the head of the queue some eight times within a typical hold, those behind it a
   * handful of times in their whole wait; 1 request to acquire, which removes the place too.
   *
   * Rejects with {@link LeaseUnavailableError} when its turn has not come in time, and at once where `waitMs` is 0;
   * with {@link QueueFullError} when as many wait as may; and with the signal's reason when that aborts. In every case
   * of failure nothing stays held, and its place is given up in the background.
   */
  async acquire(options: FairAcquireOptions = {}): Promise<Lease> {
    const terms = checkFairOptions(options, this.#client);
    terms.signal?.throwIfAborted();
    const place = { key: this.key, place: fairPlace, owner: terms.owner };
    const tenancy = terms.reentrant
      ? await this.#reentrance.enter(place, () => this.#win(terms))
      : await this.#win(terms);
    return new Lease(this.#client.context, tenancy, this.#client.format);
  }

  /**
   * Acquires the lock, runs the work, and releases the lock whatever becomes of the work.
   *
   * Resolves to the work's result if the lease protected it to its end, or was revoked; rejects with LeaseLostError if
   * it did not, for then the work may have overlapped another holder's. The work's own error comes first. A release
   * that fails does not hide the result: the lock frees itself when the lease ends.
   */
  async withLease<T>(options: FairAcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    const lease = await this.acquire(options);
    try {
      const result = await work(lease);
      const { loss } = lease;
      if (loss !== undefined && loss.reason !== "revoked") throw loss;
      return result;
    } finally {
      await lease.release().catch(() => false);
    }
  }

  /** Reads who holds the lock, and who waits for it. 1 consistent read. */
  async inspect(): Promise<FairLockState> {
    const request = fairLock(this.key, true);
    const item = await callStore(this.#client.context, (store, call) => store.get(request, call));
    const { observer } = this.#company;
    const { record, places } = observer.see(item);
    const living = places.filter((place) => observer.lapses.lapsesIn(place) > 0);
    const waiting = living.map(({ owner, since }, index) => ({ owner, since, place: index + 1 }));
    return { holder: record, waiting };
  }

  async #win(terms: FairTerms): Promise<Tenancy> {
    const { key, maxWaiters } = this;
    const { context: shared } = this.#client;
    const { owner, leaseDurationMs, reentrant, data, lockAtLeastForMs, heartbeatMs } = terms;
    const startedAt = shared.clock.monotonic();
    const store = new TurnStore(shared.store, reentrant ? owner : undefined);
    const context = { ...shared, store };
    const request = { key, place: fairPlace, owner, leaseDurationMs, reentrant, data, slot: undefined };
    const acquisition = new Acquisition(context, this.#company.observer.judge, request);
    const company = this.#company;
    let isContended = false;
    const onContended = ({ owner: holder, expiresAt, closed }: LeaseRecord): void => {
      if (!isContended) shared.publish({ type: "contended", key, owner, holder, expiresAt, closed });
      isContended = true;
    };
    const parts = { key, maxWaiters, context: shared, store, company, acquisition, terms, onContended };
    const granted = await new Waiter(parts).grant();

    const { record, since } = granted;
    const typicalMs = typicalHold(store.lastItem);
    store.typicalMs = () => {
      const heldMs = Math.max(shared.clock.monotonic() - since.monotonic, lockAtLeastForMs);
      return typicalAfter(typicalMs, heldMs);
    };
    store.onReleased = () => company.released();
    const closedUntil = lockAtLeastForMs > 0 ? record.acquiredAt + lockAtLeastForMs : undefined;
    const tenancy = new Tenancy(context, { record, leaseDurationMs, closedUntil, slot: undefined }, since);
    if (heartbeatMs !== undefined) this.#heartbeat.start(tenancy, heartbeatMs);
    this.#announce(granted, shared.clock.monotonic() - startedAt);
    return tenancy;
  }

  #announce({ record, takeover }: Granted, waitedMs: number): void {
    const { key, owner, fencingToken, expiresAt } = record;
    const { publish } = this.#client.context;
    if (takeover !== undefined) {
      const { ground, from: before } = takeover;
      const from = { owner: before.owner, fencingToken: before.fencingToken, expiresAt: before.expiresAt };
      publish({ type: "takeover", key, owner, fencingToken, ground, from });
    }
    publish({ type: "acquired", key, owner, fencingToken, waitedMs: Math.round(waitedMs), expiresAt });
  }
}
