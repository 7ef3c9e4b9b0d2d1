// The code blocks of the pages: each is a program, continues one, or says why it is neither. They run in docs-programs.test.ts.
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Block, blocksOf, pages } from "../docs/blocks.ts";
import { problemOf } from "../docs/commands.ts";
import { allPrograms, importedPackages, programsOf } from "../docs/programs.ts";

const fence = "```";

function page(...parts: readonly string[]): Block[] {
  return blocksOf("page.md", parts.join("\n"));
}

describe("a block", () => {
  it("has its line, its language, the comment above it alone, and no indentation of a list", () => {
    const [first, second] = page(
      ...["# Page", "<!-- example: continues -->", `${fence}ts title`, "a;", fence],
      ...["<!-- example: continues -->", "1. Do:", `   ${fence}sh`, "   npm test", `   ${fence}`],
    );
    const directive = { kind: "continues" };
    expect(first).toEqual({ page: "page.md", line: 3, language: "ts", code: "a;\n", directive });
    expect(second).toMatchObject({ line: 8, language: "sh", code: "npm test\n", directive: undefined });
  });

  it.each(["types-only", "text-only, because", "text-only, because ", "types", ""])(
    "with the comment %j is refused, with its place and what is allowed",
    (said) => {
      expect(() => page(`<!-- example: ${said} -->`, `${fence}ts`, "a;", fence)).toThrow(
        /page.md:2 .*allowed: /,
      );
    },
  );
});

describe("a program", () => {
  const block = (code: string, directive?: Block["directive"], language = "ts"): Block => ({
    page: "page.md",
    line: 3,
    language,
    code,
    directive,
  });

  it("is a block with those that continue it", () => {
    const programs = programsOf("page.md", [block("a;"), block("b;", { kind: "continues" }), block("c;")]);
    expect(programs.map(({ code }) => code)).toEqual(["a;\nb;", "c;"]);
  });

  it("does not begin with a block that continues another", () => {
    expect(() => programsOf("page.md", [block("b;", { kind: "continues" })])).toThrow("page.md:3 continues");
  });

  it("that exports a handler says what event it gets", () => {
    const code = "export const handler = async () => 1;";
    expect(() => programsOf("page.md", [block(code)])).toThrow("handler with {the event}");
    const [program] = programsOf("page.md", [block(code, { kind: "handler", event: { id: 1 } })]);
    expect(program?.run).toEqual({ event: { id: 1 } });
  });

  it("names the packages that it needs, and is Vitest's where it is a test", () => {
    const code = 'import { it } from "vitest";\nimport a from "@x/y/z";\nimport "node:fs";\nimport "./b.js";';
    const [program] = programsOf("page.md", [block(code)]);
    expect(program?.file).toBe("page-3.test.ts");
    expect(importedPackages(program ? [program] : [])).toEqual(["@x/y", "vitest"]);
  });

  it("is no block that is text, nor one in another language", () => {
    const text = block("a;", { kind: "text-only", reason: "it is another library's" });
    expect(programsOf("page.md", [text, block("a: 1", undefined, "yaml")])).toEqual([]);
  });
});

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
