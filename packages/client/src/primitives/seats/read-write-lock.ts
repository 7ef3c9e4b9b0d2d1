import { brandClass } from "../../base/brand.ts";
import { checkHeartbeat, slotlessOptionNames } from "../../base/check-options.ts";
import { checkKnown, checkWork } from "../../base/check-values.ts";
import { LeaseError, quoted } from "../../base/errors.ts";
import type { LeaseEvent } from "../../base/events.ts";
import type { LeaseHandle } from "../../base/handle.ts";
import type { LeaseRecord, SeatKind } from "../../base/lease-record.ts";
import type { HoldOptions, WaitOptions, WaitOrder } from "../../base/options.ts";
import { acquireLease } from "../../core/acquire.ts";
import { inBackground } from "../../core/attempt.ts";
import type { LeaseClient } from "../../core/client.ts";
import type { Core } from "../../core/core.ts";
import type { HeldLease } from "../../core/held-lease.ts";
import { type Lease, runUnder } from "../../core/lease.ts";
import type { Order } from "../../core/order.ts";
import { unordered } from "../../core/wait-loop.ts";
import { seatLimits, seatSortKeys } from "./seat.ts";
import type { SeatForm, SeatLimits } from "./seat-form.ts";
import { orUndefined, SeatItem, type SeatRule } from "./seat-item.ts";

/**
 * An owner that holds a read lock has asked for the write lock, and would wait for itself. Nothing was sent.
 *
 * Release the read lock first. When the write lock is held, read again.
 */
export class LeaseUpgradeError extends LeaseError {
  static {
    brandClass(LeaseUpgradeError, "LeaseUpgradeError");
  }
  declare readonly key: string;
  declare readonly owner: string;

  constructor(key: string, owner: string) {
    super(
      "LEASE_UPGRADE",
      `${quoted(owner)} holds a read lock of ${quoted(key)}, and its write lock would wait for it: ` +
        "release the read lock first",
      { key, owner },
    );
  }
}

/** The most readers at a time. */
export const mostReaders: number = seatLimits.mostSeats;

/** Options of a {@link ReadWriteLock}. */
export interface ReadWriteOptions {
  /**
   * The order in which waiting readers and writers get the lock: `fair()` of `@leasehold/client/fair`, or none. Callers
   * whose objects have no order overtake callers that wait in one.
   * @default - none
   */
  readonly order?: WaitOrder;
}

/** Options of a read lock without a wait: a lease's, without `slot` and `lockAtLeastForMs`. */
export type TryReadOptions = Omit<HoldOptions, "slot" | "lockAtLeastForMs">;
/** Options of a read lock: a lease's, without `slot` and `lockAtLeastForMs`. */
export type ReadOptions = Omit<WaitOptions, "slot" | "lockAtLeastForMs">;
/** Options of a write lock without a wait: a lease's, without `slot` and `lockAtLeastForMs`. */
export type TryWriteOptions = TryReadOptions;
/** Options of a write lock: a lease's, without `slot` and `lockAtLeastForMs`. */
export type WriteOptions = ReadOptions;

const lockOptionNames = slotlessOptionNames.filter((name) => name !== "lockAtLeastForMs");

const mostIntents = 100;

/** The most seats of each kind that may be there already. By an intent, a waiting writer keeps new readers out. */
const capacities: Readonly<Partial<Record<SeatKind, SeatLimits>>> = {
  read: { write: 0, intent: 0, read: mostReaders - 1 },
  write: { write: 0, read: 0 },
  intent: { intent: mostIntents - 1 },
};

const limitsOfKind: SeatRule["limits"] = ({ kind }) => capacities[kind] ?? {};

/** A reentrant owner may read beside its own write lock. */
export const readRule: SeatRule = { kind: "read", permits: 1, limits: limitsOfKind, exemptBy: "write" };
const writeRule: SeatRule = { kind: "write", permits: 1, limits: limitsOfKind };
const intentRule: SeatRule = { kind: "intent", permits: 1, limits: limitsOfKind };

/** The state of a read-write lock: its unreleased leases, including expired ones. */
export interface ReadWriteState {
  /** The writer. If there is none: the writer that has waited longest, and keeps new readers out meanwhile. */
  readonly writer: LeaseRecord | undefined;
  /** In the order of their acquisition. */
  readonly readers: readonly LeaseRecord[];
}

/**
 * Admits many readers at once, or one writer alone.
 *
 * Promised, while clocks differ by no more than `clockSkewMs`: a holder of an unexpired write lock is alone; a waiting
 * writer keeps new readers out, so that readers cannot starve it; fencing tokens grow over all readers and writers. Not
 * promised: that work stops when its lease is lost. Without an `order`, two more things are not promised: an order
 * among the waiting callers, and that readers get the lock while writers follow one another without a pause.
 *
 * A lock or a Semaphore of the same key does not exclude readers and writers: use a key for one kind. An operator's
 * pause of the key keeps both out, and the present holders finish.
 *
 * Fence what writers write with `lease.fence()`. Check what readers write with `lease.conditionCheck()`.
 *
 * A reader cannot become a writer: its write lock would wait for its own read lock until `waitMs` is over. Release
 * the read lock first. A `reentrant` owner is refused at once, with {@link LeaseUpgradeError}.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError, LeaseServiceError, and with LeaseItemError where another program has written the item.
 *
 * ```ts
 * const catalogue = new ReadWriteLock(client, "catalogue");
 * const page = await catalogue.withRead({ waitMs: 5_000 }, () => render());
 * await catalogue.withWrite({ waitMs: 30_000, heartbeat: true }, (lease) => rebuild({ signal: lease.signal }));
 * ```
 */
export class ReadWriteLock {
  /** The key of its item. */
  readonly key: string;
  readonly #item: SeatItem;
  readonly #writeOrder: WaitOrder;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string, options: ReadWriteOptions = {}) {
    const { order } = checkKnown(options, ["order"], "options");
    this.#item = new SeatItem(client, key, seatSortKeys.readWrite, order);
    this.#writeOrder = order ?? writerFirst(this.#item.core, this.#item.form(intentRule));
    this.key = key;
  }

  /**
   * Acquires the lock for reading, waiting up to `waitMs` while another owner writes or waits to write.
   *
   * 1 request, 2 if a dead writer is in the way; while it waits, reads.
   *
   * `reentrant` admits the same owner again: without a request if this client holds its read lock; by a takeover if
   * another client does; and beside its own write lock. Rejects with {@link LeaseUnavailableError}, which names the
   * writer, and with LeaseAbortedError when the signal aborts. In every case of failure nothing stays held.
   */
  async read(options: ReadOptions = {}): Promise<Lease> {
    return await this.#read(options, true);
  }

  /**
   * Like {@link ReadWriteLock.read}, but never waits, and returns undefined when another owner writes or waits to
   * write.
   */
  async tryRead(options: TryReadOptions = {}): Promise<Lease | undefined> {
    return await orUndefined(this.#read(options, false));
  }

  /**
   * Acquires the lock for writing, waiting up to `waitMs` until all holders have ended.
   *
   * 1 request if there is no other holder, 2 if all other holders are dead. While it waits, reads; and without an
   * `order` the writes of an intent, which keeps new readers out: 1 to take it, 1 each 3.3 s, 1 to give it up.
   *
   * `reentrant` admits the same owner again: without a request if this client holds its write lock, or by a takeover if
   * another client does. Rejects with {@link LeaseUnavailableError}, which names the writer or the reader that may stay
   * longest; with {@link LeaseUpgradeError}; and with LeaseAbortedError when the signal aborts. In every case of
   * failure nothing stays held, and readers get in again.
   */
  async write(options: WriteOptions = {}): Promise<Lease> {
    return await this.#write(options, true);
  }

  /** Like {@link ReadWriteLock.write}, but never waits, and returns undefined when another owner reads or writes. */
  async tryWrite(options: TryWriteOptions = {}): Promise<Lease | undefined> {
    return await orUndefined(this.#write(options, false));
  }

  /**
   * Acquires the lock for reading, runs the work, and releases the lock whether the work succeeds or fails.
   *
   * Resolves to the work's result if the lease lasted until its end, or was revoked. Otherwise a writer may have worked
   * at the same time, and it rejects with LeaseLostError; also if only the release shows that the lease was broken. The
   * work's own error comes first. A release that fails does not hide the result: the lease then ends by itself.
   */
  async withRead<T>(options: ReadOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.read(options), work);
  }

  /**
   * Acquires the lock for writing, runs the work, and releases the lock whether the work succeeds or fails.
   *
   * Otherwise as {@link ReadWriteLock.withRead}: LeaseLostError says that others may have read or written at the same time.
   */
  async withWrite<T>(options: WriteOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.write(options), work);
  }

  /**
   * Adopts a read lock or a write lock from another process's `lease.toJSON()`, as `client.adopt` does a lock. Sends
   * nothing; the first renewal or release reads the item before, 1 request more: what the lease takes comes from the
   * table, not from the handle. Throws InvalidOptionsError for a handle of another key or kind.
   */
  adopt(handle: LeaseHandle, options: Pick<HoldOptions, "heartbeat"> = {}): Lease {
    return this.#item.adopt(handle, options);
  }

  /** Reads the holders of the lock, and their kinds. 1 consistent read. */
  async inspect(): Promise<ReadWriteState> {
    const { seats } = await this.#item.look();
    const writers = seats.filter(({ seat }) => seat.kind === "write" || seat.kind === "intent");
    const writer = writers.find(({ seat }) => seat.kind === "write") ?? writers[0];
    return { writer, readers: seats.filter(({ seat }) => seat.kind === "read") };
  }

  async #read(options: ReadOptions, mayWait: boolean): Promise<Lease> {
    return await this.#item.acquire(this.#item.checkCall(options, lockOptionNames, mayWait), readRule);
  }

  async #write(options: WriteOptions, mayWait: boolean): Promise<Lease> {
    const call = this.#item.checkCall(options, lockOptionNames, mayWait);
    // An owner that reads in this client and does not write would wait for its own read lock.
    const kinds = call.reentrant ? this.#item.heldHere(call.owner) : new Set();
    if (kinds.has("read") && !kinds.has("write")) throw new LeaseUpgradeError(this.key, call.owner);
    return await this.#item.acquire(call, writeRule, call.waitMs > 0 ? this.#writeOrder : undefined);
  }
}

/** A writer that dies while it waits keeps new readers out for at most this time, and the allowance for skew. */
const intentLeaseMs = 10_000;

/**
 * The wait of a writer without an order: when it meets a holder, it takes an intent, which keeps new readers out.
 *
 * So it waits only for earlier readers, and later readers cannot starve it. Only that depends on the intent; a writer
 * is alone because of its own seat's limits.
 */
function writerFirst({ times }: Core, seat: SeatForm): Order {
  // Nobody holds the lock by an intent: it is no event, and no trace.
  const intent = Object.assign(seat, { mutes: ({ type }: LeaseEvent) => type !== "error" });
  const leaseDurationMs = Math.max(intentLeaseMs, times.shortestLeaseMs);
  const heartbeatMs = checkHeartbeat(true, leaseDurationMs);
  const terms = { leaseDurationMs, heartbeatMs, lockAtLeastForMs: 0, data: undefined, order: undefined };
  const plain = { ...terms, reentrant: false, resumes: false };
  return {
    begin: (core, form, call) => ({
      form,
      grant: async (attempt, onContended) => {
        const { key, sortKey, owner } = call;
        const failed = inBackground(core, { key, sortKey, owner, operation: "renew" });
        const over = new AbortController();
        const wanted = { ...call, ...plain, signal: over.signal };
        let held: HeldLease | undefined;
        // In the background: the writer does not depend on it.
        const take = async (): Promise<void> => {
          const before = held;
          held = await acquireLease(core, wanted, intent, false);
          // The intent has ended here, but an unanswered renewal may have prolonged it in the table.
          before?.letGo();
          if (over.signal.aborted) held.letGo();
          // A process that was frozen for longer than the lease has lost it.
          else held.onEnd(begin);
        };
        const begin = (): void => {
          take().catch(failed);
        };
        let hasBegun = false;
        const meet = (blocker: LeaseRecord): void => {
          onContended(blocker);
          // A pause keeps everybody out by itself, and an intent's ttl could end before it.
          if (hasBegun || blocker.pause !== undefined) return;
          hasBegun = true;
          begin();
        };
        try {
          return await unordered.begin(core, form, call).grant(attempt, meet);
        } finally {
          over.abort();
          held?.letGo();
        }
      },
    }),
  };
}
