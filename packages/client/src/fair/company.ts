import type { LeaseAddress } from "../expressions.ts";
import { keep, lockWithQueue, type WrittenPlace } from "../expressions-fair.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { fairLimits } from "../schema-fair.ts";
import { withBudget } from "../time/budget.ts";
import { type Arrival, Arrivals } from "./arrivals.ts";
import { isOlder, Observer, type Sighting } from "./sighting.ts";

/** A place with a longer lease, and what to do once the table has it. */
export interface Prolonged {
  readonly place: WrittenPlace & { readonly ticket: number };
  readonly confirmed: () => void;
}

/** A waiter of this process, as the others see it. */
export interface Companion {
  /** What would prolong its place; undefined while it has none. */
  prolonged(): Prolonged | undefined;
  /** Called with what another one's request has shown. */
  notice(sighting: Sighting): void;
  /** Called when somebody here has let the lock go. */
  released(): void;
}

/**
 * The waiters for one lock in one process.
 *
 * Each has a place of its own, so that the order is kept among all callers, wherever they are. They share what they
 * see: whoever looks, looks for all, and whoever prolongs its place, prolongs all. So they cost little more than one.
 */
export class Company {
  readonly observer: Observer;
  readonly #context: ProtocolContext;
  readonly #lock: LeaseAddress;
  readonly #companions = new Set<Companion>();
  readonly #arrivals = new Arrivals();
  #latest: Sighting | undefined;

  constructor(context: ProtocolContext, lock: LeaseAddress) {
    this.#context = context;
    this.#lock = lock;
    this.observer = new Observer(context);
  }

  /** Whether nobody here waits. */
  get isEmpty(): boolean {
    return this.#companions.size === 0;
  }

  /** What the last answer has shown, while somebody here has a place; undefined otherwise. */
  get latest(): Sighting | undefined {
    const isQueuing = [...this.#companions].some((companion) => companion.prolonged() !== undefined);
    return isQueuing ? this.#latest : undefined;
  }

  /** Callers of one process arrive one after the other. */
  arrive(): Arrival {
    return this.#arrivals.arrive();
  }

  add(companion: Companion): void {
    this.#companions.add(companion);
  }

  remove(companion: Companion): void {
    this.#companions.delete(companion);
    if (this.#companions.size === 0) this.#latest = undefined;
  }

  /** Tells the others what an answer has shown. */
  spread(sighting: Sighting, from: Companion): void {
    if (isOlder(sighting.item, this.#latest?.item)) return;
    this.#latest = sighting;
    for (const companion of this.#companions) if (companion !== from) companion.notice(sighting);
  }

  /** Tells the waiters here that the lock was let go here: if one is at the head, it need not look first. */
  released(): void {
    for (const companion of this.#companions) companion.released();
  }

  /** Looks at the lock: 1 read, which may lag. */
  async look(budgetMs: number, signal: AbortSignal | undefined): Promise<Sighting> {
    const { clock, store } = this.#context;
    const request = lockWithQueue(this.#lock, false);
    const item = await withBudget(clock, budgetMs, signal, (call) => store.get(request, call));
    return this.observer.see(item);
  }

  /** Looks at the lock and prolongs the places of all: 1 write. */
  async lookAndKeep(own: Prolonged, budgetMs: number, signal: AbortSignal | undefined): Promise<Sighting> {
    const { clock, store } = this.#context;
    const all = [own];
    for (const companion of this.#companions) {
      const other = companion.prolonged();
      const isFurther = other !== undefined && other.place.id !== own.place.id;
      if (isFurther && all.length < fairLimits.removalsPerWrite) all.push(other);
    }
    const places = all.map(({ place }) => place);
    const request = keep(this.#lock, places);
    const result = await withBudget(clock, budgetMs, signal, (call) => store.update(request, call));
    if (result.applied) for (const { confirmed } of all) confirmed();
    return this.observer.see(result.item);
  }
}
