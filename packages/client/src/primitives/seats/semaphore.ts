import { slotlessOptionNames } from "../../base/check-options.ts";
import { check, checkKnown, checkWork } from "../../base/check-values.ts";
import type { LeaseHandle } from "../../base/handle.ts";
import { isWhole } from "../../base/item-values.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import type { HoldOptions, WaitOptions, WaitOrder } from "../../base/options.ts";
import type { LeaseClient } from "../../core/client.ts";
import { type Lease, runUnder } from "../../core/lease.ts";
import { unordered } from "../../core/wait-loop.ts";
import { seatLimits, seatSortKeys, takenBy } from "./seat.ts";
import { orUndefined, SeatItem, type SeatRule } from "./seat-item.ts";

/** The most permits that a semaphore can have. */
export const mostPermits: number = seatLimits.mostSeats;

/** Options of a {@link Semaphore}. */
export interface SemaphoreOptions {
  /**
   * How many permits may be held at once. From 0 to 1000. With 0 this object admits nobody, and the holders finish; its
   * callers wait outside the line of an `order`. Callers may have different numbers: see {@link Semaphore}.
   */
  readonly permits: number;
  /**
   * The order in which waiting callers get permits: `fair()` of `@leasehold/client/fair`, or none. Callers whose
   * objects have no order overtake callers that wait in one.
   * @default - none
   */
  readonly order?: WaitOrder;
}

/** Options of one acquisition that does not wait: a lease's, without `slot`. */
export interface TryPermitOptions extends Omit<HoldOptions, "slot"> {
  /**
   * How many permits the lease takes, all or none. From 1 to the semaphore's number. A `reentrant` owner takes 1.
   * @default 1
   */
  readonly permits?: number;
}

/** Options of one acquisition: a lease's, without `slot`. */
export interface PermitOptions extends TryPermitOptions, Pick<WaitOptions, "waitMs" | "retry"> {}

/** Options of {@link Semaphore.drain}. */
export type DrainOptions = Pick<WaitOptions, "waitMs" | "retry" | "signal">;

const permitOptionNames: readonly (keyof TryPermitOptions)[] = [...slotlessOptionNames, "permits"];

/** The most permits that others may hold if this caller is to be admitted. */
export const permitLimits: SeatRule["limits"] = ({ permits, capacity = mostPermits }) => ({
  permit: capacity - permits,
});

/** The state of a semaphore. */
export interface SemaphoreState {
  /** How many permits this object gives. */
  readonly permits: number;
  /**
   * Every unreleased lease, in the order of acquisition. These include expired leases, leases in their cooldown
   * (`lockAtLeastForMs`), and an operator's pause (`pause`). `seat.permits` is the number of permits that a lease
   * takes.
   */
  readonly held: readonly LeaseRecord[];
  /** How many permits can be taken now: those that no lease takes, and those of expired leases. */
  readonly free: number;
}

/**
 * Lets callers hold at most N permits at once.
 *
 * One item counts all permits of a key. Each lease takes one or more of them. It has its own token, deadline, heartbeat
 * and fencing token, and others take it over after its expiry. Promised, while clocks differ by no more than
 * `clockSkewMs`: after every acquisition at most N permits are held by unexpired leases, N being that caller's number;
 * fencing tokens grow over all holders. Not promised without an `order`: an order among the waiting callers.
 *
 * N may differ between callers, for example during a change: each acquisition counts all held permits. After N was
 * lowered from 5 to 3 while 5 are held, callers with 3 get nothing until 3 have been released. An operator's pause of
 * the key keeps all callers out, whatever their N; {@link Semaphore.drain} waits until the holders have finished. A
 * lock or a ReadWriteLock of the same key does not exclude permits: use a key for one kind.
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
  /** The key of its item. */
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
   * Acquires `permits` permits, 1 by default, waiting up to `waitMs` until that many are free.
   *
   * 1 request if they are free, 2 if expired leases take them; while it waits, reads. `reentrant` admits the same owner
   * again: without a request if this client holds its lease, or by a takeover if another client does.
   *
   * Rejects with {@link LeaseUnavailableError}, which names the lease whose end would have admitted the caller, and
   * with LeaseAbortedError when the signal aborts. In every case of failure nothing stays held.
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
   * Resolves to the work's result if the lease lasted until its end, or was revoked. Otherwise more than N holders may
   * have worked at the same time, and it rejects with LeaseLostError; also if only the release shows that the lease was
   * broken. The work's own error comes first. A release that fails does not hide the result: the permits become free
   * when the lease ends.
   */
  async withPermit<T>(options: PermitOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.acquire(options), work);
  }

  /**
   * Adopts permits from another process's `lease.toJSON()`, as `client.adopt` does a lock. Sends nothing; the first
   * renewal or release reads the item before, 1 request more: what the lease takes comes from the table, not from the
   * handle. Throws InvalidOptionsError for a handle of another key or kind.
   *
   * ```ts
   * const reports = new Semaphore(client, "report-database", { permits: 5 });
   * await using permit = await reports.acquire();
   * const elsewhere = reports.adopt(JSON.parse(JSON.stringify(permit)), { heartbeat: true });
   * await elsewhere.renew();
   * ```
   */
  adopt(handle: LeaseHandle, options: Pick<HoldOptions, "heartbeat"> = {}): Lease {
    return this.#item.adopt(handle, options);
  }

  /**
   * Waits until nobody holds a permit: every lease has been released or has expired, and every cooldown has ended. It
   * does not keep callers out: new callers get permits meanwhile, unless an operator has paused the key.
   *
   * The first and the last read are consistent; reads in between may lag, in the rhythm of `retry`. Rejects with
   * {@link LeaseUnavailableError}, which names the lease that may last longest, when it is not empty within `waitMs`;
   * and with LeaseAbortedError.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    await this.#item.untilFree({ kind: "permit", permits: 0, capacity: 0, limits: permitLimits }, options);
  }

  /** Reads the holders of permits. 1 consistent read. */
  async inspect(): Promise<SemaphoreState> {
    const { seats, unexpired } = await this.#item.look();
    const free = Math.max(0, this.permits - takenBy(unexpired, "permit"));
    return { permits: this.permits, held: seats, free };
  }

  async #acquire(options: PermitOptions, mayWait: boolean): Promise<Lease> {
    const call = this.#item.checkCall(options, permitOptionNames, mayWait);
    const { permits, reentrant } = call;
    // A semaphore with 0 permits refuses any number in the same way.
    const most = reentrant ? 1 : this.permits || mostPermits;
    const allowed = `a whole number from 1 to ${most}${reentrant ? ", beside reentrant" : ""}`;
    check(isWhole(permits) && permits >= 1 && permits <= most, "permits", permits, allowed);
    const rule: SeatRule = { kind: "permit", permits, capacity: this.permits, limits: permitLimits };
    // A caller of a semaphore with 0 permits never gets a turn: in line it would only keep the others out.
    return await this.#item.acquire(call, rule, this.permits === 0 ? unordered : undefined);
  }
}
