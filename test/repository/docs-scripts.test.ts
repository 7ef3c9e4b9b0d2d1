// The npm scripts: every mention of one, on a page or in a source, is of one that is there.
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { programs } from "../../tools/programs.ts";
import { unknownScript } from "../docs/commands.ts";

const root = join(import.meta.dirname, "../..");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
};

// The changelog is not among them: it tells of scripts as they were.
const files = globSync(
  [
    "{README,CONTRIBUTING,SECURITY}.md",
    "{docs,packages,tools}/**/*.md",
    "{functions,infra,packages,test,tools}/**/*.ts",
    ".github/**/*.{md,yml}",
    ".ci/run",
  ],
  { cwd: root, exclude: (path) => /(^|[\\/])(node_modules|dist|pages|CHANGELOG\.md)$/.test(path) },
);

describe("npm scripts", () => {
  it("have each script of several programs", () => {
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(Object.keys(programs)));
  });

  it("are there wherever one is named", () => {
    const mentions = files.flatMap((file) =>
      [
        ...readFileSync(join(root, file), "utf8").matchAll(
          /\bnpm run ([a-z][\w:-]*)(?: --silent)?(?: -- (\w[\w-]*))?/g,
        ),
      ].map(([, name = "", word]) => ({ file, problem: unknownScript(name, word) })),
    );
    expect(mentions.filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect(mentions.length).toBeGreaterThan(100);
  });
});

describe("a script that has several programs", () => {
  const run = (...args: readonly string[]) => {
    const options = ["--conditions=leasehold-source", "--import", "tsx", "tools/main.ts"];
    return spawnSync(process.execPath, [...options, ...args], { cwd: root, encoding: "utf8" });
  };

  it.each(["none", "--fresh", "constructor"])("refuses what it has not: %s", (word) => {
    const { stdout, stderr, status } = run("evidence", word);
    expect(stderr).toContain(`npm run evidence has no ${word}. It has:\n\nnpm run evidence -- worlds `);
    expect([stdout, status]).toEqual(["", 2]);
  });

  it("gives a program its arguments, and ends as the program does", () => {
    expect(run("evidence", "torture", "--help").stdout).toMatch(
      /^npm run evidence -- torture \[--minutes N\]/,
    );
    const { stderr, status } = run("evidence", "torture", "--primitive", "a b");
    expect(stderr).toContain("--primitive is a b; allowed: all, ");
    expect(status).toBe(2);
  });
});
