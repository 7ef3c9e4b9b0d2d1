// What users can import is kept in tools/packaging/api, so that a change of it is seen in a review:
// npm run generate -- api renews the reports.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apiReports, reportFolder } from "../../tools/packaging/api-report.ts";
import { build } from "../../tools/packaging/pack.ts";

const folder = join(import.meta.dirname, "../..", reportFolder);
// A new clone has built nothing yet.
await build();
const reports = await apiReports();

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
