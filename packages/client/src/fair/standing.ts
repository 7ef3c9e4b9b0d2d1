import type { ProtocolContext } from "../protocol/context.ts";
import { type Outlook, paceMs } from "./pace.ts";
import { placeText, type QueuePlace, shortOwner } from "./queue.ts";
import { isOlder, type Observer, type Sighting } from "./sighting.ts";

/** A place lasts this much longer than its waiter means to sleep: so long a dead head keeps the others waiting. */
export const placeLeaseMs = 10_000;

/** A place as it is to be written. */
export interface NewPlace {
  readonly text: string;
  /** In epoch milliseconds. */
  readonly until: number;
  /** The same on the monotonic clock. */
  readonly ends: number;
}

/** Where one waiter stands, by what it has seen last. */
export class Standing {
  readonly #id: string;
  readonly #owner: string;
  readonly #context: ProtocolContext;
  readonly #observer: Observer;
  readonly #since: number;
  #sighting: Sighting | undefined;

  constructor(id: string, owner: string, context: ProtocolContext, observer: Observer) {
    this.#id = id;
    this.#owner = shortOwner(owner);
    this.#context = context;
    this.#observer = observer;
    this.#since = context.clock.now();
  }

  get sighting(): Sighting | undefined {
    return this.#sighting;
  }

  /** Takes a sighting on, unless it is a read's or another one's and older than the last; tells whether it did. */
  learn(sighting: Sighting | undefined, isOwnWrite = false): boolean {
    if (!isOwnWrite && sighting !== undefined && isOlder(sighting.item, this.#sighting?.item)) return false;
    this.#sighting = sighting;
    return true;
  }

  ownPlace(): QueuePlace | undefined {
    return this.#sighting?.places.find(({ id }) => id === this.#id);
  }

  /** The places that come before ours, or all while we have none. */
  ahead(): readonly QueuePlace[] {
    const { places = [] } = this.#sighting ?? {};
    const ticket = this.ownPlace()?.ticket ?? Number.POSITIVE_INFINITY;
    return places.filter((place) => place.ticket < ticket);
  }

  isOver(place: QueuePlace): boolean {
    return this.#observer.lapses.lapsesIn(place) <= 0;
  }

  /** In how many milliseconds nobody is ahead of us any more, if no place is prolonged. */
  aheadLapseIn(): number {
    return Math.max(0, ...this.ahead().map((place) => this.#observer.lapses.lapsesIn(place)));
  }

  /** Whether the lock can be had, and nobody who lives is ahead. */
  isNext(): boolean {
    const claimableAt = this.#sighting?.claimableAt ?? Number.POSITIVE_INFINITY;
    return claimableAt <= this.#context.clock.monotonic() && this.aheadLapseIn() <= 0;
  }

  outlook(): Outlook {
    const { record, typicalMs } = this.#sighting ?? {};
    const place = 1 + this.ahead().filter((other) => !this.isOver(other)).length;
    const heldMs = record && Math.max(0, this.#context.clock.now() - record.acquiredAt);
    return { place, typicalMs, heldMs };
  }

  /** How long to sleep before the next look, here or at another place. */
  paceMs(place?: number): number {
    const outlook = this.outlook();
    return paceMs(place === undefined ? outlook : { ...outlook, place });
  }

  /** A place that lasts over the next sleep, but not much beyond the patience that is left. */
  newPlace(leftMs: number): NewPlace {
    const { clock } = this.#context;
    const ends = clock.monotonic();
    const leaseMs = Math.min(this.paceMs(), Math.max(leftMs, 0)) + placeLeaseMs;
    const until = clock.now() + leaseMs;
    const place = { since: this.#since, until, leaseMs, owner: this.#owner };
    return { text: placeText(place), until, ends: ends + leaseMs };
  }
}
