/** Simulates every figure of docs/scale.md, prints them, and writes the tables of pages anew: `npm run bench -- scale`. */
import { writeGenerated } from "../costs/markdown.ts";
import { command, compareAll, handOverReport, scaleReport } from "./report.ts";

const compared = await compareAll();
for (const { what, paper, simulated, agrees } of compared) {
  console.log(`${what}: ${Math.round(paper)} on paper, ${Math.round(simulated)} simulated`);
  if (!agrees) process.exitCode = 1;
}
await writeGenerated("scale.md", scaleReport(compared), command);
await writeGenerated("primitives/fair-lock.md", await handOverReport(), command);
