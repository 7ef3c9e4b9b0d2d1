import type { LeaseClient } from "@leasehold/client";
import { pauseAfter } from "../view/read-cost.ts";
import { readTable, type TableSnapshot } from "../view/table-snapshot.ts";

/** How the console reads its table. */
export interface TableReaderOptions {
  /** How often it looks, at most. */
  readonly everyMs: number;
  /** Read units a second, at most: a larger table is looked at less often. */
  readonly mostUnitsPerSecond: number;
  readonly monotonicMs: () => number;
  /** Items that may be read in one look. */
  readonly mostItems: number;
}

/** Reads the whole table, at most once in a while however many tabs are open. */
export class TableReader {
  readonly #client: LeaseClient;
  readonly #options: TableReaderOptions;
  #last: { readonly at: number; readonly snapshot: Promise<TableSnapshot> } | undefined;
  #everyMs: number;

  constructor(client: LeaseClient, options: TableReaderOptions) {
    this.#client = client;
    this.#options = options;
    this.#everyMs = options.everyMs;
  }

  /** How often it looks, by what the last look has cost. */
  get everyMs(): number {
    return this.#everyMs;
  }

  /** The table as it is now, or as it was a moment ago. */
  async read(): Promise<TableSnapshot> {
    const { monotonicMs, mostItems } = this.#options;
    const now = monotonicMs();
    if (this.#last === undefined || now - this.#last.at >= this.#everyMs) {
      const snapshot = readTable(this.#client, { mostItems });
      this.#last = { at: now, snapshot };
      // Ignored: the reader gets the error. A look that has failed is not kept, or its error would stay on the page.
      snapshot.then(
        ({ cost }) => {
          this.#everyMs = pauseAfter(cost, this.#options);
        },
        () => this.forget(),
      );
    }
    return await this.#last.snapshot;
  }

  /** The next look reads again: something was written. */
  forget(): void {
    this.#last = undefined;
  }
}
