// Aligned tables. Every cell is shown as text, whatever it contains. If the table is too wide for the terminal, one
// column is cut.

import { cut, shown, widthOf } from "./text.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "magenta" | "cyan";

/** A cell: its text, or its text and how it is coloured. */
export type Cell = string | { readonly text: string; readonly style: Style | undefined };

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
  /** Only if the terminal has at least this many columns. @default 0 */
  readonly from?: number;
}

export type Paint = (style: Style, text: string) => string;

const gap = 2;
const leastColumn = 6;

/** A column with its cells as they are shown, the title first. */
interface ShownColumn extends Pick<Column<never>, "align" | "gives" | "less"> {
  readonly cells: readonly { readonly text: string; readonly style: Style | undefined }[];
  width: number;
}

/** Renders rows under their titles, one a line. With `width`, no line is wider than that. */
export function tableLines<Row>(
  rows: readonly Row[],
  given: readonly Column<Row>[],
  { width = Number.POSITIVE_INFINITY, paint }: { readonly width?: number; readonly paint: Paint },
): string[] {
  const columns = given.map((column): ShownColumn => {
    const cells = [{ text: column.title, style: "dim" } as const, ...rows.map(column.cell)].map((one) =>
      typeof one === "string" ? { text: shown(one), style: undefined } : { ...one, text: shown(one.text) },
    );
    return { ...column, cells, width: Math.max(...cells.map(({ text }) => widthOf(text))) };
  });
  leaveOut(columns, width);
  narrow(columns, width);
  return [undefined, ...rows].map((_, line) =>
    columns
      .map(({ cells, width, align }, index) => {
        const { text = "", style } = cells[line] ?? {};
        const fitted = cut(text, width);
        const blanks = " ".repeat(Math.max(0, width - widthOf(fitted)));
        const painted = style === undefined ? fitted : paint(style, fitted);
        const isLast = index === columns.length - 1;
        return align === "right" ? blanks + painted : painted + (isLast ? "" : blanks);
      })
      .join(" ".repeat(gap)),
  );
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one + gap, -gap);
}

/** A name shorter than this says little, so dispensable columns are left out first. */
const roomForNames = 32;

/** Leaves out dispensable columns until the others have enough room. */
function leaveOut(columns: ShownColumn[], width: number): void {
  const wanted = ({ gives, less = 0, width: own }: ShownColumn): number =>
    gives ? Math.min(own, less > 0 ? leastColumn : roomForNames) : own;
  while (totalOf(columns.map(wanted)) > width) {
    const most = Math.max(...columns.map(({ less = 0 }) => less));
    if (most === 0) break;
    columns.splice(
      columns.findLastIndex(({ less }) => less === most),
      1,
    );
  }
}

/** Shrinks the columns that may shrink, the widest first, until the line fits; then all columns. */
function narrow(columns: readonly ShownColumn[], width: number): void {
  const names = columns.filter(({ gives }) => gives);
  for (const some of [names.filter(({ less }) => less !== undefined), names, columns]) {
    for (;;) {
      const excess = totalOf(columns.map((one) => one.width)) - width;
      const widest = some.toSorted((one, other) => other.width - one.width)[0];
      if (excess <= 0 || widest === undefined || widest.width <= leastColumn) break;
      widest.width = Math.max(leastColumn, widest.width - Math.ceil(excess));
    }
  }
}
