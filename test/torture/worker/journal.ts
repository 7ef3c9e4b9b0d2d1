import { closeSync, openSync, writeSync } from "node:fs";
import {
  type Details,
  type Entry,
  type EventName,
  type HoldTerms,
  microseconds,
  type Outcome,
  type Subject,
} from "../history.ts";

/** Ends a call in the journal. */
export type Answer = (outcome: Outcome, details?: Details) => void;

/** What the journal asks of something that is held. */
export interface Holdable {
  readonly held: boolean;
}

/**
 * Writes down what its process does, each entry at once: the system has it even if the process is killed at its next step.
 * A call is written before it begins, an answer after it has come.
 */
export class Journal {
  readonly #file: number;
  #ids = 0;

  constructor(file: string) {
    this.#file = openSync(file, "a");
  }

  /** Begins a call; the function that it gives ends it, and its id stands for it. */
  call(
    subject: Subject,
    action: string,
    key: string,
    details: Details = {},
  ): Answer & { readonly id: number } {
    const id = this.#nextId();
    this.#write({ type: "call", at: microseconds(), id, subject, action, key, details });
    const answer: Answer = (outcome, results = {}) =>
      this.#write({ type: "answer", at: microseconds(), id, outcome, details: results });
    return Object.assign(answer, { id });
  }

  /** The caller of a call has just heard that it stands in line. */
  joined(id: number): void {
    this.#write({ type: "joined", at: microseconds(), id });
  }

  /** Something was granted. */
  hold(terms: HoldTerms): number {
    const id = this.#nextId();
    this.#write({ type: "hold", at: microseconds(), id, ...terms });
    return id;
  }

  /** Asks whether it is held, and writes the answer down with the time before the question. */
  ask(id: number, lease: Holdable): boolean {
    const before = microseconds();
    const { held } = lease;
    this.#write(held ? { type: "held", at: before, id } : { type: "lost", at: microseconds(), id });
    return held;
  }

  /** Something happened to this process, or to another one. */
  event(event: EventName, details: Details = {}, process?: string): void {
    this.#write({
      type: "event",
      at: microseconds(),
      event,
      ...(process !== undefined && { process }),
      details,
    });
  }

  close(): void {
    closeSync(this.#file);
  }

  #nextId(): number {
    this.#ids += 1;
    return this.#ids;
  }

  #write(entry: Entry): void {
    writeSync(this.#file, `${JSON.stringify(entry)}\n`);
  }
}
