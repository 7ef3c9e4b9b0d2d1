import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { bundled } from "../support/bundled.ts";

const sdk = ["@aws-sdk/*", "@smithy/*", "@middy/*"];

it.each([
  ["the client", 'export { LeaseClient } from "@leasehold/client";', 25.7],
  [
    "the client and the middleware",
    'export { LeaseClient } from "@leasehold/client"; export { leaseLock } from "@leasehold/middy";',
    33.5,
  ],
])("%s is small beside the SDK, minified and gzipped: %s", async (_name, program, kilobytes) => {
  const { code } = await bundled(program, { external: sdk });
  expect(gzipSync(code, { level: 9 }).length).toBeLessThan(kilobytes * 1_000);
});

it("a function with the light store has less than a third of the SDK's bytes in all", async () => {
  const sdkAlone = await bundled(
    'import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb"; export const client = new DynamoDBClient(); export { UpdateItemCommand };',
  );
  const light = await bundled(
    'import { LeaseClient } from "@leasehold/client/light"; export const client = new LeaseClient({ tableName: "leases" });',
  );
  expect(light.code.length).toBeLessThan(sdkAlone.code.length / 3);
  expect(light.code.length).toBeLessThan(89_000);
});
