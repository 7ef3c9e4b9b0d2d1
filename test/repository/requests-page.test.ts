/** The page that promises requests says what the counted operations say: test/integration/documented-operations.test.ts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedIn } from "../../tools/bench/costs/markdown.ts";
import { requestsReport } from "../../tools/bench/operations/index.ts";

test("docs/requests.md promises what is counted: else run npm run bench -- costs", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/requests.md"), "utf8");
  expect(generatedIn(page)).toBe(requestsReport());
});
