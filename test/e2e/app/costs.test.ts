// @module-tag long
import { readFile } from "node:fs/promises";
import { expect, inject, test } from "vitest";
import { appAtRest } from "../../../bench/costs/app-at-rest.ts";
import { countFirings } from "../../../bench/costs/firing.ts";
import { costReport, markers } from "../../../bench/costs/report.ts";
import { sharedAssembly } from "../../support/assembly.ts";
import { leaseholdTemplate } from "../../support/cloudformation-app.ts";

test("docs/costs.md says what the code costs: else run npm run costs", async () => {
  const engine = inject("engine") as Parameters<typeof countFirings>[1];
  const assembly = await sharedAssembly();
  const resting = await appAtRest(leaseholdTemplate().json, (functions) =>
    countFirings(assembly, engine, functions),
  );
  const text = await readFile("docs/costs.md", "utf8");
  const written = text.slice(text.indexOf(markers.begin) + markers.begin.length, text.indexOf(markers.end));
  expect(written.trim()).toBe(await costReport(resting));
});
