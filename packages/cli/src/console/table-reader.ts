// What the pages of the console read: the whole table, at most once in a while, and what else is asked for one page.

import type { LeaseClient } from "@leasehold/client";
import type { Connection } from "../connection.ts";
import type { Finding } from "../table/findings.ts";
import { type Primitive, primitivesOf } from "../view/key-rows.ts";
import { pauseAfter } from "../view/read-cost.ts";
import { readTable, type TableSnapshot } from "../view/table-snapshot.ts";
import type { Page } from "./layout.ts";
import type { PageRequest } from "./server.ts";

export interface TableReaderOptions {
  /** The shortest pause between two looks. */
  readonly everyMs: number;
  /** The most read units a second: a larger table is read less often. */
  readonly mostUnitsPerSecond: number;
  readonly monotonicMs: () => number;
  /** The most items of one look. */
  readonly mostItems: number;
}

/** An answer that is kept for a while, however often it is asked for. A failed one is not kept. */
export class Kept<T> {
  readonly #ask: () => Promise<T>;
  readonly #forMs: () => number;
  readonly #monotonicMs: () => number;
  #last: { readonly at: number; readonly answer: Promise<T>; isOver: boolean } | undefined;

  constructor(ask: () => Promise<T>, forMs: () => number, monotonicMs: () => number) {
    this.#ask = ask;
    this.#forMs = forMs;
    this.#monotonicMs = monotonicMs;
  }

  /** The answer as it is now, or as it was a moment ago. */
  get(): Promise<T> {
    const now = this.#monotonicMs();
    const last = this.#last;
    // An answer may take longer than it is kept: until it is there, there is no other question.
    if (last !== undefined && !(last.isOver && now - last.at >= this.#forMs())) return last.answer;
    const next = { at: now, answer: this.#ask(), isOver: false };
    this.#last = next;
    // Ignored: who has asked gets the error.
    next.answer.then(
      () => {
        next.isOver = true;
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

/** Reads the whole table, at most once in a while, however many tabs are open. */
export class TableReader {
  readonly #snapshot: Kept<TableSnapshot>;
  #everyMs: number;

  constructor(client: LeaseClient, options: TableReaderOptions) {
    this.#everyMs = options.everyMs;
    const read = async (): Promise<TableSnapshot> => {
      const snapshot = await readTable(client, options);
      this.#everyMs = pauseAfter(snapshot.cost, options);
      return snapshot;
    };
    this.#snapshot = new Kept(read, () => this.#everyMs, options.monotonicMs);
  }

  /** The pause between two looks, by the cost of the last look. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** The table as it is now, or as it was a moment ago. */
  read(): Promise<TableSnapshot> {
    return this.#snapshot.get();
  }

  /** The keys with items of a primitive. */
  async keysOf(primitive: Primitive): Promise<readonly string[]> {
    const { keys } = await this.read();
    return keys.filter((key) => primitivesOf(key).includes(primitive)).map(({ key }) => key);
  }

  /** Makes the next look read again, after a write. */
  forget(): void {
    this.#snapshot.forget();
  }
}

export interface PageContext {
  readonly reader: TableReader;
  readonly isReadOnly: boolean;
  readonly connection: Connection;
  /** The findings on the table's settings. */
  readonly health: Kept<readonly Finding[]>;
}

/** Makes a page; undefined for an address that names nothing. */
export type MakePage = (request: PageRequest, context: PageContext) => Promise<Page | undefined>;
