import { slotlessOptionNames } from "../../base/check-options.ts";
import { check, checkDuration, checkKey, checkKnown, checkText } from "../../base/check-values.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import type { AcquireOptions } from "../../base/options.ts";
import { readRecord } from "../../base/record.ts";
import { leaseSortKey, limits } from "../../base/schema.ts";
import type { LeaseClient } from "../../core/client.ts";
import { type Core, coreOf } from "../../core/core.ts";
import { Lease } from "../../core/lease.ts";
import { CheckInCaller } from "./check-ins.ts";
import { checkMaxWaiters, type FairOptions, fair } from "./fair.ts";
import { type Queue, queues } from "./queue.ts";
import { estimatedWaitMs } from "./queue-estimate.ts";
import type { WaitingCaller } from "./queue-ticket.ts";
import type { QueuePosition } from "./queue-waiter.ts";

/** Options of a {@link FairLock}. */
export interface FairLockOptions extends Pick<FairOptions, "maxWaiters"> {}

/** Options of one acquisition: those of a lease, without `retry`, because the line has its own rhythm of waiting. */
export interface FairAcquireOptions
  extends Omit<AcquireOptions, "order" | "retry">,
    Pick<FairOptions, "onPosition"> {}

const acquireOptionNames: readonly (keyof FairAcquireOptions | "order")[] = [
  ...slotlessOptionNames,
  "slot",
  "waitMs",
  "onPosition",
  // Refused with its own error message.
  "order",
];

/** Options of a caller without a process of its own, which checks in now and then. */
export interface CheckInOptions {
  /**
   * The caller's identity; no other caller may have it. At most 1024 bytes; `inspect` shows the first 64 of a waiter's.
   */
  readonly owner: string;
  /**
   * How long the owner's ticket or lease lasts without another check-in. At most the client's `retentionMs`.
   * @default - the client's
   */
  readonly leaseDurationMs?: number;
  /** Whether an owner without a lease or a ticket joins the line. If false, its state is `absent`. @default true */
  readonly join?: boolean;
}

/** What an owner has after its check-in. */
export type CheckIn =
  /** It has the lock, for as long as the lease lasts. If the lease's signal has aborted, it was asked to stop: check out. */
  | { readonly state: "held"; readonly lease: Lease }
  | ({ readonly state: "waiting" } & QueuePosition)
  /** It has neither lock nor ticket: it has checked out, has checked in too late, or has never joined. */
  | { readonly state: "absent" };

/** What a look at a fair lock shows. */
export interface FairLockState {
  /** The holder; undefined when the lock is free. An expired lease that was not released is shown. */
  readonly holder: LeaseRecord | undefined;
  /** The waiting callers, in the order of their turns. */
  readonly waiting: readonly WaitingCaller[];
}

/**
 * One key's lock, acquired in the order of {@link fair}: first come, first served. It also shows the waiting callers,
 * and serves callers without a process of their own, which check in now and then.
 *
 * A caller that finds the lock held, or others waiting, gets a ticket in the lock's own item. DynamoDB numbers the
 * tickets as they arrive, so no clock decides the order. Promised, while clocks differ by no more than `clockSkewMs`:
 * everything that a lease promises. And a caller that joins later never overtakes an unexpired ticket. A waiter renews
 * its ticket. When a waiter has died, the next waiters pass its ticket some seconds after the release. A waiter that
 * was frozen for that long joins again, at the end. A release that is slow to arrive shortens the time that waiters
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
  /** How many callers may wait, as this object enforces it. */
  readonly maxWaiters: number;
  readonly #client: LeaseClient;
  readonly #core: Core;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: FairLockOptions = {}) {
    this.#core = coreOf(client);
    this.#client = client;
    this.key = checkKey(key);
    const { maxWaiters } = checkKnown(options, ["maxWaiters"], "options");
    this.maxWaiters = checkMaxWaiters(maxWaiters);
  }

  /**
   * Acquires the lock, waiting up to `waitMs` for its turn.
   *
   * 1 request while nobody holds the lock or waits for it, 2 to take over from a holder whose lease has expired.
   * Otherwise 1 more to join the line, then looks: about eight within a typical hold for the head of the line, a few in
   * all for the callers behind it. The acquiring request also removes the ticket.
   *
   * Rejects with {@link LeaseUnavailableError} when its turn has not come in time, and at once if `waitMs` is 0; with
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
   * Waits and holds without a process: each call does the owner's next step. It joins the line, renews the ticket,
   * takes the lock when the owner's turn has come, or renews the lease. For Lambda functions between two invocations,
   * for workflows, for people at a desk. Call it several times within `leaseDurationMs`, from any process.
   *
   * 2 requests, a consistent read and a write. 1 more each time the lock has changed in between, and 1 more to take
   * over an expired lease. After a lost answer, call it again: it finds what the owner has. When an owner's turn has
   * come, the lock stays free for it until it checks in or its ticket expires.
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
    const { lifecycle, times } = this.#core;
    const { join = true, leaseDurationMs = times.leaseDurationMs } = given;
    // A longer lease could outlive the item: ttl removes the item if nobody else writes it.
    checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs, times.retentionMs);
    check(typeof join === "boolean", "join", join, "true or false");
    const caller = this.#caller(given, leaseDurationMs);
    lifecycle.throwIfClosed();
    const outcome = await caller.checkIn(this.maxWaiters, join);
    if (outcome === undefined) return { state: "absent" };
    if ("lease" in outcome) return { state: "held", lease: new Lease(outcome.lease, undefined) };
    const { waiting } = outcome;
    return { state: "waiting", position: waiting.position, estimatedWaitMs: estimatedWaitMs(waiting) };
  }

  /**
   * Gives up what an owner has by its check-ins: the lock, or its ticket.
   *
   * 2 requests; 1 if the owner has neither. Resolves to whether it had any. Rejects with LeaseServiceError
   * (`LEASE_CONFLICT`) if a concurrent check-in of the same owner has got or renewed the lock: call it again to give
   * that up, too. If a check-out gets no answer, repeat it before the owner checks in again: the first one may arrive
   * late, and end what the owner has got since.
   */
  async checkOut(options: Pick<CheckInOptions, "owner">): Promise<boolean> {
    return await this.#caller(checkKnown(options, ["owner"], "options"), 0).checkOut();
  }

  /** Reads the holder and the waiting callers. 1 consistent read. */
  async inspect(): Promise<FairLockState> {
    const queue = this.#queue;
    const item = await queue.look({}, true);
    const living = queue.living(queue.see(item).tickets);
    const waiting = living.map(({ owner, since }, index) => ({ owner, since, position: index + 1 }));
    return { holder: readRecord(item), waiting };
  }

  get #queue(): Queue {
    return queues.of(this.#core, this.key, leaseSortKey);
  }

  #caller({ owner }: Pick<CheckInOptions, "owner">, leaseMs: number): CheckInCaller {
    const name = checkText("owner", owner, limits.ownerBytes);
    return new CheckInCaller(this.#core, this.#queue, name, leaseMs);
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
