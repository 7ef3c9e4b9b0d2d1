import type { Item } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { unresponsiveAfterMs } from "../../../packages/client/src/primitives/fair/queue.ts";
import {
  holdNoteIn,
  type QueueTicket,
  ticketPrefix,
  ticketsIn,
} from "../../../packages/client/src/primitives/fair/queue-ticket.ts";

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
  /** When the lease was written as it is. */
  #leaseLandedAt = 0;
  /**
   * When the last use ended, in epoch milliseconds. A release that is long under way shortens the time that waiters have to
   * answer: it can only note when it was sent. Counting from when others see it would keep dead waiters in the way for longer.
   */
  #endedAt = 0;
  /** When each ticket was first written as it is, by its id and text: a late copy may bring a text back. */
  readonly #landedAt = new Map<string, number>();
  /** The last time in which the lease was free, until it was granted. */
  #free = { endedAt: 0, until: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes note of a write; says what is wrong with the count of tickets. */
  watch(before: Item | undefined, after: Item | undefined, fault: (text: string) => void): QueueChange {
    const { token, version, fence } = attributeNames;
    if (before?.[token] !== undefined && after?.[token] === undefined) {
      const note = holdNoteIn(after);
      const sentAt = note?.fencingToken === after?.[fence] ? note?.endedAt : undefined;
      this.#endedAt = Math.min(this.#now(), this.#endOfUse(before), sentAt ?? this.#now());
    }
    if (after?.[token] !== undefined && after[token] !== before?.[token]) {
      this.#free = { endedAt: this.#endOfUse(before), until: this.#now() };
    }
    const isWritten = after?.[token] !== before?.[token] || after?.[version] !== before?.[version];
    if (isWritten) this.#leaseLandedAt = this.#now();
    const [tickets, left] = [ticketsIn(before), ticketsIn(after)];
    for (const ticket of left) {
      if (!this.#landedAt.has(asWritten(ticket))) this.#landedAt.set(asWritten(ticket), this.#now());
    }
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
  mayBePassed(ticket: QueueTicket, before: Item | undefined): boolean {
    const { until, leaseMs, isWatching, ownClock } = ticket;
    if (!ownClock && until <= this.#now()) return true;
    const landedAt = this.#landedAt.get(asWritten(ticket)) ?? 0;
    if (this.#now() - landedAt >= leaseMs * (1 - rateError)) return true;
    if (!isWatching) return false;
    // As its waiter has it, which knows the service's time to the second, or since others could see it.
    const writtenAt = ownClock ? landedAt : Math.min(until - leaseMs, landedAt);
    const now = { endedAt: this.#endOfUse(before), until: this.#now() };
    return [now, this.#free].some((free) => {
      return free.until >= Math.max(free.endedAt, writtenAt) + unresponsiveAfterMs * (1 - rateError);
    });
  }

  /** By the service's clock, or for one who has watched the lease since it was written. */
  #endOfUse(item: Item | undefined): number {
    const { token, version, ownClock, expiresAt, leaseDurationMs } = attributeNames;
    if (item?.[token] === undefined) return this.#endedAt;
    const watchedAt = this.#leaseLandedAt + Number(item[leaseDurationMs]);
    return item[ownClock] === item[version] ? watchedAt : Math.min(Number(item[expiresAt]), watchedAt);
  }
}

function asWritten({ id, text }: QueueTicket): string {
  return `${id} ${text}`;
}
