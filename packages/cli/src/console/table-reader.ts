// What the pages of the console read: the whole table, at most once in a while, and what else is asked for one page.

import type { LeaseClient } from "@leasehold/client";
import type { Connection } from "../connection.ts";
import type { Finding } from "../table/findings.ts";
import { pauseAfter } from "../view/read-cost.ts";
import { readTable, type TableSnapshot } from "../view/table-snapshot.ts";

/** How the console reads its table. */
export interface TableReaderOptions {
  /** The shortest pause between two looks. */
  readonly everyMs: number;
  /** The most read units a second: a larger table is read less often. */
  readonly mostUnitsPerSecond: number;
  readonly monotonicMs: () => number;
  /** The most items of one look. */
  readonly mostItems: number;
}

/** Reads the whole table, at most once in a while, however many tabs are open. */
export class TableReader {
  readonly #client: LeaseClient;
  readonly #options: TableReaderOptions;
  #last: { readonly at: number; readonly snapshot: Promise<TableSnapshot>; isOver: boolean } | undefined;
  #everyMs: number;

  constructor(client: LeaseClient, options: TableReaderOptions) {
    this.#client = client;
    this.#options = options;
    this.#everyMs = options.everyMs;
  }

  /** The pause between two looks, by the cost of the last look. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** The table as it is now, or as it was a moment ago. */
  async read(): Promise<TableSnapshot> {
    const { monotonicMs, mostItems } = this.#options;
    const now = monotonicMs();
    const last = this.#last;
    // A look may take longer than the pause: until its end, there is no other one.
    if (last !== undefined && !(last.isOver && now - last.at >= this.#everyMs)) return await last.snapshot;
    const snapshot = readTable(this.#client, { mostItems });
    const next = { at: now, snapshot, isOver: false };
    this.#last = next;
    // Ignored: the reader gets the error. A failed look is not kept, so that its error does not stay on the page.
    snapshot.then(
      ({ cost }) => {
        next.isOver = true;
        this.#everyMs = pauseAfter(cost, this.#options);
      },
      () => {
        if (this.#last === next) this.forget();
      },
    );
    return await snapshot;
  }

  /** Makes the next look read again, after a write. */
  forget(): void {
    this.#last = undefined;
  }
}

/** The sources of the pages. */
export interface PageContext {
  readonly reader: TableReader;
  readonly isReadOnly: boolean;
  readonly connection: Connection;
  /** The findings on the table's settings. */
  readonly health: () => Promise<readonly Finding[]>;
}
