/** The pages of requests and costs say what the program says: test/integration/documented-operations.test.ts counts the requests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedIn } from "../../tools/bench/costs/markdown.ts";
import { costReport } from "../../tools/bench/costs/report.ts";
import { requestsReport } from "../../tools/bench/operations/index.ts";

const pageOf = (name: string): string => readFileSync(join(import.meta.dirname, "../../docs", name), "utf8");

test("docs/requests.md promises what is counted: else run npm run bench -- costs", () => {
  expect(generatedIn(pageOf("requests.md"))).toBe(requestsReport());
});

test("docs/costs.md says what the code costs: else run npm run bench -- costs", {
  tags: ["long"],
}, async () => {
  expect(generatedIn(pageOf("costs.md"))).toBe(await costReport());
});
