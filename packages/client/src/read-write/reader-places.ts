import { LeaseLostError } from "../errors/errors.ts";
import type { Lease } from "../lease.ts";
import { mostReaders } from "../schema-read-write.ts";

/** Readers choose among this many places at first: two of 10 readers meet at one in about 1 of 6 cases. */
const firstSpan = 256;
const growth = 4;

/**
 * Where the readers of one object have their leases, and where the next one tries. Hints all.
 *
 * Places are used again, so that a writer's query stays as small as the number of readers at a time, not as large as
 * the number of all that ever were.
 */
export class ReaderPlaces {
  readonly #taken = new Set<number>();
  readonly #held = new Map<number, { readonly owner: string; readonly signal: AbortSignal }>();
  /** Released here, the last one at the end: likely to be free still. */
  readonly #released: number[] = [];
  #span = firstSpan;

  /** Gives a place to try: the one that was released here last, or a random one. Undefined where this object has all. */
  take(fraction: number): number | undefined {
    const place = this.#choose(fraction);
    if (place !== undefined) this.#taken.add(place);
    return place;
  }

  /** Somebody else has a place that was tried: the next choice is made among more of them. */
  widen(): void {
    this.#span = Math.min(this.#span * growth, mostReaders);
  }

  /** The attempts at these places are over. */
  giveBack(places: readonly number[]): void {
    for (const place of places) this.#taken.delete(place);
  }

  /** A reader has it until its lease ends. */
  won(place: number, { owner, signal }: Lease): void {
    if (signal.aborted || this.#held.get(place)?.signal === signal) return;
    this.#held.set(place, { owner, signal });
    const onEnd = (): void => {
      if (this.#held.get(place)?.signal === signal) this.#held.delete(place);
      const { reason } = signal;
      if (reason instanceof LeaseLostError && reason.reason === "released") this.#released.push(place);
    };
    signal.addEventListener("abort", onEnd, { once: true });
  }

  /** Whether this owner holds a read lock through this object. */
  isReading(owner: string): boolean {
    return [...this.#held.values()].some((held) => held.owner === owner && !held.signal.aborted);
  }

  #choose(fraction: number): number | undefined {
    for (let place = this.#released.pop(); place !== undefined; place = this.#released.pop()) {
      if (!this.#isBusy(place)) return place;
    }
    if (this.#held.size + this.#taken.size >= this.#span) this.widen();
    const start = Math.floor(fraction * this.#span);
    for (let step = 0; step < this.#span; step += 1) {
      const place = (start + step) % this.#span;
      if (!this.#isBusy(place)) return place;
    }
    return undefined;
  }

  #isBusy(place: number): boolean {
    return this.#taken.has(place) || this.#held.has(place);
  }
}
