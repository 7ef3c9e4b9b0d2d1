import type { LeaseClient } from "../client.ts";
import { type ClientInternals, internalsOf } from "../client-internals.ts";
import { Lease } from "../lease.ts";
import { slotlessOptionNames } from "../options/check-options.ts";
import { check, checkDuration, checkKey, checkKnown, checkText } from "../options/check-values.ts";
import type { AcquireOptions } from "../options/options.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { leaseSortKey, limits } from "../schema.ts";
import { CheckInCaller } from "./check-ins.ts";
import { checkMaxWaiters, type FairOptions, fair, type QueuePosition } from "./fair.ts";
import { type Queue, queues } from "./queue.ts";
import { estimatedWaitMs } from "./queue-estimate.ts";
import type { WaitingCaller } from "./queue-ticket.ts";

/** Options of a {@link FairLock}. */
export interface FairLockOptions extends Pick<FairOptions, "maxWaiters"> {}

/** Options of one acquisition: a lease's, without `retry`, for the line has its own rhythm of waiting. */
export interface FairAcquireOptions
  extends Omit<AcquireOptions, "order" | "retry">,
    Pick<FairOptions, "onPosition"> {}

const acquireOptionNames: readonly (keyof FairAcquireOptions | "order")[] = [
  ...slotlessOptionNames,
  "slot",
  "waitMs",
  "onPosition",
  // Refused with a reason of its own.
  "order",
];

/** Options of a caller without a process of its own, which checks in now and then. */
export interface CheckInOptions {
  /** The caller's identity, which no other caller has. At most 1024 bytes; `inspect` shows the first 64 of a waiter's. */
  readonly owner: string;
  /**
   * How long its ticket, or its lease, lasts without another check-in. At most the client's `retentionMs`.
   * @default - the client's
   */
  readonly leaseDurationMs?: number;
  /** Whether an owner that has neither joins the line. If false, its state is `absent`. @default true */
  readonly join?: boolean;
}

/** What an owner has after its check-in. */
export type CheckIn =
  /** It has the lock, for as long as the lease lasts. If the lease's signal has aborted, it was asked to stop: check out. */
  | { readonly state: "held"; readonly lease: Lease }
  | ({ readonly state: "waiting" } & QueuePosition)
  /** It has nothing: it checked out, checked in too late, or has never joined. */
  | { readonly state: "absent" };

/** What a look at a fair lock shows. */
export interface FairLockState {
  /** Who holds it; undefined when nobody does. A lease that expired and was not released is shown. */
  readonly holder: LeaseRecord | undefined;
  /** The callers that wait, in the order of their turns. */
  readonly waiting: readonly WaitingCaller[];
}

/**
 * One key's lock, acquired in the order of {@link fair}: first come, first served. It also shows who waits, and it serves
 * callers without a process of their own, which check in now and then.
 *
 * A caller that finds the lock held, or others waiting, gets a ticket in the lock's own item. DynamoDB numbers the tickets
 * as they arrive, so no clock decides the order. Promised, while clocks differ by no more than `clockSkewMs`: everything
 * that a lease promises; and a caller that joins later never overtakes a ticket that has not expired. A waiter renews its
 * ticket. When a waiter has died, the next ones pass its ticket some seconds after the lock was released. A waiter that was
 * frozen for as long joins again, at the end. A release that is slow to arrive shortens the time that waiters
 * have to show that they are alive. Mutual exclusion rests on the lease alone.
 *
 * It is the same lock that `client.acquire` of its key takes. Callers without the order do not wait in line: they overtake it.
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
   * 1 request while nobody holds the lock or waits for it, 2 to take over from a holder whose lease has expired. Otherwise
   * 1 more to join the line, then looks: about eight within a typical hold for the head of the line, a few in all for the
   * callers behind it. The request that acquires the lock removes the ticket, too.
   *
   * Rejects with {@link LeaseUnavailableError} when its turn has not come in time, and at once where `waitMs` is 0; with
   * {@link QueueFullError} when the line is full; and with LeaseAbortedError when the signal aborts. In every case of
   * failure nothing stays held, and the ticket is given up in the background.
   */
  async acquire(options: FairAcquireOptions = {}): Promise<Lease> {
    return await this.#client.acquire(this.key, this.#inOrder(options));
  }

  /** As `client.withLease`, in its turn: releases the lock whether the work succeeds or fails. */
  async withLease<T>(options: FairAcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    return await this.#client.withLease(this.key, this.#inOrder(options), work);
  }

  /**
   * Waits and holds without a process: does the next step for this owner. It joins the line, renews the ticket, takes the
   * lock when the owner's turn has come, or renews the lease. For Lambda functions between two invocations, for workflows,
   * for people at a desk. Call it several times within `leaseDurationMs`, from any process.
   *
   * 2 requests, a consistent read and a write. 1 more each time that the lock has changed in between, and to take over from
   * a holder whose lease has expired. After a lost answer, call it again: it finds what the owner has. When an owner's turn
   * has come, the lock stays free for it until it checks in or its ticket expires.
   *
   * Rejects with {@link QueueFullError} when the line is full.
   *
   * ```ts
   * const desk = new FairLock(client, "desk/loans", { maxWaiters: 10 });
   * const visit = await desk.checkIn({ owner: "ticket-17", leaseDurationMs: 60_000 });
   * if (visit.state === "waiting") console.log(`number ${visit.position} in line`);
   * if (visit.state === "held") console.log(`in service under ${visit.lease.fencingToken}`);
   * ```
   */
  async checkIn(options: CheckInOptions): Promise<CheckIn> {
    const given = checkKnown(options, ["owner", "leaseDurationMs", "join"], "options");
    const { context, format, times } = this.#internals;
    const { join = true, leaseDurationMs = times.leaseDurationMs } = given;
    // A longer one could outlive the item: ttl removes it, if nobody else writes it.
    checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs, times.retentionMs);
    check(typeof join === "boolean", "join", join, "true or false");
    const caller = this.#caller(given, leaseDurationMs);
    context.lifecycle.throwIfClosed();
    const outcome = await caller.checkIn(this.maxWaiters, join);
    if (outcome === undefined) return { state: "absent" };
    if ("lease" in outcome)
      return { state: "held", lease: new Lease(context, outcome.lease, format, undefined) };
    const { waiting } = outcome;
    return { state: "waiting", position: waiting.position, estimatedWaitMs: estimatedWaitMs(waiting) };
  }

  /**
   * Gives up what an owner has by its check-ins: the lock, or its ticket.
   *
   * 2 requests; 1 where there is nothing to give up. Resolves to whether there was anything. Rejects with LeaseServiceError
   * (`LEASE_CONFLICT`) where the same owner has checked in at the same time and has got or renewed the lock: call it again
   * to give that up, too. After a check-out without an answer, repeat it before the owner checks in again: the first one
   * may arrive late, and end what the owner has got since.
   */
  async checkOut(options: Pick<CheckInOptions, "owner">): Promise<boolean> {
    return await this.#caller(checkKnown(options, ["owner"], "options"), 0).checkOut();
  }

  /** Reads who holds the lock, and who waits for it. 1 consistent read. */
  async inspect(): Promise<FairLockState> {
    const queue = this.#queue;
    const item = await queue.look({}, true);
    const living = queue.living(queue.see(item).tickets);
    const waiting = living.map(({ owner, since }, index) => ({ owner, since, position: index + 1 }));
    return { holder: readRecord(item), waiting };
  }

  get #queue(): Queue {
    return queues.of(this.#internals.context, this.key, leaseSortKey);
  }

  #caller({ owner }: Pick<CheckInOptions, "owner">, leaseMs: number): CheckInCaller {
    const name = checkText("owner", owner, limits.ownerBytes);
    return new CheckInCaller(this.#internals.context, this.#queue, name, leaseMs);
  }

  #inOrder(options: FairAcquireOptions): AcquireOptions {
    const { onPosition, order, ...given } = checkKnown<FairAcquireOptions & AcquireOptions>(
      options,
      acquireOptionNames,
      "options",
    );
    check(order === undefined, "options.order", order, "nothing: the lock has its own");
    return { ...given, order: fair({ maxWaiters: this.maxWaiters, ...(onPosition && { onPosition }) }) };
  }
}
