// Aligned tables. Every cell is shown as text, whatever it contains. If the table is too wide for the terminal, one
// column is cut.

import { cut, shown, widthOf } from "./text.ts";

/** How a piece of text is coloured. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "magenta" | "cyan";

/** A cell: its text, or its text and how it is coloured. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** One column. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Cell;
  /** @default "left" */
  readonly align?: "left" | "right";
  /** Whether it shrinks on a narrow terminal: the widest of these columns is cut first. @default false */
  readonly gives?: boolean;
  /**
   * How dispensable it is: if others would be cut, the columns with the largest number are left out first.
   * @default 0, stays
   */
  readonly less?: number;
  /** Only in wide tables. @default false */
  readonly wide?: boolean;
  /** Only if the terminal has at least this many columns. @default 0 */
  readonly from?: number;
  /** The text of a cell in wide tables. @default - as everywhere */
  readonly full?: (row: Row) => string;
}

export type Paint = (style: Style, text: string) => string;

const gap = 2;
const leastColumn = 6;

/** Renders rows under their titles, one a line. With `columns`, no line is wider than that. */
export function tableLines<Row>(
  rows: readonly Row[],
  given: readonly Column<Row>[],
  { width = Number.POSITIVE_INFINITY, paint }: { readonly width?: number; readonly paint: Paint },
): string[] {
  const columns = neededColumns(rows, given, width);
  const cells = rows.map((row) =>
    columns.map(({ cell }) => {
      const given = cell(row);
      return typeof given === "string"
        ? { text: shown(given), style: undefined }
        : { text: shown(given.text), style: given.style };
    }),
  );
  const widths = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf(row[index]?.text ?? ""))),
  );
  narrow(widths, columns, width);
  const line = (parts: readonly { readonly text: string; readonly style: Style | undefined }[]): string =>
    parts
      .map(({ text, style }, index) => {
        const fitted = cut(text, widths[index] ?? 0);
        const blanks = " ".repeat(Math.max(0, (widths[index] ?? 0) - widthOf(fitted)));
        const painted = style === undefined ? fitted : paint(style, fitted);
        const isLast = index === parts.length - 1;
        return columns[index]?.align === "right" ? blanks + painted : painted + (isLast ? "" : blanks);
      })
      .join(" ".repeat(gap));
  const titles = columns.map(({ title }) => ({ text: title, style: "dim" as const }));
  return [line(titles), ...cells.map(line)];
}

/** A name shorter than this says little, so dispensable columns are left out first. */
const roomForNames = 32;

/** Leaves out dispensable columns until the others have enough room. */
function neededColumns<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number,
): readonly Column<Row>[] {
  const wanted = ({ title, cell, gives, less = 0 }: Column<Row>): number => {
    const most = gives ? (less > 0 ? leastColumn : roomForNames) : Number.POSITIVE_INFINITY;
    const texts = rows.map((row) => {
      const given = cell(row);
      return widthOf(shown(typeof given === "string" ? given : given.text));
    });
    return Math.min(most, Math.max(widthOf(title), ...texts));
  };
  const kept = columns.map((column) => ({ column, wanted: wanted(column) }));
  const total = (): number => kept.reduce((sum, one) => sum + one.wanted + gap, -gap);
  while (total() > width) {
    const least = kept.reduce((most, { column }) => Math.max(most, column.less ?? 0), 0);
    if (least === 0) break;
    kept.splice(
      kept.findLastIndex(({ column }) => column.less === least),
      1,
    );
  }
  return kept.map(({ column }) => column);
}

/** Shrinks the columns that may shrink, the widest first, until the line fits; then all columns. */
function narrow(
  widths: number[],
  columns: readonly { readonly gives?: boolean; readonly less?: number }[],
  width: number,
): void {
  const total = (): number => widths.reduce((sum, one) => sum + one + gap, -gap);
  const stages = [
    (index: number) => columns[index]?.gives === true && columns[index].less !== undefined,
    (index: number) => columns[index]?.gives === true,
    () => true,
  ];
  for (const mayGive of stages) {
    while (total() > width) {
      const widest = widths.reduce(
        (most, one, index) => (mayGive(index) && one > (widths[most] ?? 0) ? index : most),
        widths.length,
      );
      if ((widths[widest] ?? 0) <= leastColumn) break;
      widths[widest] = Math.max(leastColumn, (widths[widest] ?? 0) - Math.ceil(total() - width));
    }
  }
}
