import type { ProtocolContext } from "../protocol/context.ts";
import { LeaseMemory } from "../protocol/lease-memory.ts";
import { attributeNames, leaseItemKey } from "../schema.ts";
import type { Bounds } from "../store/timed-store.ts";
import type { Item } from "../store.ts";
import { deferred } from "../time/clock.ts";
import {
  holdNoteIn,
  type QueueTicket,
  queueAttributeNames,
  queueLimits,
  ticketsIn,
  type WrittenTicket,
} from "./queue-ticket.ts";
import { renewTickets } from "./queue-writes.ts";

/**
 * A waiter whose turn has come takes the lease within this time, or says that it is alive: it sleeps for 9 s at most, and a
 * look takes 2 s at most. The time counts from when the release was sent: a release that is slow to arrive shortens it.
 */
export const answerMs = 11_000;

/** What one answer shows of a line: its tickets in the order of their numbers, those that have expired included. */
export interface QueueSnapshot {
  readonly item: Item | undefined;
  readonly tickets: readonly QueueTicket[];
}

/** A lease that the first in line could have: since when, on the monotonic clock, and since the end of which use. */
interface Vacancy {
  readonly fence: number;
  /** When that lease expired, if it was not released: a late renewal, and a late release, begin another vacancy. */
  readonly expiresAt: unknown;
  readonly seenAt: number;
  /** When that use ended, in epoch milliseconds of another clock; undefined where that is not known. */
  readonly endedAt: number | undefined;
}

/** A waiter of this process, as the others see it. */
export interface LocalWaiter {
  /** Its ticket with a longer lease; undefined while it has none. */
  renewal(): (WrittenTicket & Pick<QueueTicket, "number">) | undefined;
  /** Called with what another waiter's request has shown. */
  onItem(item: Item | undefined): void;
  /** Called when a holder of this process has let the lease go. */
  onReleased(): void;
}

/**
 * What one client knows of the line of one lease: for how long things have stayed as they are, and which of its own callers
 * wait. Only the order depends on it, never the exclusion.
 *
 * A ticket may be passed when it has expired; and when the lease has been vacant for as long as every waiter takes to
 * look, and its waiter has neither taken it nor answered. So tickets can last long, and still no number of dead waiters
 * keeps a living one out for longer than that.
 *
 * Each waiter has a ticket of its own, so that the order is kept among all callers, in all processes. Those of one process
 * share what they see: one look serves all of them, and one write renews the tickets of all.
 */
export class Queue {
  readonly key: string;
  readonly sortKey: string;
  readonly #context: ProtocolContext;
  #snapshot: QueueSnapshot = { item: undefined, tickets: [] };
  /** Since when each ticket has stayed the same, on the monotonic clock. */
  #seen = new Map<string, { readonly text: string; readonly since: number }>();
  #vacancy: Vacancy | undefined;
  readonly #waiters = new Set<LocalWaiter>();
  #latest: Item | undefined;
  #entered: Promise<void> = Promise.resolve();

  constructor(context: ProtocolContext, key: string, sortKey: string) {
    this.#context = context;
    this.key = key;
    this.sortKey = sortKey;
  }

  /** Reads an item. Tickets that are not there any more are forgotten. */
  see(item: Item | undefined): QueueSnapshot {
    if (item === this.#snapshot.item) return this.#snapshot;
    const since = this.#context.clock.monotonic();
    const tickets = ticketsIn(item);
    const seen = tickets.map(({ id, text }) => {
      const before = this.#seen.get(id);
      return [id, before?.text === text ? before : { text, since }] as const;
    });
    this.#seen = new Map(seen);
    this.#snapshot = { item, tickets };
    return this.#snapshot;
  }

  /** Takes note of whether the first in line could have the lease; `endedAt` where the end of its last use is known. */
  seeVacancy(isVacant: boolean, item: Item | undefined, endedAt: number | undefined): void {
    const fence = fenceOf(item);
    const expiresAt = item?.[attributeNames.expiresAt];
    if (!isVacant) this.#vacancy = undefined;
    else if (this.#vacancy?.fence !== fence || this.#vacancy.expiresAt !== expiresAt) {
      const note = holdNoteIn(item);
      const noted = note?.fencingToken === fence ? note.endedAt : undefined;
      const seenAt = this.#context.clock.monotonic();
      this.#vacancy = { fence, expiresAt, seenAt, endedAt: endedAt ?? noted };
    }
  }

  /** For how long the lease has been vacant, about, in milliseconds; undefined while it is not. */
  get vacantMs(): number | undefined {
    if (this.#vacancy === undefined) return undefined;
    const { clock } = this.#context;
    const { seenAt, endedAt } = this.#vacancy;
    return Math.max(clock.monotonic() - seenAt, endedAt === undefined ? 0 : clock.now() - endedAt);
  }

  /** What a ticket says that is written now: the fencing token of the use whose end has been seen, or 0. */
  get answer(): number {
    return this.#vacancy?.fence ?? 0;
  }

  /** In how many milliseconds a ticket may be passed if nothing changes; 0 for at once. */
  passableIn(ticket: QueueTicket): number {
    return Math.max(0, Math.min(this.#expiresIn(ticket), this.#silentIn(ticket)));
  }

  isLiving(ticket: QueueTicket): boolean {
    return this.passableIn(ticket) > 0;
  }

  /** Whether nobody of this process waits. */
  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** What the last answer has shown, while a waiter of this process has a ticket; undefined otherwise. */
  get latest(): Item | undefined {
    const isQueueing = [...this.#waiters].some((waiter) => waiter.renewal() !== undefined);
    return isQueueing ? this.#latest : undefined;
  }

  /** Callers of one process join one after the other: `before` resolves when it is this one's turn; `pass` lets the next one in. */
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

  /** Shows the others what an answer has shown one of them. */
  broadcast(item: Item | undefined, from: LocalWaiter): void {
    if (isOlder(item, this.#latest)) return;
    this.#latest = item;
    for (const waiter of this.#waiters) if (waiter !== from) waiter.onItem(item);
  }

  /** Tells the waiters that a holder of this process has let the lease go: the head need not look first. */
  released(): void {
    for (const waiter of this.#waiters) waiter.onReleased();
  }

  /** Looks: 1 read, which may lag unless it is to be consistent. */
  look(bounds?: Bounds, consistent = false): Promise<Item | undefined> {
    return this.#context.table.get({ key: leaseItemKey(this.key, this.sortKey), consistent }, bounds);
  }

  /**
   * Looks, and renews the tickets of all waiters of this process: 1 write for each 40 of them.
   *
   * The waiter's own ticket comes last: where a write before it is refused or fails, its ticket stays due, and with it all of
   * them. Waiters far behind seldom look themselves.
   */
  async lookAndRenew(own: LocalWaiter, bounds: Bounds): Promise<Item | undefined> {
    const others = [...this.#waiters].filter((waiter) => waiter !== own);
    const tickets = [...others, own].flatMap((waiter) => waiter.renewal() ?? []);
    const { removalsPerWrite } = queueLimits;
    for (let to = removalsPerWrite; ; to += removalsPerWrite) {
      const write = renewTickets(this, tickets.slice(to - removalsPerWrite, to));
      const { applied, item } = await this.#context.table.update(write, bounds);
      if (!applied || to >= tickets.length) return item;
    }
  }

  #expiresIn({ id, text, until, leaseMs }: QueueTicket): number {
    const seen = this.#seen.get(id);
    const unchangedMs = seen?.text === text ? this.#context.clock.monotonic() - seen.since : 0;
    return Math.min(leaseMs - unchangedMs, this.#surelyIn(until));
  }

  #silentIn({ answered }: QueueTicket): number {
    if (this.#vacancy === undefined || answered === undefined || answered === this.#vacancy.fence) {
      return Number.POSITIVE_INFINITY;
    }
    const { seenAt, endedAt = Number.POSITIVE_INFINITY } = this.#vacancy;
    return answerMs + Math.min(seenAt - this.#context.clock.monotonic(), this.#surelyIn(endedAt));
  }

  /**
   * In how many milliseconds a time that another process has written has surely passed: by the service's time at its
   * earliest, as leases are judged. The corrected wall clock can be seconds ahead after a suspension; it counts only where the
   * service does not tell its time, for no more than the order depends on it.
   */
  #surelyIn(time: number): number {
    const { clock, clockSkewMs } = this.#context;
    return time + clockSkewMs + 1 - (clock.earliest() ?? clock.now());
  }
}

/** The lines that each client knows; those in which one of its callers waits are in use. */
export const queues: LeaseMemory<Queue> = new LeaseMemory(
  (context, key, sortKey) => new Queue(context, key, sortKey),
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

/** The number that was given last; 0 for an item that has never had a line. */
function lastNumberIn(item: Item): number {
  const number = item[queueAttributeNames.lastTicket];
  return typeof number === "number" ? number : 0;
}
