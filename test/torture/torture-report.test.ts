import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { evidencePage } from "../../tools/bench/stamp.ts";
import { pageWith, readRuns } from "./report.ts";

it("the page of the evidence shows the figures of the recorded runs", async () => {
  const page = await readFile(evidencePage, "utf8");
  expect(pageWith(page, await readRuns())).toBe(page);
});
