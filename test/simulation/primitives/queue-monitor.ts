import type { Item } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { unresponsiveAfterMs } from "../../../packages/client/src/fair/queue.ts";
import {
  holdNoteIn,
  type QueueTicket,
  ticketPrefix,
  ticketsIn,
} from "../../../packages/client/src/fair/queue-ticket.ts";
import { clockSkewMs } from "../cluster.ts";

/** What one write that has landed did to a line. */
export interface QueueChange {
  readonly tickets: readonly QueueTicket[];
  readonly left: readonly QueueTicket[];
  /** The tickets that are gone, but for the given one. */
  gone(own: QueueTicket | undefined): QueueTicket[];
}

/** By how much an observer's clock may run fast. */
const rateError = 0.001;

/** Watches the line of one lock: which tickets may be passed, by the time that no process knows exactly. */
export class QueueMonitor {
  readonly #now: () => number;
  /**
   * When the last use ended, in epoch milliseconds. A release that is long under way shortens the time that waiters have to
   * answer: it can only note when it was sent. Counting from when others see it would keep dead waiters in the way for longer.
   */
  #endedAt = 0;
  /** When each ticket was written as it is: a process whose clock is ahead writes a later end than others wait for. */
  readonly #landedAt = new Map<string, number>();
  /** The last time in which the lease was free, until it was granted. */
  #free = { endedAt: 0, until: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes note of a write; says what is wrong with the count of tickets. */
  watch(before: Item | undefined, after: Item | undefined, fault: (text: string) => void): QueueChange {
    const { token, expiresAt, fence } = attributeNames;
    if (before?.[token] !== undefined && after?.[token] === undefined) {
      const note = holdNoteIn(after);
      const sentAt = note?.fencingToken === after?.[fence] ? note?.endedAt : undefined;
      this.#endedAt = Math.min(this.#now(), Number(before[expiresAt]), sentAt ?? this.#now());
    }
    if (after?.[token] !== undefined && after[token] !== before?.[token]) {
      this.#free = { endedAt: this.#endOfUse(before), until: this.#now() };
    }
    const [tickets, left] = [ticketsIn(before), ticketsIn(after)];
    const texts = new Map(tickets.map(({ id, text }) => [id, text]));
    for (const { id, text } of left) if (texts.get(id) !== text) this.#landedAt.set(id, this.#now());
    if (left.length !== Number(after?.waiting ?? 0)) fault("the count of tickets has drifted");
    const names = Object.keys(after ?? {}).filter((name) => name.startsWith(ticketPrefix));
    if (names.length !== left.length) fault("a ticket's text has come back without its number");
    const stays = ({ id, number }: QueueTicket): boolean =>
      left.some((ticket) => ticket.id === id && ticket.number === number);
    return { tickets, left, gone: (own) => tickets.filter((ticket) => ticket !== own && !stays(ticket)) };
  }

  /**
   * Whether a ticket may be passed: it has expired, or its waiter has had its time to take the lease or to write its ticket
   * again. A write that passes it may land when the next holder has the lease.
   */
  mayBePassed({ id, until, leaseMs, isWatching }: QueueTicket, before: Item | undefined): boolean {
    if (until <= this.#now() + clockSkewMs / 2) return true;
    const landedAt = this.#landedAt.get(id) ?? 0;
    if (this.#now() - landedAt >= leaseMs * (1 - rateError)) return true;
    if (!isWatching) return false;
    // By the clock of its waiter, which may be behind, or since others could see it.
    const writtenAt = Math.min(until - leaseMs - clockSkewMs / 2, landedAt);
    const now = { endedAt: this.#endOfUse(before), until: this.#now() };
    return [now, this.#free].some((free) => {
      return free.until >= Math.max(free.endedAt, writtenAt) + unresponsiveAfterMs * (1 - rateError);
    });
  }

  #endOfUse(item: Item | undefined): number {
    return item?.[attributeNames.token] === undefined
      ? this.#endedAt
      : Number(item[attributeNames.expiresAt]);
  }
}
