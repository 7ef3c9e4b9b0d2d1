import { settled } from "@leasehold/client/testing";
import { Random } from "./random.ts";

/** The wall clocks' time when a simulation begins. */
export const epoch = Date.UTC(2026, 0, 1);

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** One line of the story that a failure tells. */
export interface Line {
  readonly at: number;
  readonly who: string;
  readonly text: string;
}

/** Virtual time: the one place where anything waits, and the only source of chance. */
export class World {
  readonly random: Random;
  readonly timeline: Line[] = [];
  /** True time in milliseconds since the beginning; no process sees it. */
  now = 0;
  readonly #events = new Set<Event>();
  #order = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** Lets something happen after a delay; gives a function that calls it off. */
  after(delayMs: number, run: () => void): () => void {
    this.#order += 1;
    const event = { at: this.now + Math.max(0, delayMs), order: this.#order, run };
    this.#events.add(event);
    return () => this.#events.delete(event);
  }

  tell(who: string, text: string): void {
    this.timeline.push({ at: this.now, who, text });
  }

  /** Runs event after event up to a time; after each, when every promise has settled, `observe` looks. */
  async run(until: number, observe: () => void): Promise<void> {
    for (;;) {
      await settled();
      observe();
      const next = this.#next();
      if (next === undefined || next.at > until) break;
      this.#events.delete(next);
      this.now = next.at;
      next.run();
    }
    this.now = until;
  }

  #next(): Event | undefined {
    let first: Event | undefined;
    for (const event of this.#events) {
      if (first === undefined || event.at < first.at || (event.at === first.at && event.order < first.order))
        first = event;
    }
    return first;
  }
}
