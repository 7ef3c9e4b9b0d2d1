/** Pages with a generated part: its tables, and where it begins and ends. */

const begin = "<!-- npm run costs: begin -->";
const end = "<!-- npm run costs: end -->";

/** Gives the generated part of a page. */
export function generatedIn(page: string): string {
  return page.slice(page.indexOf(begin) + begin.length, page.indexOf(end)).trim();
}

/** Gives the page with another generated part. */
export function withGenerated(page: string, generated: string): string {
  const [before = "", rest = ""] = page.split(begin);
  const [, after = ""] = rest.split(end);
  return `${before}${begin}\n\n${generated}\n\n${end}${after}`;
}

/** A table, whose first row is its head. Columns of numbers are aligned to the right. */
export function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) =>
    rows.every((row) => /^([*\d.,]+|by size)$/.test(row[index] ?? "")) ? "---:" : "---",
  );
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/** Two digits that tell something. */
export function dollars(usd: number): string {
  if (usd >= 1 || usd === 0) return usd.toFixed(2);
  return String(Number(usd.toPrecision(2)));
}
