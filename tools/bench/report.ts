import { styleText } from "node:util";

/** Prints a table's title. */
export function heading(text: string): void {
  console.log(`\n${styleText("bold", text)}`);
}

/** Prints a remark. */
export function note(text: string): void {
  console.log(styleText("dim", text));
}

/** Prints aligned columns; those of numbers to the right. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const isNumeric = columns.map((_, index) => rows.every((row) => /^[\d.–]/.test(row[index] ?? "")));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => {
        const width = widths[index] ?? 0;
        return isNumeric[index] ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  console.log(styleText("dim", line(columns)));
  for (const row of rows) console.log(line(row));
}
