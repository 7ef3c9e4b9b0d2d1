import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, it } from "vitest";

/** Bundles a program as it is deployed; what is `external` is counted for others. */
async function bytesOf(
  program: string,
  external: readonly string[],
): Promise<{ readonly minified: number; readonly gzipped: number }> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    minify: true,
    platform: "node",
    target: "node24",
    format: "esm",
    mainFields: ["module", "main"],
    conditions: ["leasehold-source", "module"],
    external: [...external],
    logLevel: "error",
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  return { minified: code.length, gzipped: gzipSync(code, { level: 9 }).length };
}

const sdk = ["@aws-sdk/*", "@smithy/*", "@middy/*"];

it.each([
  ["the client", 'export { LeaseClient } from "@leasehold/client";', 27],
  [
    "the client and the middleware",
    'export { LeaseClient } from "@leasehold/client"; export { leaseLock } from "@leasehold/middy";',
    33,
  ],
])("%s is small beside the SDK, minified and gzipped: %s", async (_name, program, kilobytes) => {
  const { gzipped } = await bytesOf(program, sdk);
  expect(gzipped).toBeLessThan(kilobytes * 1_000);
});

it("a function with the light store has less than a third of the SDK's bytes in all", async () => {
  const sdkAlone = await bytesOf(
    'import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb"; export const client = new DynamoDBClient(); export { UpdateItemCommand };',
    [],
  );
  const light = await bytesOf(
    'import { LeaseClient } from "@leasehold/client/light"; export const client = new LeaseClient({ tableName: "leases" });',
    [],
  );
  expect(light.minified).toBeLessThan(sdkAlone.minified / 3);
  expect(light.minified).toBeLessThan(96_000);
});
