// Figures that take minutes or hours are of some earlier commit: the pages say of which, and this says how old they are.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command as comparison } from "../../tools/bench/peers/page.ts";
import { changedSince, measuredIn, withMeasured } from "../../tools/bench/stamp.ts";
import { readRuns } from "../torture/report.ts";

/** What the figures are about. */
const protocol = ["packages/client/src", "packages/jobs/src"];
const pageOf = (name: string): string => readFileSync(join(import.meta.dirname, "../../docs", name), "utf8");

describe.each([
  ["evidence.md", "npm run evidence -- worlds"],
  ["evidence.md", "npm run evidence -- worlds --last-release"],
  ["evidence.md", "npm run evidence -- explore"],
  ["evidence.md", "npm run evidence -- explore --mistakes"],
  ["evidence.md", "npm run evidence -- mutation"],
  ["benchmarks.md", comparison],
])("docs/%s, written by %s,", (name, command) => {
  it("names the commit that was measured", () => {
    expect(measuredIn(pageOf(name), command)).toMatch(/^[\da-f]{9}$/);
  });

  it("is told to be old where the protocol has changed since", async () => {
    await warnOfAge(`docs/${name}`, command, measuredIn(pageOf(name), command) ?? "");
  });
});

it("the last torture is told to be old where the protocol has changed since", async () => {
  const last = (await readRuns()).at(-1);
  await warnOfAge("docs/evidence.md", "npm run evidence -- torture --report", last?.commit ?? "");
});

/** Warns, and does not fail: a change of the protocol cannot wait for hours of measuring. */
async function warnOfAge(page: string, command: string, commit: string): Promise<void> {
  const changed = await changedSince(commit, protocol);
  if (changed === undefined) return; // An archive, or a clone without the whole history.
  for (const file of changed) expect(file).toMatch(/^packages\/(client|jobs)\/src\//);
  if (changed.length > 0)
    console.warn(`${page} is of ${commit}; ${changed.length} files of the protocol differ: ${command}`);
}

describe("a stamp", () => {
  const page = "# Page\n\n<!-- the command: begin -->\n\nold\n\n<!-- the command: end -->\n";

  it("is written with the figures, and read from them alone", () => {
    const written = withMeasured(page, "| new |", "the command", "012345678+");
    expect(written).toContain("begin -->\n\nMeasured on commit `012345678+`.\n\n| new |\n\n<!--");
    expect(measuredIn(written, "the command")).toBe("012345678+");
    expect(measuredIn(page, "the command")).toBeUndefined();
  });

  it("of this commit is not old, and one that git does not know says nothing", async () => {
    expect((await changedSince("HEAD", protocol)) ?? []).toEqual([]);
    expect(await changedSince("fffffffff", protocol)).toBeUndefined();
    expect(await changedSince("unknown", protocol)).toBeUndefined();
  });
});
