import { readdirSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = new URL("../../", import.meta.url).pathname;
const packages = ["client", "jobs", "middy", "durable"];

const declaration =
  /^(?:export )?(?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) +([\w$]+)/gm;

/** The entries of one package that differ only in the client that they make. */
const twins = new Set(["LeaseClient", "leaseLock", "leased", "leasedBatch", "makeClient"]);

function sourcesOf(name: string): string[] {
  const directory = `${root}packages/${name}/src`;
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => `${directory}/${path}`);
}

function namesIn(source: string): ReadonlySet<string> {
  return new Set([...source.matchAll(declaration)].map(([, name = ""]) => name));
}

/** The files that declare each name. */
function filesByName(): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>();
  for (const path of packages.flatMap(sourcesOf).sort()) {
    for (const name of namesIn(readFileSync(path, "utf8"))) {
      files.set(name, [...(files.get(name) ?? []), relative(root, path)]);
    }
  }
  return files;
}

describe("the names of the client, of the jobs, of the middleware and of the durable lease", () => {
  const files = filesByName();

  test("one top-level name is declared in one file only", () => {
    const repeated = [...files]
      .filter(([name, places]) => places.length > 1 && !twins.has(name))
      .map(([name, places]) => `${name}: ${places.join(", ")}`);
    expect(repeated).toEqual([]);
  });
});
