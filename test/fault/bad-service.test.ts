import {
  type AttributeDefinition,
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type KeySchemaElement,
} from "@aws-sdk/client-dynamodb";
import { createLeaseTable, LeaseConfigurationError, LeaseTableError } from "@leasehold/client";
import { afterAll, afterEach, describe, expect, inject, test, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { DefaultClient, leaseClient, makeTable, sdkClient } from "../support/table.ts";

const table = await makeTable(inject("engine"));
const { dynamodb } = table;

afterEach(() => {
  vi.unstubAllEnvs();
});
afterAll(() => table.close());

function newName(): string {
  return `leases-${crypto.randomUUID()}`;
}

async function tableWith(keys: readonly (readonly [name: string, type: "S" | "N"])[]): Promise<string> {
  const tableName = newName();
  const AttributeDefinitions = keys.map(
    ([AttributeName, AttributeType]): AttributeDefinition => ({ AttributeName, AttributeType }),
  );
  const KeySchema = keys.map(
    ([AttributeName], index): KeySchemaElement => ({
      AttributeName,
      KeyType: index === 0 ? "HASH" : "RANGE",
    }),
  );
  await dynamodb.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions,
      KeySchema,
    }),
  );
  return tableName;
}

describe("every operation on a table that does not exist says so", () => {
  const tableName = newName();
  const client = leaseClient({ tableName, dynamodb });
  test.for([
    ["acquire", () => client.acquire("key")],
    ["acquire that waits", () => client.acquire("key", { waitMs: 5_000 })],
    ["tryAcquire", () => client.tryAcquire("key")],
    ["inspect", () => client.inspect("key")],
    ["list", () => adminOf(client).list().next()],
    ["forceRelease", () => adminOf(client).forceRelease("key", { token: "anyone" })],
  ] as const)("%s", async ([, call]) => {
    const failure = await call().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseTableError);
    expect(failure).toMatchObject({ code: "LEASE_TABLE_NOT_FOUND", tableName });
  });
});

describe.each([
  ["a partition key of another name", [["id", "S"]]],
  ["no sort key", [["pk", "S"]]],
  [
    "a sort key of another name",
    [
      ["pk", "S"],
      ["id", "S"],
    ],
  ],
  [
    "a sort key of another type",
    [
      ["pk", "S"],
      ["sk", "N"],
    ],
  ],
] as const)("a table with %s", (_, keys) => {
  test("is refused by acquire and by inspect", async () => {
    const client = leaseClient({ tableName: await tableWith(keys), dynamodb });
    await expect(client.acquire("key")).rejects.toMatchObject({ code: "LEASE_TABLE_MISMATCH" });
    await expect(client.inspect("key")).rejects.toMatchObject({ code: "LEASE_TABLE_MISMATCH" });
  });

  test("is refused by createLeaseTable, and left as it is", async () => {
    const tableName = await tableWith(keys);
    const failure = await createLeaseTable({ tableName, dynamodb }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseTableError);
    expect(failure).toMatchObject({ code: "LEASE_TABLE_MISMATCH", tableName });
    const ttl = await dynamodb.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
    expect(ttl.TimeToLiveDescription?.TimeToLiveStatus).toBe("DISABLED");
  });
});

describe("createLeaseTable", () => {
  async function expectLeaseTable(tableName: string): Promise<void> {
    const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: tableName }));
    expect(Table?.TableStatus).toBe("ACTIVE");
    expect(Table?.BillingModeSummary?.BillingMode).toBe("PAY_PER_REQUEST");
    const ttl = await dynamodb.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
    expect(ttl.TimeToLiveDescription).toMatchObject({ TimeToLiveStatus: "ENABLED", AttributeName: "ttl" });
  }

  test("makes a table on demand, with ttl, and changes nothing when it is called again", async () => {
    const tableName = newName();
    await createLeaseTable({ tableName, dynamodb });
    await expectLeaseTable(tableName);
    const client = leaseClient({ tableName, dynamodb });
    const lease = await client.acquire("key");
    await createLeaseTable({ tableName, dynamodb });
    await expectLeaseTable(tableName);
    expect(await client.inspect("key")).toMatchObject({ token: lease.token });
  });

  test("may be called by many at the same time", async () => {
    const tableName = newName();
    await Promise.all(Array.from({ length: 8 }, () => createLeaseTable({ tableName, dynamodb })));
    await expectLeaseTable(tableName);
  });
});

describe("in an environment that has not been set up", () => {
  function stubEmptyEnvironment(): void {
    for (const name of Object.keys(process.env)) {
      if (name.startsWith("AWS_")) vi.stubEnv(name, undefined);
    }
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_CONFIG_FILE", "/nonexistent/config");
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials");
  }

  test("without credentials, acquire and createLeaseTable ask for them", async () => {
    stubEmptyEnvironment();
    vi.stubEnv("AWS_REGION", "eu-central-1");
    const failure = await new DefaultClient({ tableName: "leases" })
      .acquire("key")
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseConfigurationError);
    expect(failure).toMatchObject({ code: "LEASE_CREDENTIALS_MISSING" });
    await expect(createLeaseTable({ tableName: "leases" })).rejects.toMatchObject({
      code: "LEASE_CREDENTIALS_MISSING",
    });
  });

  test("without a region, acquire and createLeaseTable ask for one", async () => {
    stubEmptyEnvironment();
    vi.stubEnv("AWS_ACCESS_KEY_ID", "anyone");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "anything");
    const failure = await new DefaultClient({ tableName: "leases" })
      .acquire("key")
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LeaseConfigurationError);
    expect(failure).toMatchObject({ code: "LEASE_REGION_MISSING" });
    await expect(createLeaseTable({ tableName: "leases" })).rejects.toMatchObject({
      code: "LEASE_REGION_MISSING",
    });
  });
});

test("where nobody listens, an acquire ends as a LeaseServiceError", async () => {
  const nobody = sdkClient({
    clientConfig: { ...inject("engine").clientConfig, endpoint: "http://127.0.0.1:1" },
  });
  const client = leaseClient({ tableName: "leases", dynamodb: nobody });
  await expect(client.acquire("key")).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  nobody.destroy();
});
