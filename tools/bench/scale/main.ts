/** Simulates every figure of docs/scale.md, prints them, and writes the page's table anew: `npm run bench -- scale`. */
import { readFile, writeFile } from "node:fs/promises";
import { withGenerated } from "../costs/markdown.ts";
import { type Compared, compare, figures } from "./paper.ts";
import { scaleReport } from "./report.ts";

const compared: Compared[] = [];
for (const figure of figures) {
  const result = await compare(figure);
  console.log(
    `${result.what}: ${Math.round(result.paper)} on paper, ${Math.round(result.simulated)} simulated`,
  );
  if (!result.agrees) process.exitCode = 1;
  compared.push(result);
}
const page = new URL("../../../docs/scale.md", import.meta.url);
await writeFile(
  page,
  withGenerated(await readFile(page, "utf8"), scaleReport(compared), "npm run bench -- scale"),
);
console.log("docs/scale.md is written.");
