import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";

/** The sources that a program with these lines holds, and what it loads from outside, as a bundler sees it. */
async function loadedBy(program: string): Promise<readonly string[]> {
  const { metafile } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname, loader: "ts" },
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    external: ["@aws-sdk/*"],
    conditions: ["leasehold-source"],
  });
  const [output] = Object.values(metafile.outputs);
  const held = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const outside = output?.imports.map(({ path }) => path) ?? [];
  return [...held.map(([path]) => path), ...outside].filter((path) => path !== "<stdin>");
}

const everythingOf = (entry: string): string => `export * from "${entry}";`;

describe("an entry", () => {
  it("is seen to load the SDK, where it does", async () => {
    expect(await loadedBy(everythingOf("@leasehold/client"))).toContain("@aws-sdk/client-dynamodb");
  });

  it.each([
    "@leasehold/jobs",
    "@leasehold/middy/light",
    "@leasehold/middy/jmespath",
    "@leasehold/middy/powertools",
    ...[
      "light",
      "together",
      "admin",
      "conformance",
      "internal",
      "schema",
      "record",
      "metrics",
      "log",
      "environment",
    ].map((name) => `@leasehold/client/${name}`),
  ])("loads no SDK: %s", async (entry) => {
    const loaded = await loadedBy(everythingOf(entry));
    expect(loaded.length).toBeGreaterThan(0);
    expect(loaded.filter((path) => path.startsWith("@aws-sdk/"))).toEqual([]);
  });

  it.each(["schema", "metrics", "environment"])(
    "is a file of its own, without the client: %s",
    async (name) => {
      const loaded = await loadedBy(everythingOf(`@leasehold/client/${name}`));
      expect(loaded).toEqual([expect.stringMatching(new RegExp(`/src/\\w+/${name}\\.ts$`))]);
    },
  );
});

const client = new URL("../../packages/client/package.json", import.meta.url);
const { exports } = JSON.parse(readFileSync(client, "utf8")) as { readonly exports: object };

describe("administration", () => {
  const administration = /client\/src\/(admin\/|statements\/admin\.ts)/;
  const others = Object.keys(exports).filter((entry) => !["./admin", "./internal"].includes(entry));

  it("is in the bundle of its entry", async () => {
    const loaded = await loadedBy(everythingOf("@leasehold/client/admin"));
    expect(loaded.filter((path) => administration.test(path)).length).toBeGreaterThan(5);
  });

  it.each(others)("is in the bundle of no other entry: %s", async (entry) => {
    const loaded = await loadedBy(everythingOf(`@leasehold/client${entry.slice(1)}`));
    expect(loaded.length).toBeGreaterThan(0);
    expect(loaded.filter((path) => administration.test(path))).toEqual([]);
  });
});

describe("a bundle of a client", () => {
  const optional = {
    log: "checks/log.ts",
    metrics: "checks/metrics.ts",
    together: "core/together.ts",
  };

  it.each(Object.entries(optional))("holds %s if its entry is imported", async (entry, file) => {
    const loaded = await loadedBy(everythingOf(`@leasehold/client/${entry}`));
    expect(loaded).toContainEqual(expect.stringContaining(`client/src/${file}`));
  });

  it("holds neither the log's listener nor the metrics', nor shared renewals, unless they are imported", async () => {
    const loaded = await loadedBy('export { LeaseClient } from "@leasehold/client/light";');
    expect(loaded).toContainEqual(expect.stringContaining("client/src/core/client.ts"));
    const files = Object.values(optional);
    expect(loaded.filter((path) => files.some((file) => path.includes(`client/src/${file}`)))).toEqual([]);
  });
});

describe("a bundle of @leasehold/jobs", () => {
  it("that reads schedules holds neither runs, nor tasks, nor the lock's protocol", async () => {
    const loaded = await loadedBy('export { parseScheduleExpression } from "@leasehold/jobs";');
    expect(loaded).toContainEqual(expect.stringContaining("jobs/src/schedule/expression.ts"));
    expect(loaded.filter((path) => /src\/(runs|tasks|core)\//.test(path))).toEqual([]);
  });

  it("that runs jobs holds no tasks", async () => {
    const loaded = await loadedBy('export { JobRuns } from "@leasehold/jobs";');
    expect(loaded).toContainEqual(expect.stringContaining("jobs/src/runs/job-runs.ts"));
    expect(loaded.filter((path) => path.includes("/src/tasks/"))).toEqual([]);
  });
});
