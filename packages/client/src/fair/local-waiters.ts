import type { ProtocolContext } from "../protocol/context.ts";
import { LeaseMemory } from "../protocol/lease-memory.ts";
import { leaseItemKey } from "../schema.ts";
import type { Bounds } from "../store/timed-store.ts";
import type { Item } from "../store.ts";
import { isOlder, QueueReader } from "./queue-reader.ts";
import type { QueueTicket, WrittenTicket } from "./queue-ticket.ts";
import { type QueueKey, renewTickets } from "./queue-writes.ts";
import { queueLimits } from "./schema.ts";

/** A ticket with a longer lease, and what to do once the table has it. */
export interface TicketRenewal extends WrittenTicket, Pick<QueueTicket, "number"> {
  readonly confirmed: () => void;
}

/** A waiter of this process, as the others see it. */
export interface LocalWaiter {
  /** What would renew its ticket; undefined while it has none. */
  renewal(): TicketRenewal | undefined;
  /** Called with what another waiter's request has shown. */
  onItem(item: Item | undefined): void;
  /** Called when a holder of this process has let the lease go. */
  onReleased(): void;
}

/**
 * The waiters of one client for one lease.
 *
 * Each has a ticket of its own, so that the order is kept among all callers, in all processes. They share what they see:
 * one look serves all of them, and one write renews the tickets of all. So they cost little more than one waiter.
 */
export class LocalWaiters {
  readonly reader: QueueReader;
  /** Callers of one process join one after the other, in the order of their calls. */
  readonly gate: FifoGate = new FifoGate();
  readonly #context: ProtocolContext;
  readonly #queue: QueueKey;
  readonly #waiters = new Set<LocalWaiter>();
  #latest: Item | undefined;

  constructor(context: ProtocolContext, queue: QueueKey) {
    this.#context = context;
    this.#queue = queue;
    this.reader = new QueueReader(context);
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

  /** Looks: 1 read, which may lag. */
  look(bounds: Bounds): Promise<Item | undefined> {
    const key = leaseItemKey(this.#queue.key, this.#queue.sortKey);
    return this.#context.table.get({ key, consistent: false }, bounds);
  }

  /** Looks, and renews the tickets of all: 1 write. */
  async lookAndRenew(own: TicketRenewal, bounds: Bounds): Promise<Item | undefined> {
    const all = [own];
    for (const waiter of this.#waiters) {
      const other = waiter.renewal();
      if (other !== undefined && other.id !== own.id && all.length < queueLimits.removalsPerWrite)
        all.push(other);
    }
    const { applied, item } = await this.#context.table.update(renewTickets(this.#queue, all), bounds);
    if (applied) for (const { confirmed } of all) confirmed();
    return item;
  }
}

/** The lines that each client knows; those in which one of its callers waits are in use. */
export const localWaiters: LeaseMemory<LocalWaiters> = new LeaseMemory(
  (context, key, sortKey) => new LocalWaiters(context, { key, sortKey }),
  (waiters) => !waiters.isEmpty,
);

/** Lets callers through one after the other, in the order of their calls. */
export class FifoGate {
  #last: Promise<void> = Promise.resolve();

  /** Enters: `before` resolves when every caller before has passed; call `pass` to let the next one through. */
  enter(): { readonly before: Promise<void>; readonly pass: () => void } {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = before.then(() => promise);
    return { before, pass: resolve };
  }
}
