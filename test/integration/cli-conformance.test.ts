// `leasehold conformance` on an engine: what the engine does is what leases need, and nothing is left of the checks.

import { randomUUID } from "node:crypto";
import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { expect, inject, it } from "vitest";
import { leasehold } from "../support/command-line.ts";
import { sdkClient } from "../support/table.ts";

const engine = inject("engine");
const tableName = `leases-${randomUUID()}`;
const env = {
  LEASEHOLD_TABLE_NAME: tableName,
  AWS_ENDPOINT_URL_DYNAMODB: String(engine.clientConfig.endpoint),
};

it("an engine passes, with its key and its ttl, and is left as it was", async () => {
  const missing = await leasehold(["conformance"], { env });
  expect([missing.code, missing.stderr]).toEqual([78, expect.stringContaining("leasehold table create")]);
  await leasehold(["table", "create", tableName], { env });
  const { code, stdout, stderr } = await leasehold(["conformance"], { env });
  expect(stdout).not.toContain("✗");
  expect([code, stderr]).toEqual([0, expect.stringContaining("0 failed")]);
  expect(stdout).toContain("✓ table         the table's ttl: on");
  expect(stdout).toMatch(/batch {4}25 writes/);
  const dynamodb = sdkClient(engine);
  const { Count } = await dynamodb.send(new ScanCommand({ TableName: tableName, Select: "COUNT" }));
  dynamodb.destroy();
  expect(Count).toBe(0);
});
