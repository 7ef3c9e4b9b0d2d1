import { labelled, plainFields, type RecordKind } from "./record-kinds.ts";
import { type Column, tableLines } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { jsonText, shown } from "./text.ts";

/** The formats that a list can be printed in. */
export type OutputFormat = "table" | "wide" | "json" | "ndjson" | "tsv" | "key";

/** A list, and how it is shown. */
export interface Listing<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly kind: RecordKind;
  /** A row for other programs: epoch milliseconds, full tokens and numbers. @default - the row itself */
  readonly record?: (row: Row) => object;
  /** A row's name for `--output key`. */
  readonly key: (row: Row) => string;
}

/** Prints lists and documents in one format, so that every command speaks all of them. */
export class Printer {
  readonly format: OutputFormat;
  readonly #terminal: Terminal;
  /** Whether keys are printed unchanged. */
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

  list<Row>(listing: Listing<Row>): void {
    if (this.format === "key") this.keys(listing.rows.map(listing.key));
    // Empty cells at the end of a line are cells, too.
    else if (this.format === "tsv") for (const line of this.#linesOf(listing)) this.#terminal.print(line);
    else for (const line of this.#linesOf(listing)) this.#print(line);
  }

  /** Prints keys, one a line: with characters that a terminal interprets written out, or unchanged. */
  keys(keys: readonly string[]): void {
    for (const key of keys) this.#isRaw ? this.#terminal.printRaw(key) : this.#terminal.print(shown(key));
    const altered = this.#isRaw ? 0 : keys.filter((key) => shown(key) !== key).length;
    if (altered > 0) {
      const what = `${altered} ${altered === 1 ? "key is" : "keys are"}`;
      this.#terminal.say(`leasehold: ${what} not written as in the table: -0 gives them as they are`);
    }
  }

  #linesOf<Row>({ rows, columns, kind, record = (row) => row as object }: Listing<Row>): readonly string[] {
    switch (this.format) {
      case "json":
        return [
          jsonText(
            rows.map((row) => labelled(kind, record(row))),
            2,
          ),
        ];
      case "ndjson":
        return rows.map((row) => jsonText(labelled(kind, record(row))));
      case "tsv": {
        const fields = plainFields(kind);
        const values = rows.map((row) => {
          const given = record(row) as Readonly<Record<string, unknown>>;
          return fields.map((field) => shown(String(given[field] ?? "")));
        });
        return [fields, ...values].map((cells) => cells.join("\t"));
      }
      default: {
        if (rows.length === 0) return [];
        const { paint } = this.#terminal;
        const width = this.format === "wide" ? Number.POSITIVE_INFINITY : this.#terminal.columns;
        const visible = columns.filter(({ from = 0 }) => from <= width);
        return tableLines(rows, visible, { width, paint });
      }
    }
  }

  /** Prints one document: as lines for people, else as JSON. */
  document(kind: RecordKind, record: object, lines: () => readonly string[]): void {
    if (this.isForPeople) for (const line of lines()) this.#print(line);
    else this.#print(jsonText(labelled(kind, record), this.format === "json" ? 2 : undefined));
  }

  #print(line: string): void {
    this.#terminal.print(line.trimEnd());
  }
}
