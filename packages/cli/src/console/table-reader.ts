// What the pages of the console read: the whole table, at most once in a while, and what else is asked for one page.

import type { Connection } from "../connection.ts";
import type { Finding } from "../table/findings.ts";
import type { TableSnapshot } from "../view/table-snapshot.ts";
import type { Page } from "./layout.ts";
import type { PageRequest } from "./server.ts";

/** An answer that is kept for a while, however often it is asked for. A failed one is not kept. */
export class Kept<T> {
  readonly #ask: () => Promise<T>;
  readonly #forMsOf: (answer: T) => number;
  readonly #monotonicMs: () => number;
  #forMs: number;
  #last: { readonly at: number; readonly answer: Promise<T>; isOver: boolean } | undefined;

  /** An answer is kept for as long as it says itself; `forMs` stands for that until there is one. */
  constructor(
    ask: () => Promise<T>,
    forMsOf: (answer: T) => number,
    monotonicMs: () => number,
    forMs: number = 0,
  ) {
    this.#ask = ask;
    this.#forMsOf = forMsOf;
    this.#monotonicMs = monotonicMs;
    this.#forMs = forMs;
  }

  /** How long the last answer is kept. */
  get forMs(): number {
    return this.#forMs;
  }

  /** The answer as it is now, or as it was a moment ago. */
  get(): Promise<T> {
    const now = this.#monotonicMs();
    const last = this.#last;
    // An answer may take longer than it is kept: until it is there, there is no other question.
    if (last !== undefined && !(last.isOver && now - last.at >= this.#forMs)) return last.answer;
    const next = { at: now, answer: this.#ask(), isOver: false };
    this.#last = next;
    // Ignored: who has asked gets the error.
    next.answer.then(
      (answer) => {
        next.isOver = true;
        this.#forMs = this.#forMsOf(answer);
      },
      () => {
        if (this.#last === next) this.forget();
      },
    );
    return next.answer;
  }

  /** Makes the next question ask again. */
  forget(): void {
    this.#last = undefined;
  }
}

export interface PageContext {
  /** The table as it is now, or as it was a moment ago, however many tabs are open. */
  readonly table: Kept<TableSnapshot>;
  readonly isReadOnly: boolean;
  readonly connection: Connection;
  /** The findings on the table's settings. */
  readonly health: Kept<readonly Finding[]>;
}

/** Makes a page; undefined for an address that names nothing. */
export type MakePage = (request: PageRequest, context: PageContext) => Promise<Page | undefined>;
