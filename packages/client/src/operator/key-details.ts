import { ticketsIn } from "../fair/queue-ticket.ts";
import { type KeyDescription, LeaseAdmin } from "../lease-admin.ts";
import { type LeaseState, leaseState } from "../lease-state.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, auditSortKeyPrefix, waiterSortKeyPrefix } from "../schema.ts";
import { isSeatSortKey, permitsOfAttribute, type SeatKind } from "../seats/schema.ts";
import { takenBy } from "../seats/seat.ts";
import type { Item } from "../store.ts";
import { type AuditEntry, auditEntryIn } from "./audit-entry.ts";

/** A lease, and what it is worth at the time of the read. */
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
}

/** How an item of seats is taken: a semaphore's permits, or the readers and writers of a read-write lock. */
export interface DescribedSeats {
  /** `semaphore` or `read-write`. */
  readonly sortKey: string;
  /** How many permits the semaphore had for the caller that was let in last; undefined where the item does not say. */
  readonly permits: number | undefined;
  /** What all seats take, those of expired leases included. An `intent` is a writer that waits. */
  readonly taken: Readonly<Record<SeatKind, number>>;
}

/** Everything under a key, but for its history. No task token and no callback id is in it. */
export interface KeyDetails extends KeyDescription<DescribedLease> {
  /** The callers that wait in line, in the order of their turns. Callers without an order leave no trace. */
  readonly waiting: readonly DescribedTicket[];
  /** Workflows and durable functions that wait for the lock, and since when the first of them does. */
  readonly parked: { readonly count: number; readonly since: number | undefined };
  readonly seats: readonly DescribedSeats[];
  /**
   * How many items there are of each kind, by the part of their sort key before `#`: `lease`, `semaphore`,
   * `read-write`, `run`, `task` (open), `done` (ended tasks), `cache`, `call`, `waiter`, `audit`.
   */
  readonly items: Readonly<Record<string, number>>;
  /** What operators have done, the oldest first. */
  readonly audit: readonly AuditEntry[];
}

/** Reads a key, as `client.describe` does, and takes along what only operators want to know. */
export async function detailsOf(context: ProtocolContext, key: string): Promise<KeyDetails> {
  const waiting: DescribedTicket[] = [];
  const parkedSince: number[] = [];
  const seats: DescribedSeats[] = [];
  const audit: AuditEntry[] = [];
  const items: Record<string, number> = {};
  const description = await new LeaseAdmin(context).describe(key, (item, leases) => {
    const sortKey = String(item[attributeNames.sortKey]);
    const [kind = "", time] = sortKey.split("#");
    items[kind] = (items[kind] ?? 0) + 1;
    if (sortKey.startsWith(waiterSortKeyPrefix)) parkedSince.push(Number(time));
    if (sortKey.startsWith(auditSortKeyPrefix)) audit.push(...[auditEntryIn(item) ?? []].flat());
    if (isSeatSortKey(sortKey)) seats.push(seatsOf(item, sortKey, leases));
    for (const [index, { owner, since, until }] of ticketsIn(item).entries()) {
      waiting.push({ sortKey, owner, joinedAt: since, expiresAt: until, position: index + 1 });
    }
  });
  const moment = { nowMs: description.readAt, clockSkewMs: context.clockSkewMs };
  return {
    ...description,
    leases: description.leases.map((lease) => ({ ...lease, state: leaseState(lease, moment) })),
    waiting,
    // Their sort keys have the time first.
    parked: { count: parkedSince.length, since: parkedSince[0] },
    seats,
    items,
    audit,
  };
}

function seatsOf(item: Item, sortKey: string, leases: readonly LeaseRecord[]): DescribedSeats {
  const seated = leases.flatMap(({ seat }) => (seat === undefined ? [] : [{ seat }]));
  const taken = (kind: SeatKind): number => takenBy(seated, kind);
  const permits = item[permitsOfAttribute];
  return {
    sortKey,
    permits: typeof permits === "number" ? permits : undefined,
    taken: { permit: taken("permit"), read: taken("read"), write: taken("write"), intent: taken("intent") },
  };
}
