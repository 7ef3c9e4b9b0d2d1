// `leasehold table`, `conformance` and `doctor` on an engine: what it does not know is said, and what it has is used.

import { randomUUID } from "node:crypto";
import {
  DescribeTableCommand,
  type DynamoDBClient,
  ScanCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { leasehold } from "../support/command-line.ts";
import { leaseClient, sdkClient } from "../support/table.ts";

const engine = inject("engine");
const tableName = `leases-${randomUUID()}`;
let dynamodb: DynamoDBClient;
let env: NodeJS.ProcessEnv;

beforeAll(() => {
  dynamodb = sdkClient(engine);
  env = { LEASEHOLD_TABLE_NAME: tableName, AWS_ENDPOINT_URL_DYNAMODB: String(engine.clientConfig.endpoint) };
});
afterAll(() => dynamodb.destroy());

const call = (...args: string[]) => leasehold(args, { env });

describe("a table on an engine", () => {
  it("is created once, with its key and its ttl", async () => {
    const missing = await call("conformance");
    expect([missing.code, missing.stderr]).toEqual([78, expect.stringContaining("leasehold table create")]);
    const created = await call("table", "create", tableName, "--stream");
    expect([created.code, created.stdout]).toEqual([
      0,
      expect.stringContaining(`created ${tableName} in http://`),
    ]);
    const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: tableName }));
    expect(Table?.StreamSpecification?.StreamViewType).toBe("NEW_AND_OLD_IMAGES");
    const again = await call("table", "create", tableName);
    expect([again.code, again.stderr]).toEqual([78, expect.stringContaining("exists already")]);
    expect((await call("table", "check")).code).toBe(0);
    expect((await call("table", "show")).stdout).toContain('ttl                     on "ttl"');
  });

  it("passes leasehold conformance, with its key and its ttl, and is left as it was", async () => {
    const { code, stdout, stderr } = await call("conformance");
    expect(stdout).not.toContain("✗");
    expect([code, stderr]).toEqual([0, expect.stringContaining("0 failed")]);
    expect(stdout).toContain("✓ table         the table's ttl: on");
    expect(stdout).toMatch(/batch {4}25 writes/);
    const { Count } = await dynamodb.send(new ScanCommand({ TableName: tableName, Select: "COUNT" }));
    expect(Count).toBe(0);
  });

  it("is created without what the engine does not know, which is said", async () => {
    const { code, stderr } = await call("table", "create", `leases-${randomUUID()}`, "--pitr");
    expect(code).toBe(78);
    expect(stderr).toContain("is created, without point-in-time recovery");
  });

  it("is healthy, says the doctor, who leaves no lease behind", async () => {
    const { code, stdout, stderr } = await call("doctor");
    expect([code, stderr]).toEqual([0, expect.stringContaining("0 errors")]);
    expect(stdout).toContain(
      "? recovery     not checked, because this engine does not know DescribeContinuousBackups",
    );
    expect(stdout).toContain(
      "✓ permissions  GetItem UpdateItem Query Scan PartiQLUpdate ConditionCheckItem DeleteItem",
    );
    expect(stdout).toMatch(/✓ latency {6}acquire \d+ ms, renew \d+ ms, release \d+ ms \(p50 of 10\)/);
    expect(stdout).not.toContain("✗");
    const { Items = [] } = await dynamodb.send(new ScanCommand({ TableName: tableName }));
    expect(Items.map(({ pk, token }) => [pk?.S, token?.S])).toEqual([["leasehold/doctor", undefined]]);
  });

  it("has leftovers where a holder has died long ago, says the doctor", async () => {
    await leaseClient({ tableName, dynamodb }).acquire("nightly");
    await dynamodb.send(
      new UpdateItemCommand({
        TableName: tableName,
        Key: { pk: { S: "nightly" }, sk: { S: "lease" } },
        UpdateExpression: "SET expiresAt = :past",
        ExpressionAttributeValues: { ":past": { N: String(Date.now() - 2 * 3_600_000) } },
      }),
    );
    const { code, stdout } = await call("doctor", "--read-only", "--strict");
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining("! leftovers    1 expired leases older than 1h"),
    ]);
  });
});
