import { deferred } from "../../base/clock.ts";
import { attributeNames, leaseItemKey } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import type { CallBudget } from "../../base/timed-call.ts";
import type { Core } from "../../core/core.ts";
import { LeaseMemory } from "../../core/lease-memory.ts";
import {
  holdNoteIn,
  type QueueSnapshot,
  type QueueTicket,
  queueAttributeNames,
  queueLimits,
  ticketsIn,
  type WrittenTicket,
} from "./queue-ticket.ts";
import { type FreeAsJudged, renewTickets } from "./queue-writes.ts";

/**
 * While the lease is free, every waiter writes its ticket again within this time: it sleeps for 9 s at most, and a look
 * takes 2 s at most. Otherwise the waiter is unresponsive. The time counts from when the holder sent the release, so a
 * slow release shortens it.
 */
export const unresponsiveAfterMs = 11_000;

/** A line before the first answer. */
export const unseen: QueueSnapshot = { item: undefined, tickets: [] };

/** A value that another process has written, and that has not changed since. */
interface Unchanged {
  /** When this client first observed it, on the monotonic clock. */
  readonly seenAt: number;
  /** When it was written, in epoch milliseconds; undefined if its writer did not know the service's time. */
  readonly writtenAt: number | undefined;
}

/** When a ticket was first seen with its text, and last seen without it, on the monotonic clock. */
interface SeenTicket {
  readonly text: string;
  readonly since: number;
  readonly absentAt: number;
}

/** A lease that the first waiter could have. It was written when its last hold ended. */
type FreeLease = Unchanged & FreeAsJudged;

/** A waiter of this process, as the other waiters see it. */
export interface LocalWaiter {
  /** Its ticket with a longer lease; undefined while it has none. */
  renewal(): (WrittenTicket & Pick<QueueTicket, "number">) | undefined;
  /** Called with the item that another waiter's request has shown. */
  onItem(item: Item | undefined): void;
  /** Called when a holder of this process has released the lease. */
  onReleased(): void;
}

/**
 * What one client knows of the line of one lease: how long each ticket has stayed unchanged, and which of its own
 * callers wait. Only the order depends on it, never the exclusion.
 *
 * A ticket may be passed when it has expired, or when its waiter is unresponsive: the lease is free, and for
 * {@link unresponsiveAfterMs} neither this waiter nor one in front of it has taken the lease or written its ticket. So
 * tickets can last for minutes, but dead waiters keep a living waiter out no longer than that.
 *
 * Each waiter has its own ticket, so all callers in all processes keep the order. The waiters of one process share
 * their answers: one look serves all of them, and one write renews all their tickets.
 */
export class Queue {
  readonly key: string;
  readonly sortKey: string;
  readonly #core: Core;
  #snapshot = unseen;
  /** Each ticket as this client has seen it. */
  #seen = new Map<string, SeenTicket>();
  /** When this client last saw the line, on the monotonic clock. */
  #lastSeenAt = Number.NEGATIVE_INFINITY;
  #free: FreeLease | undefined;
  readonly #waiters = new Set<LocalWaiter>();
  #latest: Item | undefined;
  #entered: Promise<void> = Promise.resolve();

  constructor(core: Core, key: string, sortKey: string) {
    this.#core = core;
    this.key = key;
    this.sortKey = sortKey;
  }

  /** Reads an item, and forgets the tickets that it no longer has. */
  see(item: Item | undefined): QueueSnapshot {
    if (item === this.#snapshot.item) return this.#snapshot;
    const since = this.#core.clock.monotonic();
    const tickets = ticketsIn(item);
    const seen = tickets.map(({ id, text }) => {
      const before = this.#seen.get(id);
      return [id, before?.text === text ? before : { text, since, absentAt: this.#lastSeenAt }] as const;
    });
    this.#seen = new Map(seen);
    this.#lastSeenAt = since;
    this.#snapshot = { item, tickets };
    return this.#snapshot;
  }

  /** Notes whether the first waiter could have the lease; `endedAt` if the end of its last hold is known. */
  seeFree(isFree: boolean, item: Item | undefined, endedAt: number | undefined): void {
    const fence = fenceOf(item);
    const expiresAt = item?.[attributeNames.expiresAt];
    if (!isFree) this.#free = undefined;
    else if (this.#free?.fence !== fence || this.#free.expiresAt !== expiresAt) {
      const note = holdNoteIn(item);
      const noted = note?.fencingToken === fence ? note.endedAt : undefined;
      const seenAt = this.#core.clock.monotonic();
      this.#free = { fence, expiresAt, seenAt, writtenAt: endedAt ?? noted };
    }
  }

  /** About how long the lease has been free, in milliseconds; undefined while it is held. */
  get freeForMs(): number | undefined {
    return this.#free && this.#unchangedFor(this.#free, this.#core.clock.now());
  }

  /** Milliseconds until each of these tickets, the first in line, may be passed if nothing changes; 0 for now. */
  passableIn(tickets: readonly QueueTicket[]): readonly number[] {
    const surelyNow = this.#surelyNow;
    let allUnresponsiveIn = Number.NEGATIVE_INFINITY;
    return tickets.map((ticket) => {
      const unchangedMs = this.#ticketUnchangedFor(ticket, surelyNow);
      const expiresIn = ticket.leaseMs - unchangedMs;
      // Waiters behind a living one need not show that they are alive.
      allUnresponsiveIn = Math.max(
        allUnresponsiveIn,
        Math.min(expiresIn, this.#unresponsiveIn(ticket, unchangedMs, surelyNow)),
      );
      return Math.max(0, Math.min(expiresIn, allUnresponsiveIn));
    });
  }

  /** Returns the first tickets in line that may not be passed. */
  living(tickets: readonly QueueTicket[]): readonly QueueTicket[] {
    const passableIn = this.passableIn(tickets);
    return tickets.filter((_, index) => (passableIn[index] ?? 0) > 0);
  }

  /**
   * The condition of a write that passes these tickets. An expired ticket stays expired. But a waiter is unresponsive
   * only while the lease is free, and each hold gives it new time. So the lease must be unchanged since it was judged.
   */
  passingOver(tickets: readonly QueueTicket[]): FreeAsJudged | undefined {
    const surelyNow = this.#surelyNow;
    const isExpired = (ticket: QueueTicket): boolean =>
      this.#ticketUnchangedFor(ticket, surelyNow) >= ticket.leaseMs;
    return tickets.every(isExpired) ? undefined : this.#free;
  }

  /**
   * About how long a ticket still shows that its waiter is alive while the lease is free. Others may have seen a ticket
   * of unknown age before this client did: it counts from when this client saw the line without it.
   */
  provesLifeFor(ticket: QueueTicket): number {
    const { id, isWatching, leaseMs, ownClock } = ticket;
    const longestMs = isWatching ? Math.min(leaseMs, unresponsiveAfterMs) : leaseMs;
    const { absentAt = Number.NEGATIVE_INFINITY } = this.#seen.get(id) ?? {};
    const { clock } = this.#core;
    const unchangedMs = ownClock
      ? clock.monotonic() - absentAt
      : this.#ticketUnchangedFor(ticket, clock.now());
    return longestMs - unchangedMs;
  }

  /** Whether no caller of this process waits. */
  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** The last answer, while a waiter of this process has a ticket; undefined otherwise. */
  get latest(): Item | undefined {
    const isQueueing = [...this.#waiters].some((waiter) => waiter.renewal() !== undefined);
    return isQueueing ? this.#latest : undefined;
  }

  /**
   * Callers of one process join one after the other: `before` resolves when it is this caller's turn; `pass` admits the
   * next.
   */
  enter(): { readonly before: Promise<void>; readonly pass: () => void } {
    const before = this.#entered;
    const { promise, resolve } = deferred<void>();
    this.#entered = before.then(() => promise);
    return { before, pass: resolve };
  }

  add(waiter: LocalWaiter): void {
    this.#waiters.add(waiter);
  }

  remove(waiter: LocalWaiter): void {
    this.#waiters.delete(waiter);
    if (this.isEmpty) this.#latest = undefined;
  }

  /** Gives one waiter's answer to the others. */
  broadcast(item: Item | undefined, from: LocalWaiter): void {
    if (isOlder(item, this.#latest)) return;
    this.#latest = item;
    for (const waiter of this.#waiters) if (waiter !== from) waiter.onItem(item);
  }

  /** Tells the waiters that a holder of this process has released the lease: the head need not look first. */
  released(): void {
    for (const waiter of this.#waiters) waiter.onReleased();
  }

  /** Looks: 1 read, which may lag unless `consistent`. */
  look(budget?: CallBudget, consistent = false): Promise<Item | undefined> {
    return this.#core.get({ key: leaseItemKey(this.key, this.sortKey), consistent }, budget);
  }

  /**
   * Looks, and renews the tickets of all waiters of this process: 1 write for each 40 of them.
   *
   * The waiter's own ticket comes last. If an earlier write is refused or fails, its own ticket stays due, and so do
   * all the others. Waiters far behind seldom look themselves.
   */
  async lookAndRenew(own: LocalWaiter, budget: CallBudget): Promise<Item | undefined> {
    const others = [...this.#waiters].filter((waiter) => waiter !== own);
    const tickets = [...others, own].flatMap((waiter) => waiter.renewal() ?? []);
    const { removalsPerWrite } = queueLimits;
    for (let to = removalsPerWrite; ; to += removalsPerWrite) {
      const write = renewTickets(this, tickets.slice(to - removalsPerWrite, to));
      const { applied, item } = await this.#core.update(write, budget);
      if (!applied || to >= tickets.length) return item;
    }
  }

  #unresponsiveIn({ isWatching }: QueueTicket, unchangedMs: number, now: number): number {
    if (this.#free === undefined || !isWatching) return Number.POSITIVE_INFINITY;
    return unresponsiveAfterMs - Math.min(unchangedMs, this.#unchangedFor(this.#free, now));
  }

  #ticketUnchangedFor({ id, text, until, leaseMs, ownClock }: QueueTicket, now: number): number {
    const seen = this.#seen.get(id);
    const seenAt = seen?.text === text ? seen.since : this.#core.clock.monotonic();
    return this.#unchangedFor({ seenAt, writtenAt: ownClock ? undefined : until - leaseMs }, now);
  }

  /** By this client's monotonic clock, or by the writer's time, whichever gives the longer duration. */
  #unchangedFor({ seenAt, writtenAt = Number.POSITIVE_INFINITY }: Unchanged, now: number): number {
    return Math.max(this.#core.clock.monotonic() - seenAt, now - writtenAt);
  }

  /**
   * A time that has surely passed, in epoch milliseconds of any other process: the service's earliest possible time, as
   * for leases. If it is not known, only observation decides how old another process's write is.
   */
  get #surelyNow(): number {
    const { clock, times } = this.#core;
    return (clock.earliest() ?? Number.NEGATIVE_INFINITY) - times.clockSkewMs - 1;
  }
}

/** The lines that each client knows; a line is in use while one of the client's callers waits in it. */
export const queues: LeaseMemory<Queue> = new LeaseMemory(
  (core, key, sortKey) => new Queue(core, key, sortKey),
  (queue) => !queue.isEmpty,
);

/** Whether an answer is older than another one: a read may lag, and answers overtake each other. */
export function isOlder(one: Item | undefined, other: Item | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const fences = fenceOf(one) - fenceOf(other);
  return fences < 0 || (fences === 0 && lastNumberIn(one) < lastNumberIn(other));
}

function fenceOf(item: Item | undefined): number {
  return Number(item?.[attributeNames.fence] ?? 0);
}

/** The last number that was given; 0 for an item that has never had a line. */
function lastNumberIn(item: Item): number {
  const number = item[queueAttributeNames.lastTicket];
  return typeof number === "number" ? number : 0;
}
