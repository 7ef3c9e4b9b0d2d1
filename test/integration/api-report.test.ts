// What users can import is kept in tools/packaging/api, so that a change of it is seen in a review:
// npm run generate -- api renews the reports.
import { globSync, readFileSync } from "node:fs";
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

it("the index of names is what the docstrings say; if they are right: npm run generate -- api", () => {
  expect(readFileSync(join(root, indexPage), "utf8")).toBe(apiIndex(packages));
});
