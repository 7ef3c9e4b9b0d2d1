/** Pages with a generated part say what its program says. test/integration/documented-operations.test.ts counts the requests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { generatedIn } from "../../tools/bench/costs/markdown.ts";
import { costReport } from "../../tools/bench/costs/report.ts";
import { scaleReport } from "../../tools/bench/costs/scale.ts";
import { requestsReport } from "../../tools/bench/operations/index.ts";
import { command as comparison, generatedPart } from "../../tools/bench/peers/page.ts";
import { readResults } from "../../tools/bench/peers/results.ts";

const generated = (name: string, command?: string): string =>
  generatedIn(readFileSync(join(import.meta.dirname, "../../docs", name), "utf8"), command);

it.each([
  ["requests.md", requestsReport],
  ["scale.md", scaleReport],
])("docs/%s is what the operations promise: else run npm run bench -- costs", (name, report) => {
  expect(generated(name)).toBe(report());
});

it("docs/costs.md says what the code costs: else run npm run bench -- costs", {
  tags: ["long"],
}, async () => {
  expect(generated("costs.md")).toBe(await costReport());
});

it("docs/benchmarks.md says what the kept results say: else run npm run bench -- --page", async () => {
  const part = generatedPart(await readResults());
  expect(generated("benchmarks.md", comparison)).toBe(part);
  expect(part).not.toMatch(/NaN|Infinity|undefined/);
});
