import type { ProtocolContext } from "../protocol/context.ts";
import { claimableIn } from "../protocol/expiry-detector.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { attributeNames } from "../schema.ts";
import type { Item } from "../store.ts";
import { Lapses } from "./lapses.ts";
import { lastTicketOf, type QueuePlace, readQueue, typicalHold } from "./queue.ts";

/** The lock and its queue as one answer has shown them. */
export interface Sighting {
  readonly item: Item | undefined;
  /** Undefined while nobody holds the lock. */
  readonly record: LeaseRecord | undefined;
  /** In the order of their tickets, those whose time is over included. */
  readonly places: readonly QueuePlace[];
  readonly typicalMs: number | undefined;
  /** When the lock can be had if nothing changes, on the monotonic clock. */
  readonly claimableAt: number;
}

/** Reads answers. One for each lock: it remembers for how long things have stayed unchanged. */
export class Observer {
  readonly lapses: Lapses;
  readonly #context: ProtocolContext;
  #typicalMs: number | undefined;

  constructor(context: ProtocolContext) {
    this.#context = context;
    this.lapses = new Lapses(context.clock, context.clockSkewMs);
  }

  /** For how long a holder typically holds the lock, by the last answer; undefined while nothing is known of it. */
  get typicalMs(): number | undefined {
    return this.#typicalMs;
  }

  /** Reads an answer that has just come. Call it once for each. */
  see(item: Item | undefined): Sighting {
    const record = readRecord(item);
    return this.#sighting(item, record && claimableIn(this.#context.detector.judge(record)));
  }

  /** The places whose time is not over, of what has been seen last. */
  living(places: readonly QueuePlace[]): QueuePlace[] {
    return places.filter((place) => this.lapses.lapsesIn(place) > 0);
  }

  /** Reads a refusal, which has been judged already. */
  seeRefused(item: Item | undefined, claimableInMs: number): Sighting {
    return this.#sighting(item, claimableInMs);
  }

  #sighting(item: Item | undefined, claimableInMs = 0): Sighting {
    const places = readQueue(item);
    this.lapses.see(places);
    const claimableAt = this.#context.clock.monotonic() + claimableInMs;
    const typicalMs = typicalHold(item);
    this.#typicalMs = typicalMs;
    return { item, record: readRecord(item), places, typicalMs, claimableAt };
  }
}

/** Whether an answer is older than another one: a read may lag, and answers overtake each other. */
export function isOlder(one: Item | undefined, other: Item | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const fence = (item: Item): number => Number(item[attributeNames.fence] ?? 0);
  if (fence(one) !== fence(other)) return fence(one) < fence(other);
  return (lastTicketOf(one) ?? 0) < (lastTicketOf(other) ?? 0);
}
