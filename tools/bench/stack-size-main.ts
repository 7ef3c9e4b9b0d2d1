/** Writes the table of stacks in docs/limits.md anew: `npm run bench -- stack-size`. */
import { readFile, writeFile } from "node:fs/promises";
import { withGenerated } from "./costs/markdown.ts";
import { stackSizeReport } from "./stack-size.ts";

const page = new URL("../../docs/limits.md", import.meta.url);
const text = await readFile(page, "utf8");
await writeFile(page, withGenerated(text, stackSizeReport(), "npm run bench -- stack-size"));
console.log("docs/limits.md is written.");
