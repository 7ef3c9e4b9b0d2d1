import { readFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import { expect, it } from "vitest";

/**
 * What drops an error without looking at it: a catch without a name, a handler without a parameter, one handler for both
 * ends of a promise, and results of promises that nobody takes.
 */
const drops = [
  /\bcatch \{/,
  /\.catch\(\s*(?:async )?\(\) =>/,
  /\.catch\(\s*no[oO]p\b/,
  /\.then\(\s*(\w+),\s*\1\s*\)/,
  /\.then\([^;]*?,\s*\(\) =>/,
  /^\s*(?:await |void )?Promise\.allSettled\(/,
];

/** Lines that drop errors without a comment that says why: "Ignored: …", above or at the top of the block. */
function unexplained(source: string): number[] {
  const lines = source.split("\n");
  return lines.flatMap((_line, index) => {
    // A call may be spread over several lines.
    const statement = lines.slice(index, index + 4).join("\n");
    const starts = drops.some((pattern) => {
      const found = pattern.exec(statement);
      return found !== null && !statement.slice(0, found.index).includes("\n");
    });
    if (!starts || lines[index]?.trimStart().startsWith("*")) return [];
    const around = lines.slice(Math.max(0, index - 4), index + 3);
    return around.some((line) => line.includes("// Ignored: ")) ? [] : [index + 1];
  });
}

it("no code of a package or of the app drops an error without saying why", async () => {
  const found: string[] = [];
  let files = 0;
  for await (const file of glob("{packages/*/src,tools/local/src,functions,infra}/**/*.ts")) {
    files += 1;
    found.push(...unexplained(readFileSync(file, "utf8")).map((line) => `${file}:${line}`));
  }
  expect(files).toBeGreaterThan(200);
  expect(found).toEqual([]);
});

it.each([
  "try { work(); } catch {\n}",
  "void work().catch(() => undefined);",
  "void work().catch(\n  () => undefined,\n);",
  "await work().catch(noOp);",
  "other.then(wake, wake);",
  "other.then(\n  () => undefined,\n  () => undefined,\n);",
  "await Promise.allSettled(all);",
])("an error that is dropped is found: %j", (source) => {
  expect(unexplained(source)).toEqual([1]);
  expect(unexplained(`// Ignored: for a reason.\n${source}`)).toEqual([]);
});
