import type { LeaseClient } from "../client.ts";
import { type ClientInternals, internalsOf } from "../client-internals.ts";
import type { Lease } from "../lease.ts";
import { check, checkKey, checkKnown } from "../options/check-values.ts";
import type { AcquireOptions } from "../options/options.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { leaseSortKey } from "../schema.ts";
import { type CheckIn, type CheckInOptions, CheckIns } from "./check-ins.ts";
import { checkMaxWaiters, type FairOptions, fair } from "./fair.ts";
import { type Queue, queues } from "./queue.ts";
import type { WaitingCaller } from "./queue-ticket.ts";

/** Options of a {@link FairLock}. */
export interface FairLockOptions extends Pick<FairOptions, "maxWaiters"> {}

/** Options of one acquisition: a lease's, without `retry`, for a fair lock has a rhythm of waiting of its own. */
export interface FairAcquireOptions
  extends Omit<AcquireOptions, "order" | "retry">,
    Pick<FairOptions, "onPosition"> {}

/** What a look at a fair lock shows. */
export interface FairLockState {
  /** Who holds it; undefined when nobody does. A lease that expired and was not released is shown. */
  readonly holder: LeaseRecord | undefined;
  /** Those who wait, in the order of their turns. */
  readonly waiting: readonly WaitingCaller[];
}

/**
 * A lock that is given to those who wait in the order in which they came: `client.acquire` with `fair: true` of one key,
 * and what more there is to ask of its queue.
 *
 * Whoever finds the lock held, or finds others waiting, joins a queue in the lock's own item. The order is the order in
 * which DynamoDB took the joinings in: no clock has a part in it. Promised, while clocks differ by no more than
 * `clockSkewMs`: everything that a lease promises; and that no fair caller who comes later is let in before a waiter
 * whose place stands. A place is prolonged by its waiter and lapses some seconds after a waiter has died, which is then
 * passed over. One that was only frozen for that long joins anew, at the end. Where clocks differ by more, or one
 * jumps, the order may suffer; mutual exclusion rests on the lease alone.
 *
 * It is the very lock that `client.acquire` of its key takes: callers that do not ask for `fair` keep out of each
 * other's way all the same, but are let in past the queue.
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
  /** The lock's key. */
  readonly key: string;
  /** How many may wait, as this object sees it. */
  readonly maxWaiters: number;
  readonly #client: LeaseClient;
  readonly #internals: ClientInternals;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: FairLockOptions = {}) {
    this.#internals = internalsOf(client);
    this.#client = client;
    this.key = checkKey(key);
    const { maxWaiters } = checkKnown(options, ["maxWaiters"], "options");
    this.maxWaiters = checkMaxWaiters(maxWaiters);
  }

  /**
   * Acquires the lock, waiting up to `waitMs` for its turn.
   *
   * 1 request while nobody holds the lock or waits for it, 2 to take over from a holder whose time is over. Else 1 more
   * to join the queue, and then looks: the head of the queue some eight times within a typical hold, those behind it a
   * handful of times in their whole wait; 1 request to acquire, which removes the place too.
   *
   * Rejects with {@link LeaseUnavailableError} when its turn has not come in time, and at once where `waitMs` is 0;
   * with {@link QueueFullError} when as many wait as may; and with LeaseAbortedError when the signal aborts. In every case
   * of failure nothing stays held, and its place is given up in the background.
   */
  async acquire(options: FairAcquireOptions = {}): Promise<Lease> {
    return await this.#client.acquire(this.key, this.#inOrder(options));
  }

  /** As `client.withLease`, in its turn: releases the lock whatever becomes of the work. */
  async withLease<T>(options: FairAcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    return await this.#client.withLease(this.key, this.#inOrder(options), work);
  }

  /**
   * Waits and holds without a thread: joins the queue, keeps a place in it, takes the lock when the turn has come, and
   * renews the lease, whatever is due for this owner. For Lambda functions between two invocations, for workflows, for
   * people at a desk. Call it several times within `leaseDurationMs`, from any process.
   *
   * 2 requests, a consistent read and a write; 1 more for each time that the lock has changed in between, and to take
   * over from a holder whose time is over. A caller whose answer was lost calls again and finds what it has. The turn
   * of an owner comes only when it checks in: until then, or until its place has lapsed, the lock stays free for it.
   *
   * Rejects with {@link QueueFullError} when as many wait as may.
   *
   * ```ts
   * const desk = new FairLock(client, "desk/loans", { maxWaiters: 10 });
   * const visit = await desk.checkIn({ owner: "ticket-17", leaseDurationMs: 60_000 });
   * if (visit.state === "waiting") console.log(`number ${visit.position} in line`);
   * if (visit.state === "held") console.log(`in service under ${visit.lease.fencingToken}`);
   * ```
   */
  async checkIn(options: CheckInOptions): Promise<CheckIn> {
    return await this.#checkIns.checkIn(options, this.maxWaiters);
  }

  /**
   * Gives up what an owner has by its check-ins: the lock, or its place in the queue.
   *
   * 2 requests; 1 where there is nothing to give up. Resolves to whether there was. Rejects with LeaseServiceError
   * (`LEASE_CONFLICT`) where the same owner has checked in meanwhile and has got or renewed the lock: call it again if it
   * is to go all the same. Repeat one that was not answered before its owner checks in anew: it may yet end what that has got.
   */
  async checkOut(options: Pick<CheckInOptions, "owner">): Promise<boolean> {
    return await this.#checkIns.checkOut(options);
  }

  /** Reads who holds the lock, and who waits for it. 1 consistent read. */
  async inspect(): Promise<FairLockState> {
    const queue = this.#queue;
    const item = await queue.look({}, true);
    const living = queue.see(item).tickets.filter((ticket) => queue.isLiving(ticket));
    const waiting = living.map(({ owner, since }, index) => ({ owner, since, position: index + 1 }));
    return { holder: readRecord(item), waiting };
  }

  get #queue(): Queue {
    return queues.of(this.#internals.context, this.key, leaseSortKey);
  }

  get #checkIns(): CheckIns {
    return new CheckIns(this.#internals, this.#queue);
  }

  #inOrder({ onPosition, ...options }: FairAcquireOptions): AcquireOptions {
    check(!("order" in options), "options.order", "an order", "nothing: the lock has its own");
    return { ...options, order: fair({ maxWaiters: this.maxWaiters, ...(onPosition && { onPosition }) }) };
  }
}
