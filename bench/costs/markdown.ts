/** Pages with a generated part: its tables, and where it begins and ends. */

/** The npm script that writes a part of a page. */
type Script = "costs" | "scale";

const marks = (script: Script): readonly [begin: string, end: string] => [
  `<!-- npm run ${script}: begin -->`,
  `<!-- npm run ${script}: end -->`,
];

/** Gives the generated part of a page. */
export function generatedIn(page: string, script: Script = "costs"): string {
  const [begin, end] = marks(script);
  return page.slice(page.indexOf(begin) + begin.length, page.indexOf(end)).trim();
}

/** Gives the page with another generated part. */
export function withGenerated(page: string, generated: string, script: Script = "costs"): string {
  const [begin, end] = marks(script);
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
