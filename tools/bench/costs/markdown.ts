/** Pages with a generated part: its tables, and where it begins and ends. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const docs = join(import.meta.dirname, "../../../docs");
const costs = "npm run bench -- costs";
const marks = (command: string): readonly [begin: string, end: string] => [
  `<!-- ${command}: begin -->`,
  `<!-- ${command}: end -->`,
];

/** Gives the part of a page that the command has generated. */
export function generatedIn(page: string, command: string = costs): string {
  const [begin, end] = marks(command);
  return page.slice(page.indexOf(begin) + begin.length, page.indexOf(end)).trim();
}

/** Gives the page with another generated part; throws where it has no place for one. */
export function withGenerated(page: string, generated: string, command: string = costs): string {
  const [begin, end] = marks(command);
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no place for the tables: ${begin} and ${end}`);
  return `${page.slice(0, from)}${begin}\n\n${generated}\n\n${page.slice(to)}`;
}

/** Writes the generated part of a page below docs/ anew. */
export async function writeGenerated(
  page: string,
  generated: string,
  command: string = costs,
): Promise<void> {
  const file = join(docs, page);
  await writeFile(file, withGenerated(await readFile(file, "utf8"), generated, command));
  console.log(`docs/${page} is written.`);
}

/** A table, whose first row is its head. Columns of numbers are aligned to the right. */
export function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) =>
    rows.every((row) => /^(\[?[*\d.,–]+(\]\(\S+\))?|by size)$/.test(row[index] ?? "")) ? "---:" : "---",
  );
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/** Two digits that tell something. */
export function dollars(usd: number): string {
  if (usd >= 1 || usd === 0) return usd.toFixed(2);
  return String(Number(usd.toPrecision(2)));
}
