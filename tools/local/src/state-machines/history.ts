// The history of an execution, of which only the length and the entered states are kept.

import { statesLimits } from "./definition.ts";

/** A state that an execution entered. A retry of its work does not enter it again. */
export interface EnteredState {
  readonly stateName: string;
  readonly type: string;
  /** ISO time. */
  readonly at: string;
  /** The number of the event. */
  readonly event: number;
}

/** What an execution went through, counted as Step Functions counts it. */
export interface ExecutionHistory {
  /** The number of events so far; 25,000 end the execution. */
  readonly events: number;
  /** The number of events of each type, such as `TaskScheduled`. */
  readonly counts: Readonly<Record<string, number>>;
  /** The states in the order in which they were entered: their number is that of the state transitions, retries aside. */
  readonly entered: readonly EnteredState[];
}

/**
 * Counts the events of one execution. It keeps the states that were entered and drops the other events' contents:
 * a keeper's history is read for its length.
 */
export class History {
  readonly #counts = new Map<string, number>();
  readonly #entered: EnteredState[] = [];
  readonly #onFull: () => void;
  #events = 0;
  #closed = false;

  /** @param onFull is called, once, in place of the event that there is no room for */
  constructor(onFull: () => void) {
    this.#onFull = onFull;
  }

  /** Adds an event, unless the execution has ended. */
  add(type: string): void {
    if (this.#closed) return;
    if (this.#events >= statesLimits.historyEvents - 1) this.#onFull();
    else this.#count(type);
  }

  /** Adds the event of a state that is entered, and gives its number. */
  enter(stateName: string, type: string, at: string): number {
    this.add(`${type}StateEntered`);
    if (!this.#closed) this.#entered.push({ stateName, type, at, event: this.#events });
    return this.#events;
  }

  /** Goes on after the last event, for an execution that was redriven. */
  reopen(type: string): void {
    this.#closed = false;
    this.add(type);
  }

  /** Adds the last event; there is always room for it. */
  close(type: string): void {
    this.#count(type);
    this.#closed = true;
  }

  snapshot(): ExecutionHistory {
    return {
      events: this.#events,
      counts: Object.fromEntries(this.#counts),
      entered: [...this.#entered],
    };
  }

  #count(type: string): void {
    this.#events += 1;
    this.#counts.set(type, (this.#counts.get(type) ?? 0) + 1);
  }
}
