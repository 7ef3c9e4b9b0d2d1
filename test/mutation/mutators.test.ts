// @module-tag long
/** What is planted in the sources, and what is left as it is. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { evidencePage } from "../../tools/bench/stamp.ts";
import { installOwn } from "../../tools/own-dependencies.ts";
import { dropMutators, textsForPeople } from "./mutators.ts";
import { shareLine } from "./report.ts";
import { mutatedFiles, root, shareOfCode, testFiles } from "./scope.ts";

beforeAll(async () => {
  await installOwn("test/mutation");
  await dropMutators();
}, 600_000);

async function replacementsIn(content: string, mutator: string): Promise<string[]> {
  const { Instrumenter } = await import("@stryker-mutator/instrumenter");
  const { logger } = await import("./mutants.ts");
  const { mutants } = await new Instrumenter(logger).instrument([{ name: "a.ts", mutate: true, content }], {
    excludedMutations: [],
    ignorers: [textsForPeople],
    plugins: null,
  });
  return mutants
    .filter(({ mutatorName, statusReason }) => mutatorName === mutator && statusReason === undefined)
    .map(({ replacement }) => replacement.replace(/\s+/g, " "));
}

describe("data loses", () => {
  it("each of its conditions, one at a time, and no part of one", async () => {
    const write = `const insist = [[token, "=", mine], [fence, "missing"]];`;
    expect(await replacementsIn(write, "DroppedElement")).toEqual([
      '[[fence, "missing"]]',
      '[[token, "=", mine]]',
    ]);
  });

  it("each attribute that it sets, one at a time, and nothing that the program names itself", async () => {
    const write = "const write = { key, set: { [token]: 1, [fence]: 2, ...wishes } };";
    expect(await replacementsIn(write, "DroppedAssignment")).toEqual([
      "{ [fence]: 2, ...wishes }",
      "{ [token]: 1, ...wishes }",
      "{ [token]: 1, [fence]: 2 }",
    ]);
  });
});

describe("a statement has", () => {
  it("each of its conditions left out, and turned into its opposite", async () => {
    const part = 'const mine = { when: "#token = :t AND (#a < :a OR attribute_not_exists(#b))" };';
    expect(await replacementsIn(part, "MistakenClause")).toEqual([
      '"(#a < :a OR attribute_not_exists(#b))"',
      '"#token = :t"',
      '"#token = :t AND (attribute_not_exists(#b))"',
      '"#token = :t AND (#a < :a)"',
      '"#token <> :t AND (#a < :a OR attribute_not_exists(#b))"',
      '"#token = :t AND (#a <= :a OR attribute_not_exists(#b))"',
      '"#token = :t OR (#a < :a OR attribute_not_exists(#b))"',
      '"#token = :t AND (#a < :a AND attribute_not_exists(#b))"',
      '"#token = :t AND (#a < :a OR attribute_exists(#b))"',
    ]);
  });

  it("each of what it sets and removes left out, in texts of several pieces too", async () => {
    const part = 'const part = { set: "#a = if_not_exists(#a, :b) + :c, " + "#d = :d", remove: "#e, #f" };';
    expect(await replacementsIn(part, "MistakenClause")).toEqual([
      '"#d = :d"',
      '"#a = if_not_exists(#a, :b) + :c"',
      '"#a = if_not_exists(#a, :b) - :c, #d = :d"',
      '"#f"',
      '"#e"',
    ]);
  });

  it("the pieces of a numbered part left out with what they number", async () => {
    // A number in a template is an n in angles here.
    const part = "const gone = times((n) => ({ when: `#S<n> = :s<n> AND #F<n> < :f<n>` }));";
    const source = part.replaceAll("<n>", ["$", "{n}"].join(""));
    const replacements = await replacementsIn(source, "MistakenClause");
    expect(replacements.map((text) => text.replaceAll(/\$\{n\}/g, "<n>"))).toEqual([
      "`#F<n> < :f<n>`",
      "`#S<n> = :s<n>`",
      "`#S<n> <> :s<n> AND #F<n> < :f<n>`",
      "`#S<n> = :s<n> AND #F<n> <= :f<n>`",
      "`#S<n> = :s<n> OR #F<n> < :f<n>`",
    ]);
  });
});

it("what people read stays as it is, and what DynamoDB reads does not", async () => {
  const texts = 'f("a text", "word", " AND "); throw new LeaseError("word");';
  expect(await replacementsIn(texts, "StringLiteral")).toHaveLength(2);
});

it("the sources of the run have the types that they say", () => {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [compiler, "-p", import.meta.dirname], {
    encoding: "utf8",
  });
  expect(stdout).toBe("");
  expect(status).toBe(0);
});

it("the protocol is mutated, and judged by tests that need no engine", () => {
  const files = mutatedFiles();
  expect(files).toContain("packages/client/src/statements/lock.ts");
  expect(files).toContain("packages/jobs/src/tasks/expressions.ts");
  expect(files.filter((file) => file.endsWith("errors.ts"))).toEqual([]);
  expect(testFiles()).toContain("test/client/lock-writes.test.ts");
  expect(testFiles().filter((file) => !/^test\/(contract|client|jobs|mutation)\//.test(file))).toEqual([]);
});

it("a run of some sources leaves the published page as it is", async () => {
  const published = readFileSync(evidencePage, "utf8");
  const args = ["--import", "tsx", "--conditions=leasehold-source", "test/mutation/main.ts"];
  // No source has this in its path: there is nothing to judge.
  const { status } = spawnSync(process.execPath, [...args, "--only", "no such source"], { cwd: root });
  expect(status).toBe(1);
  expect(readFileSync(evidencePage, "utf8")).toBe(published);
});

it("the page says which part of all code its figures are about", () => {
  const { mutated, all } = shareOfCode();
  expect(mutated).toBeGreaterThan(5_000);
  expect(all).toBeGreaterThan(2 * mutated);
  expect(shareLine()).toMatch(/^The figures are about [\d,]+ of the [\d,]+ lines of .*, \d+ %: /);
  expect(readFileSync(evidencePage, "utf8")).toMatch(
    /^The figures are about [\d,]+ of the [\d,]+ lines of /m,
  );
});
