import type { ProtocolContext } from "../protocol/context.ts";
import { attributeNames } from "../schema.ts";
import type { Item } from "../store.ts";
import { type HoldNote, holdNoteIn, lastNumberIn, type QueueTicket, ticketsIn } from "./queue-ticket.ts";

/**
 * A waiter whose turn has come takes the lease within this time, or says that it is alive: it sleeps for 9 s at most, its look
 * takes 2 s at most, and the rest is for the release, whose note counts from when it was sent.
 */
export const answerMs = 11_500;

/** What one answer shows of a line. */
export interface QueueSnapshot {
  readonly item: Item | undefined;
  /** The fencing token of the last use. */
  readonly fence: number;
  /** In the order of their numbers, those that have expired included. */
  readonly tickets: readonly QueueTicket[];
  readonly holds: HoldNote | undefined;
}

/** A lease that the first in line could have: since when, on the monotonic clock, and since the end of which use. */
interface Vacancy {
  readonly fence: number;
  readonly seenAt: number;
  /** When that use ended, in epoch milliseconds of another clock; undefined where that is not known. */
  readonly endedAt: number | undefined;
}

/**
 * Reads the line of one lease, and remembers how long things have stayed as they are: so it knows which tickets may be
 * passed. Only the order depends on this judgement, never the exclusion.
 *
 * A ticket may be passed when it has expired; and when the lease has been vacant for as long as every waiter takes to
 * look, and its waiter has neither taken it nor answered. So tickets can last long, and still no number of dead waiters
 * keeps a living one out for longer than that.
 */
export class QueueReader {
  readonly #context: ProtocolContext;
  #snapshot: QueueSnapshot = { item: undefined, fence: 0, tickets: [], holds: undefined };
  /** Since when each ticket has stayed the same, on the monotonic clock. */
  #seen = new Map<string, { readonly text: string; readonly since: number }>();
  #vacancy: Vacancy | undefined;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  /** Reads an item. Tickets that are not there any more are forgotten. */
  see(item: Item | undefined): QueueSnapshot {
    if (item !== undefined && item === this.#snapshot.item) return this.#snapshot;
    const now = this.#context.clock.monotonic();
    const tickets = ticketsIn(item);
    const seen = new Map<string, { readonly text: string; readonly since: number }>();
    for (const { id, text } of tickets) {
      const before = this.#seen.get(id);
      seen.set(id, before?.text === text ? before : { text, since: now });
    }
    this.#seen = seen;
    this.#snapshot = { item, fence: fenceOf(item), tickets, holds: holdNoteIn(item) };
    return this.#snapshot;
  }

  /** Takes note of whether the first in line could have the lease; `endedAt` where the end of its last use is known. */
  seeVacancy(isVacant: boolean, { fence, holds }: QueueSnapshot, endedAt: number | undefined): void {
    if (!isVacant) this.#vacancy = undefined;
    else if (this.#vacancy?.fence !== fence) {
      const noted = holds?.fencingToken === fence ? holds.endedAt : undefined;
      this.#vacancy = { fence, seenAt: this.#context.clock.monotonic(), endedAt: endedAt ?? noted };
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

  #expiresIn({ id, text, until, leaseMs }: QueueTicket): number {
    const now = this.#context.clock.monotonic();
    const seen = this.#seen.get(id);
    const observedIn = (seen?.text === text ? seen.since : now) + leaseMs - now;
    return Math.min(observedIn, this.#surelyIn(until));
  }

  #silentIn({ answered }: QueueTicket): number {
    if (this.#vacancy === undefined || answered === undefined || answered === this.#vacancy.fence) {
      return Number.POSITIVE_INFINITY;
    }
    const { seenAt, endedAt = Number.POSITIVE_INFINITY } = this.#vacancy;
    return answerMs + Math.min(seenAt - this.#context.clock.monotonic(), this.#surelyIn(endedAt));
  }

  /**
   * In how many milliseconds a time of another process has surely passed: by the service's time at its earliest, as leases
   * are judged. The corrected wall clock can be seconds ahead after a suspension.
   */
  #surelyIn(time: number): number {
    const { clock, clockSkewMs } = this.#context;
    return time + clockSkewMs + 1 - (clock.earliest() ?? Number.NEGATIVE_INFINITY);
  }
}

/** Whether an answer is older than another one: a read may lag, and answers overtake each other. */
export function isOlder(one: Item | undefined, other: Item | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const [fence, otherFence] = [fenceOf(one), fenceOf(other)];
  return fence < otherFence || (fence === otherFence && lastNumberIn(one) < lastNumberIn(other));
}

function fenceOf(item: Item | undefined): number {
  return Number(item?.[attributeNames.fence] ?? 0);
}
