// The code blocks of the pages: each is a program, continues one, or says why it is neither. They run in docs-programs.test.ts.
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { blocksOf, pages } from "../docs/blocks.ts";
import { problemOf } from "../docs/commands.ts";
import { allPrograms } from "../docs/programs.ts";

describe("the pages", () => {
  const blocks = pages.flatMap((each) => blocksOf(each));
  const checked = (...languages: readonly string[]): (readonly [string, string])[] =>
    blocks
      .filter(({ language, directive }) => languages.includes(language) && directive?.kind !== "text-only")
      .map(({ page, line, code }) => [`${page}:${line}`, code]);

  it("have programs, and most of them run", () => {
    const programs = allPrograms();
    expect(programs.length).toBeGreaterThan(30);
    expect(programs.filter(({ run }) => run === "none").length).toBeLessThan(programs.length / 4);
  });

  it.each(checked("json"))("%s is JSON", (_place, code) => {
    expect(JSON.parse(code)).toBeDefined();
  });

  it.each(checked("yaml", "yml"))("%s is YAML", (_place, code) => {
    expect(parse(code, { logLevel: "error" })).toBeDefined();
  });

  it.each(checked("sh", "bash"))("%s has commands that are there", (_place, code) => {
    execFileSync("bash", ["-n"], { input: code });
    const lines = code.replaceAll("\\\n", " ").split("\n");
    expect(lines.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
  });
});
