import { type Cell, type Column, tableLines } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { jsonText, shown } from "./text.ts";

/** The formats that a list can be printed in. */
export type OutputFormat = "table" | "wide" | "json" | "ndjson" | "tsv" | "key";

/** A list, and how it is shown. */
export interface Listing<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** What a row is for other programs; epoch milliseconds, full tokens and numbers. */
  readonly record: (row: Row) => object;
  /** A row's name for `--output key`. */
  readonly key: (row: Row) => string;
}

/** Prints lists and documents in one format, so that every command speaks all of them. */
export class Printer {
  readonly format: OutputFormat;
  readonly #terminal: Terminal;
  /** Whether keys are printed as they are. */
  readonly #isRaw: boolean;

  constructor(terminal: Terminal, format: OutputFormat, isRaw = false) {
    this.#terminal = terminal;
    this.format = format;
    this.#isRaw = isRaw;
  }

  /** Whether a person reads it: a table, not records. */
  get isForPeople(): boolean {
    return this.format === "table" || this.format === "wide";
  }

  /** Prints a list. */
  list<Row>(listing: Listing<Row>): void {
    if (this.format === "key") this.keys(listing.rows.map(listing.key));
    else for (const line of this.#linesOf(listing)) this.#print(line);
  }

  /** Prints keys: a line for each, where what a terminal would act on is written out; or as they are. */
  keys(keys: readonly string[]): void {
    for (const key of keys) this.#isRaw ? this.#terminal.printRaw(key) : this.#terminal.print(shown(key));
    const altered = this.#isRaw ? 0 : keys.filter((key) => shown(key) !== key).length;
    if (altered > 0) {
      const what = `${altered} ${altered === 1 ? "key is" : "keys are"}`;
      this.#terminal.say(`leasehold: ${what} not written as in the table: -0 gives them as they are`);
    }
  }

  #linesOf<Row>({ rows, columns, record }: Listing<Row>): readonly string[] {
    switch (this.format) {
      case "json":
        return [jsonText(rows.map(record), 2)];
      case "ndjson":
        return rows.map((row) => jsonText(record(row)));
      case "tsv": {
        const values = rows.map((row) =>
          columns.map(({ cell, full }) => shown(full?.(row) ?? textOf(cell(row)))),
        );
        return [columns.map(({ title }) => title), ...values].map((cells) => cells.join("\t"));
      }
      default: {
        if (rows.length === 0) return [];
        const isWide = this.format === "wide";
        const { paint, columns: width } = this.#terminal;
        if (isWide) return tableLines(rows, columns.map(atFullLength), { paint });
        const visible = columns.filter(({ wide, from = 0 }) => wide !== true && from <= width);
        return tableLines(rows, visible, { width, paint });
      }
    }
  }

  /** Prints one document: as lines for people, else as JSON. */
  document(record: object, lines: () => readonly string[]): void {
    if (this.isForPeople) for (const line of lines()) this.#print(line);
    else this.#print(jsonText(record, this.format === "json" ? 2 : undefined));
  }

  #print(line: string): void {
    this.#terminal.print(line.trimEnd());
  }
}

function atFullLength<Row>(column: Column<Row>): Column<Row> {
  const { full, cell } = column;
  if (full === undefined) return column;
  return {
    ...column,
    cell: (row) => {
      const given = cell(row);
      return typeof given === "string" ? full(row) : { ...given, text: full(row) };
    },
  };
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}
