import type { Moment } from "../../base/clock.ts";
import type { ServiceClock } from "../../base/service-clock.ts";
import type { CacheEntry } from "./entry.ts";

/** What the cache held at some time after a moment. */
export interface CacheLook {
  /** Undefined if it had no value. */
  readonly entry: CacheEntry | undefined;
  /** Before the request was sent. */
  readonly at: Moment;
}

interface Kept {
  readonly entry: CacheEntry;
  readonly at: Moment;
  /** How long after the moment the value may be given: while it is fresh, and for `inProcessForMs`. */
  readonly forMs: number;
}

/** A map of limited size: the entry that was not used for the longest time goes first. */
export class RecentlyUsed<Value> {
  readonly #most: number;
  readonly #values = new Map<string, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    // A Map keeps the order in which its keys were added.
    this.#values.delete(key);
    this.#values.set(key, value);
    const [first] = this.#values.keys();
    if (this.#values.size > this.#most && first !== undefined) this.#values.delete(first);
  }

  delete(key: string): void {
    this.#values.delete(key);
  }
}

/**
 * The values that a process has read or stored a moment ago, in front of the cache.
 *
 * A value's age counts from before it was read, by the local clock that shows the most time: a process that was frozen
 * finds its values old.
 */
export class ProcessMemory {
  readonly #clock: ServiceClock;
  readonly #forMs: number;
  readonly #kept: RecentlyUsed<Kept>;

  constructor(
    clock: ServiceClock,
    { inProcessForMs, maxInProcess }: { readonly inProcessForMs: number; readonly maxInProcess: number },
  ) {
    this.#clock = clock;
    this.#forMs = inProcessForMs;
    this.#kept = new RecentlyUsed(maxInProcess);
  }

  /** Gives the key's value if it is fresh, and was looked at less than `forMs` ago. */
  get(key: string, forMs: number): CacheEntry | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    return this.#clock.elapsedSince(kept.at) < Math.min(forMs, kept.forMs) ? kept.entry : undefined;
  }

  /** Keeps what a look has shown. One that overlapped a later computation's store may show an earlier value. */
  keep(key: string, { entry, at }: CacheLook): void {
    if (entry === undefined) {
      this.#kept.delete(key);
      return;
    }
    const kept = this.get(key, this.#forMs);
    if (this.#forMs === 0 || (kept !== undefined && kept.fencingToken > entry.fencingToken)) return;
    const freshForMs = entry.freshUntil - this.#clock.timeOf(at);
    this.#kept.set(key, { entry, at, forMs: Math.min(this.#forMs, freshForMs) });
  }

  forget(key: string): void {
    this.#kept.delete(key);
  }
}
