import { checkKey } from "../base/check-values.ts";
import type { LeaseItemError } from "../base/errors.ts";
import {
  type LeaseRecord,
  type LeaseState,
  type LeaseStateOptions,
  leaseState,
  type SeatKind,
} from "../base/lease-record.ts";
import { attributeNames, auditSortKeyPrefix, leaseSortKey, waiterSortKeyPrefix } from "../base/schema.ts";
import { type Item, pagesOf } from "../base/store.ts";
import { type Core, query, unreadableIn } from "../core/core.ts";
import { estimatedWaitMs } from "../primitives/fair/queue-estimate.ts";
import { holdNoteIn, ticketsIn } from "../primitives/fair/queue-ticket.ts";
import { isPauseAlone, isSeatSortKey, permitsOfAttribute, takenBy } from "../primitives/seats/seat.ts";
import { type AuditEntry, auditEntryIn } from "./audit.ts";
import { descriptionOf, type KeyDescription } from "./lease-admin.ts";
import { recordsIn } from "./looks.ts";
import { leasesOf } from "./statements.ts";

/** A lease, and its state at the time of the read. */
export interface DescribedLease extends LeaseRecord {
  readonly state: LeaseState;
}

/** A caller that waits in line (`fair()`). */
export interface DescribedTicket {
  /** The sort key of the lease that it waits for. */
  readonly sortKey: string;
  /** The caller's owner, cut to 64 bytes. */
  readonly owner: string;
  /** Epoch milliseconds of the caller's clock. */
  readonly joinedAt: number;
  /** When the ticket ends unless the caller renews it, in epoch milliseconds. Others pass a ticket that has ended. */
  readonly expiresAt: number;
  /** 1 for the caller that comes next. Tickets that have ended are counted. */
  readonly position: number;
  /**
   * About how many milliseconds until its turn, by how long holders keep the lock; undefined while that is not known.
   */
  readonly estimatedWaitMs: number | undefined;
}

/** How much of an item of seats is taken: a semaphore's permits, or the readers and writers of a read-write lock. */
export interface DescribedSeats {
  /** `semaphore` or `read-write`. */
  readonly sortKey: string;
  /** The `permits` of the last admitted caller's semaphore; undefined if the item does not have it. */
  readonly permits: number | undefined;
  /** What all seats take, including those of expired leases but not a pause. An `intent` is a waiting writer. */
  readonly taken: Readonly<Record<SeatKind, number>>;
}

/** Everything under a key except its history. It holds no task token and no callback id. */
export interface KeyDetails extends KeyDescription<DescribedLease> {
  /** The callers that wait in line, in the order of their turns. Callers without an order are not stored. */
  readonly waiting: readonly DescribedTicket[];
  /** Workflows and durable functions that wait for the lock, and since when the first of them waits. */
  readonly parked: { readonly count: number; readonly since: number | undefined };
  readonly seats: readonly DescribedSeats[];
  /**
   * How many items there are of each kind, by the part of their sort key before `#`: `lease`, `semaphore`,
   * `read-write`, `run`, `task` (open), `done` (ended tasks), `cache`, `call`, `waiter`, `audit`.
   */
  readonly items: Readonly<Record<string, number>>;
  /** The operators' actions, the oldest first. */
  readonly audit: readonly AuditEntry[];
}

/** Reads a key as `LeaseAdmin.describe` does, and what only operators need. */
export async function detailsOf(core: Core, key: string): Promise<KeyDetails> {
  const { clock, times } = core;
  const asked = { ...leasesOf(checkKey(key)), consistent: true };
  const reader = new KeyDetailsReader(key, unreadableIn(core));
  for await (const { items } of pagesOf((after) => query(core, { ...asked, ...after }))) {
    for (const item of items) reader.read(item);
  }
  return reader.details({ nowMs: clock.now(), clockSkewMs: times.clockSkewMs });
}

/** Puts together the items under a key, whatever request has read them. */
export class KeyDetailsReader {
  readonly #key: string;
  readonly #onUnreadable: (error: LeaseItemError) => void;
  readonly #leases: LeaseRecord[] = [];
  readonly #tickets: Omit<DescribedTicket, "estimatedWaitMs">[] = [];
  readonly #parkedSince: number[] = [];
  readonly #seats: DescribedSeats[] = [];
  readonly #audit: AuditEntry[] = [];
  readonly #items = new Map<string, number>();
  #lock: Item | undefined;

  /** `onUnreadable` gets the errors of unreadable items. Their leases are left out. */
  constructor(key: string, onUnreadable: (error: LeaseItemError) => void) {
    this.#key = key;
    this.#onUnreadable = onUnreadable;
  }

  /** Reads one item. */
  read(item: Item): void {
    const sortKey = String(item[attributeNames.sortKey]);
    if (isSeatSortKey(sortKey) && isPauseAlone(item)) return;
    const [kind = "", time] = sortKey.split("#");
    this.#items.set(kind, (this.#items.get(kind) ?? 0) + 1);
    const leases = [...recordsIn([item], this.#onUnreadable)];
    this.#leases.push(...leases);
    if (sortKey === leaseSortKey) this.#lock = item;
    if (sortKey.startsWith(waiterSortKeyPrefix)) this.#parkedSince.push(Number(time));
    if (sortKey.startsWith(auditSortKeyPrefix)) this.#audit.push(...[auditEntryIn(item) ?? []].flat());
    if (isSeatSortKey(sortKey)) this.#seats.push(seatsOf(item, sortKey, leases));
    for (const [index, { owner, since, until }] of ticketsIn(item).entries()) {
      this.#tickets.push({ sortKey, owner, joinedAt: since, expiresAt: until, position: index + 1 });
    }
  }

  /** Returns what was read, with each lease's state at a moment. */
  details(moment: LeaseStateOptions): KeyDetails {
    const read = { key: this.#key, readAt: moment.nowMs, leases: this.#leases, lock: this.#lock };
    return {
      ...descriptionOf(read, this.#onUnreadable),
      leases: this.#leases.map((lease) => ({ ...lease, state: leaseState(lease, moment) })),
      waiting: this.#waiting(moment.nowMs),
      // Their sort keys begin with the time.
      parked: { count: this.#parkedSince.length, since: this.#parkedSince[0] },
      seats: this.#seats,
      items: Object.fromEntries(this.#items),
      audit: this.#audit,
    };
  }

  /** Only fair callers note how long a lock is held. Of several holders, it is not known who ends next. */
  #waiting(nowMs: number): readonly DescribedTicket[] {
    const holds = holdNoteIn(this.#lock);
    const holder = this.#leases.find(({ sortKey }) => sortKey === leaseSortKey);
    const heldMs = holder && nowMs - holder.acquiredAt;
    return this.#tickets.map((ticket) => {
      const { position, sortKey } = ticket;
      const turn = { position, round: position, holds, heldMs };
      return { ...ticket, estimatedWaitMs: sortKey === leaseSortKey ? estimatedWaitMs(turn) : undefined };
    });
  }
}

function seatsOf(item: Item, sortKey: string, leases: readonly LeaseRecord[]): DescribedSeats {
  const seated = leases.flatMap(({ seat, pause }) => (seat && !pause ? [{ seat }] : []));
  const taken = (kind: SeatKind): number => takenBy(seated, kind);
  const permits = item[permitsOfAttribute];
  return {
    sortKey,
    permits: typeof permits === "number" ? permits : undefined,
    taken: { permit: taken("permit"), read: taken("read"), write: taken("write"), intent: taken("intent") },
  };
}
