import type { LeaseClient } from "../client.ts";
import type { Lease } from "../lease.ts";
import { runUnder } from "../lease.ts";
import { slotlessOptionNames } from "../options/check-options.ts";
import { check, checkKnown, checkWork, isWhole } from "../options/check-values.ts";
import type { HoldOptions, WaitOptions } from "../options/options.ts";
import { unordered } from "../protocol/wait-loop.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import type { LeaseRecord } from "../record.ts";
import { seatLimits, seatSortKeys } from "../seats/schema.ts";
import { takenBy } from "../seats/seat.ts";
import { orUndefined, SeatItem, type SeatRule } from "../seats/seat-item.ts";

/** The most permits that a semaphore can have. */
export const mostPermits: number = seatLimits.mostSeats;

/** Options of a {@link Semaphore}. */
export interface SemaphoreOptions {
  /**
   * How many permits may be held at once. From 0 to 1000; with 0 nobody gets in by this object, and the holders finish.
   * Its callers wait outside the line of an `order`. Callers may have different numbers: see {@link Semaphore}.
   */
  readonly permits: number;
  /**
   * In which order callers that wait are let in: `fair()` of `@leasehold/client/fair`, or none. Callers whose objects
   * have no order overtake the callers that wait in one. @default - none
   */
  readonly order?: WaitOrder;
}

/** Options of one acquisition that does not wait: a lease's, without `slot`. */
export interface TryPermitOptions extends Omit<HoldOptions, "slot"> {
  /**
   * How many permits the lease takes, all of them or none. From 1 to the semaphore's number. A `reentrant` owner
   * takes 1. @default 1
   */
  readonly permits?: number;
}

/** Options of one acquisition: a lease's, without `slot`. */
export interface PermitOptions extends TryPermitOptions, Pick<WaitOptions, "waitMs" | "retry"> {}

/** Options of {@link Semaphore.drain}. */
export type DrainOptions = Pick<WaitOptions, "waitMs" | "retry" | "signal">;

const permitOptionNames: readonly (keyof TryPermitOptions)[] = [...slotlessOptionNames, "permits"];

/** How many permits others may have for a caller to be let in. */
export const permitBounds: SeatRule["bounds"] = ({ permits, capacity = mostPermits }) => ({
  permit: capacity - permits,
});

/** What a look at a semaphore shows. */
export interface SemaphoreState {
  /** How many permits this object gives. */
  readonly permits: number;
  /**
   * Every lease that has not been released, in the order in which they were acquired: also one that has expired, one that
   * is in its cooldown (`lockAtLeastForMs`), and an operator's pause (`pause`). `seat.permits` tells how many permits it
   * takes.
   */
  readonly held: readonly LeaseRecord[];
  /** How many permits can be taken now: the permits that no lease takes, and those of expired leases. */
  readonly free: number;
}

/**
 * Lets callers hold at most N permits at once.
 *
 * One item counts all permits of a key. Each lease takes one or more of them; it has its own token, deadline, heartbeat
 * and fencing token, and is taken over when it has expired. Promised, while clocks differ by
 * no more than `clockSkewMs`: after every acquisition at most N permits are held by unexpired leases, N being that
 * caller's number; fencing tokens grow over all holders. Not promised, unless it has an `order`: an order among the
 * callers that wait.
 *
 * N may differ between callers, as while it is being changed: each acquisition counts all that is held. After N was
 * lowered from 5 to 3 while 5 are held, callers with 3 get nothing until 3 have been released.
 * An operator's pause of the key keeps everybody out, whatever their N; {@link Semaphore.drain} waits until the holders
 * have finished. A lock or a ReadWriteLock of the same key does not exclude permits: use a key for one kind.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError, LeaseServiceError, and with LeaseItemError where another program has written the item.
 *
 * ```ts
 * const reports = new Semaphore(client, "report-database", { permits: 5 });
 * await reports.withPermit({ waitMs: 10_000, heartbeat: true }, async (lease) => {
 *   await runReport({ signal: lease.signal });
 * });
 * ```
 */
export class Semaphore {
  /** The key that its item is under. */
  readonly key: string;
  /** How many permits may be held at once, as this object sees it. */
  readonly permits: number;
  readonly #item: SeatItem;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: SemaphoreOptions) {
    const { permits, order } = checkKnown(options, ["permits", "order"], "options");
    const isInRange = isWhole(permits) && permits <= mostPermits;
    check(isInRange, "permits", permits, `a whole number from 1 to ${mostPermits}, or 0 for a pause`);
    this.#item = new SeatItem(client, key, seatSortKeys.semaphore, order);
    this.key = key;
    this.permits = permits;
  }

  /**
   * Acquires `permits` of them, 1 by default, waiting up to `waitMs` until so many are free.
   *
   * 1 request where they are free, 2 where expired leases take them; while it waits, reads. `reentrant` lets the same owner
   * in again: without a request where this client holds its lease, and by a takeover where another one does.
   *
   * Rejects with {@link LeaseUnavailableError}, which tells of the lease whose end would have let it in, and with
   * LeaseAbortedError when the signal aborts. In every case of failure nothing stays held.
   */
  async acquire(options: PermitOptions = {}): Promise<Lease> {
    return await this.#acquire(options, true);
  }

  /** Like {@link Semaphore.acquire}, but never waits, and gives undefined when too few permits are free. */
  async tryAcquire(options: TryPermitOptions = {}): Promise<Lease | undefined> {
    return await orUndefined(this.#acquire(options, false));
  }

  /**
   * Acquires permits, runs the work, and releases them whether the work succeeds or fails.
   *
   * Resolves to the work's result if the lease lasted until its end, or was revoked. Otherwise more than N may have been at
   * work, and it rejects with LeaseLostError: also where only the release shows that the lease was broken. The work's own
   * error comes first. A release that fails does not hide the result: the permits become free when the lease ends.
   */
  async withPermit<T>(options: PermitOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.acquire(options), work);
  }

  /**
   * Waits until nobody holds a permit: every lease has been released or has expired, and every cooldown has ended. It
   * keeps nobody out: callers that come in the meantime get in, unless an operator has paused the key.
   *
   * Consistent reads at first and at last, in between reads that may lag, in the rhythm of `retry`. Rejects with
   * {@link LeaseUnavailableError}, which tells of the lease that may last longest, when it is not empty within `waitMs`;
   * and with LeaseAbortedError.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    await this.#item.untilFree({ kind: "permit", permits: 0, capacity: 0, bounds: permitBounds }, options);
  }

  /** Reads who holds permits. 1 consistent read. */
  async inspect(): Promise<SemaphoreState> {
    const { seats, standing } = await this.#item.look();
    const free = Math.max(0, this.permits - takenBy(standing, "permit"));
    return { permits: this.permits, held: seats, free };
  }

  async #acquire(options: PermitOptions, mayWait: boolean): Promise<Lease> {
    const call = this.#item.checkCall(options, permitOptionNames, mayWait);
    const { permits, reentrant } = call;
    // While it is paused, any number is refused in the same way.
    const most = reentrant ? 1 : this.permits || mostPermits;
    const allowed = `a whole number from 1 to ${most}${reentrant ? ", beside reentrant" : ""}`;
    check(isWhole(permits) && permits >= 1 && permits <= most, "permits", permits, allowed);
    const rule: SeatRule = { kind: "permit", permits, capacity: this.permits, bounds: permitBounds };
    // No turn of a paused caller ever comes: in line it would only keep the others out.
    return await this.#item.acquire(call, rule, this.permits === 0 ? unordered : undefined);
  }
}
