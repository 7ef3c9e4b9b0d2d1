// @module-tag long
import { readFile } from "node:fs/promises";
import { expect, inject, test } from "vitest";
import { appAtRest, countFirings } from "../../../tools/bench/costs/app-at-rest.ts";
import { generatedIn } from "../../../tools/bench/costs/markdown.ts";
import { costReport } from "../../../tools/bench/costs/report.ts";
import { sharedAssembly } from "../../support/assembly.ts";
import { leaseholdTemplate } from "../../support/cloudformation-app.ts";

test("docs/costs.md says what the code costs: else run npm run bench -- costs", async () => {
  const engine = inject("engine") as Parameters<typeof countFirings>[1];
  const assembly = await sharedAssembly();
  const resting = await appAtRest(leaseholdTemplate().json, (functions) =>
    countFirings(assembly, engine, functions),
  );
  expect(generatedIn(await readFile("docs/costs.md", "utf8"))).toBe(await costReport(resting));
});
