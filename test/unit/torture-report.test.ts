import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { plants } from "../torture/plants.ts";
import { pageWith, readRuns, reportPage } from "../torture/report.ts";

describe("the page about the torture", async () => {
  const page = await readFile(reportPage, "utf8");

  it("shows the figures of the recorded runs", async () => {
    expect(pageWith(page, await readRuns())).toBe(page);
  });

  it("names every mistake that can be planted", () => {
    const named = [...page.matchAll(/^\| `([a-z][\w-]*)` \| (.+) \|$/gm)].map(([, name, what]) => ({
      name,
      what,
    }));
    expect(named).toEqual(plants.map(({ name, what }) => ({ name, what })));
  });
});
