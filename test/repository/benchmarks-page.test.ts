/** docs/benchmarks.md comes from the kept results. The page names what each contender loses at. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { generatedIn } from "../../tools/bench/costs/markdown.ts";
import { contenders } from "../../tools/bench/peers/contenders/index.ts";
import { command, generatedPart, lossesOf, noiseOf } from "../../tools/bench/peers/page.ts";
import { type PeerResults, readResults } from "../../tools/bench/peers/results.ts";
import { tablesOf } from "../../tools/bench/peers/tables.ts";

const docs = join(import.meta.dirname, "../../docs");
const results = await readResults();

describe("docs/benchmarks.md", () => {
  it("says what the results say: else run npm run bench -- --page", () => {
    const page = readFileSync(join(docs, "benchmarks.md"), "utf8");
    expect(generatedIn(page, command)).toBe(generatedPart(results));
  });
});

describe("tables", () => {
  const tables = tablesOf(results);

  it("have a cell in each column of each row", () => {
    for (const { head, rows } of tables) for (const row of rows) expect(row).toHaveLength(head.length);
  });

  it("give a reason for each contender that is not in them, and for each empty cell", () => {
    const names = contenders.filter(({ id }) => id !== "floor-again").map(({ name }) => name);
    for (const { title, rows, reasons } of tables) {
      const whole = rows.filter((row) => !row.includes("–")).map(([name]) => name);
      const without = names
        .filter((name) => !whole.includes(name))
        .filter((name) => !reasons.some((reason) => reason.startsWith(`${name}: `)));
      expect(without, title).toEqual([]);
    }
  });

  it("hold no figure that is none", () => {
    expect(JSON.stringify(tables)).not.toMatch(/NaN|Infinity|undefined/);
  });
});

describe("what Leasehold loses at", () => {
  const withBundles = (leasehold: number, other: number): PeerResults => ({
    ...results,
    bundles: [
      { id: "leasehold", gzipBytes: leasehold, bytes: 0, importCpuMs: 1, startMs: 1 },
      { id: "lock-client", gzipBytes: other, bytes: 0, importCpuMs: 1, startMs: 1 },
    ],
  });
  const bundleLoss = (one: PeerResults): string | undefined =>
    lossesOf(one).find((line) => line.startsWith("**Bundle"));

  it("is named where another one is better, and only there", () => {
    expect(bundleLoss(withBundles(20_000, 10_000))).toContain("10.0 KB");
    expect(bundleLoss(withBundles(10_000, 20_000))).toBeUndefined();
  });

  it("does not count what is smaller than the noise", () => {
    const [floor] = results.cycles;
    if (floor === undefined) throw new Error("there is no floor");
    const cycles = [
      { ...floor, id: "floor", ratio: 1 },
      { ...floor, id: "floor-again", ratio: 1.1, cpuRatio: 1 },
      { ...floor, id: "leasehold", ratio: 1.05 },
    ];
    const timeLoss = (one: PeerResults): string | undefined =>
      lossesOf(one).find((line) => line.startsWith("**Time of a cycle"));
    expect(noiseOf({ cycles }).time).toBeCloseTo(0.1);
    expect(timeLoss({ ...results, cycles })).toBeUndefined();
    const slower = cycles.map((one) => (one.id === "leasehold" ? { ...one, ratio: 1.5 } : one));
    expect(timeLoss({ ...results, cycles: slower })).toContain("1.50");
  });
});
