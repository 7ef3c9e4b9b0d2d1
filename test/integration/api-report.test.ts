// What users can import is kept in tools/packaging/api, so that a change of it is seen in a review:
// npm run generate -- api renews the reports.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  apiIndex,
  apiReports,
  indexPage,
  publicApis,
  reportFolder,
} from "../../tools/packaging/api-report.ts";
import { build } from "../../tools/packaging/pack.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, reportFolder);
// A new clone has built nothing yet.
await build();
const packages = await publicApis();
const reports = apiReports(packages);

describe("the report of what users can import", () => {
  it.each([...reports])(
    "%s is what the declarations say; if they are right: npm run generate -- api",
    (file, text) => {
      expect(readFileSync(join(folder, file), "utf8")).toBe(text);
    },
  );

  it("is there for each package, and for no other", () => {
    expect(globSync("*", { cwd: folder }).sort()).toEqual([...reports.keys()].sort());
  });

  it("has what an unexported class gives to an exported one, and nothing that is marked as internal", () => {
    const client = reports.get("client.api.md") ?? "";
    expect(client).toContain("acquire(key: string, options?: AcquireOptions): Promise<Lease>;");
    expect(client).not.toContain("Core");
  });
});

describe("the index of names", () => {
  const index = readFileSync(join(root, indexPage), "utf8");

  it("is what the docstrings say; if they are right: npm run generate -- api", () => {
    expect(index).toBe(apiIndex(packages));
  });

  it("has one line for each name that can be imported, with a source that is there", () => {
    for (const { specifier, exported } of packages.flatMap(({ entries }) => entries)) {
      const [, section = ""] = index.split(`## ${specifier}\n`);
      const rows = section.split("\n## ")[0]?.match(/^- \[.*$/gm) ?? [];
      expect(rows.length, specifier).toBe(exported.length);
    }
    for (const [, source = ""] of index.matchAll(/\]\(([^)]+)\)/g))
      expect(existsSync(join(root, "packages", source)), source).toBe(true);
  });
});
