import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environmentNames } from "@leasehold/client/environment";
import { metricNames } from "@leasehold/client/metrics";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { LambdaRuntime } from "../../tools/local/src/lambda/runtime.ts";
import { makeTable } from "../support/table.ts";
import { sampleFunction } from "./fixtures/lambda/functions.ts";

const inSource = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const table = await makeTable(inject("engine"));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "lambda-logs-"));
  await build({
    entryPoints: [inSource("test/integration/fixtures/logging-handlers.ts")],
    outfile: join(folder, "index.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    mainFields: ["module", "main"],
    conditions: ["leasehold-source", "module"],
  });
});
afterAll(async () => {
  table.close();
  await rm(folder, { recursive: true });
});

/** The metrics that CloudWatch finds: a line has to be an object that says so at its top. */
function metricsIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    if (!line.startsWith("{")) return [];
    const { _aws } = JSON.parse(line) as {
      readonly _aws?: {
        readonly CloudWatchMetrics: readonly { readonly Metrics: readonly { Name: string }[] }[];
      };
    };
    return _aws?.CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name)) ?? [];
  });
}

describe.each<[string, Record<string, string>]>([
  ["the text format", {}],
  ["the JSON format", { AWS_LAMBDA_LOG_FORMAT: "JSON" }],
  ["the JSON format at level WARN", { AWS_LAMBDA_LOG_FORMAT: "JSON", AWS_LAMBDA_LOG_LEVEL: "WARN" }],
])("in a function whose console has %s", (name, settings) => {
  test.each(["plain", "chain"])(
    "the metrics of a %s handler are found, beside its own onEvent",
    async (handler) => {
      const lines: string[] = [];
      await using lambda = await LambdaRuntime.start({ onLog: ({ line }) => lines.push(line) });
      const environment = {
        // AWS's own client replaces the console; that of the local app does not.
        NODE_OPTIONS: `--import ${inSource("test/support/lambda-console.ts")}`,
        AWS_ENDPOINT_URL_DYNAMODB: String(inject("engine").clientConfig.endpoint),
        [environmentNames.tableName]: table.tableName,
        [environmentNames.key]: table.newKey(),
        [environmentNames.job]: "nightly",
        ...settings,
      };
      lambda.define(sampleFunction("job", `index.${handler}`, { codeDir: folder, environment }));
      expect((await lambda.invoke("job")).payload).toBe("done");
      const { acquired, waitTime, released, holdTime, jobSucceeded } = metricNames;
      expect(metricsIn(lines)).toEqual([acquired, waitTime, released, holdTime, jobSucceeded]);
      // The console is the one that the settings ask for.
      const said = lines.filter((line) => line.includes("a line of the handler's own"));
      expect(said).toHaveLength(name.endsWith("WARN") ? 0 : 1);
      for (const line of said) expect(line.startsWith("{")).toBe(name.includes("JSON"));
    },
  );
});
