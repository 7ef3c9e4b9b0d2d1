import { beforeEach, describe, expect, it, vi } from "vitest";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import { leasehold } from "../support/command-line.ts";
import { type Answers, goodSettings, goodTable, scriptedDynamoDb } from "../support/scripted-dynamodb.ts";
import { refuse, say } from "../support/scripted-server.ts";

const server = scriptedDynamoDb();

const arnOf = (name: string) => `arn:aws:dynamodb:eu-central-1:123456789012:table/${name}`;
const tableWith = (change: object): Answers => ({
  ...goodSettings,
  DescribeTable: { Table: { ...goodTable, ...change } },
});

async function call(args: readonly string[], options: Parameters<typeof leasehold>[1] = {}) {
  return await leasehold(args, { env: server.env, ...options });
}

describe("leasehold table create", () => {
  it("creates it with what was asked for, turns ttl on, and says what to do next", async () => {
    let ttl: object = { TimeToLiveStatus: "DISABLED" };
    let isThere = false;
    server.answer({
      ...goodSettings,
      CreateTable: (response, request) => {
        (isThere ? refuse("ResourceInUseException") : say({ TableDescription: goodTable }))(
          response,
          request,
        );
        isThere = true;
      },
      DescribeTimeToLive: (response, request) => say({ TimeToLiveDescription: ttl })(response, request),
      UpdateTimeToLive: (response, request) => {
        ttl = { TimeToLiveStatus: "ENABLED", AttributeName: "ttl" };
        say({})(response, request);
      },
      UpdateContinuousBackups: {},
    });
    const { code, stdout, stderr } = await call([
      ...["table", "create", "leases", "--stream", "--pitr", "--deletion-protection"],
      ...["--kms", "alias/leases", "--tag", "team=ops"],
    ]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^created leases in .*: on demand, key pk \(S\) \+ sk \(S\), ttl on "ttl", stream on/,
      ),
    ]);
    expect(stderr).toBe("next: export LEASEHOLD_TABLE_NAME=leases; leasehold doctor\n");
    // What comes first counts: the wait for the table asks again whether it is there.
    const bodies = Object.fromEntries(server.sent().toReversed());
    expect(bodies.CreateTable).toMatchObject({
      TableName: "leases",
      BillingMode: "PAY_PER_REQUEST",
      DeletionProtectionEnabled: true,
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
      SSESpecification: { Enabled: true, SSEType: "KMS", KMSMasterKeyId: "alias/leases" },
      Tags: [
        { Key: "leasehold", Value: "true" },
        { Key: "team", Value: "ops" },
      ],
    });
    expect(bodies.UpdateTimeToLive).toMatchObject({
      TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
    });
    expect(bodies.UpdateContinuousBackups).toMatchObject({
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    });
  });

  it.each(["30d", "60d"])("waits for an answer also with a --timeout of %s", async (timeout) => {
    server.answer({
      ...goodSettings,
      DescribeTable: (response, request) =>
        void setTimeout(() => say({ Table: goodTable })(response, request), 50),
    });
    expect(await call(["table", "show", "leases", "--timeout", timeout])).toMatchObject({ code: 0 });
  });

  it("sends nothing with --dry-run, and prints what it would send", async () => {
    server.answer({});
    const { code, stdout } = await call(["table", "create", "leases", "--pitr", "--dry-run"]);
    const operations = [...stdout.matchAll(/"operation": "(\w+)"/g)].map(([, operation]) => operation);
    expect([code, operations]).toEqual([0, ["CreateTable", "UpdateTimeToLive", "UpdateContinuousBackups"]]);
    expect(server.sent()).toEqual([]);
  });
});

describe("leasehold table check", () => {
  it("finds nothing wrong with a table as it should be", async () => {
    server.answer(goodSettings);
    const { code, stdout, stderr } = await call(["table", "check", "--strict", "-v"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("✓ key       pk (S), sk (S)")]);
    expect(stderr).toContain("4 requests by the SDK");
  });

  it.each([
    ["another key", tableWith({ KeySchema: [{ AttributeName: "id", KeyType: "HASH" }] }), 2, "✗ key"],
    ["no ttl", { ...goodSettings, DescribeTimeToLive: {} }, 2, "fix: leasehold table set --ttl"],
    [
      "its ttl elsewhere",
      {
        ...goodSettings,
        DescribeTimeToLive: {
          TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName: "expiresAt" },
        },
      },
      2,
      'on, but on the attribute "expiresAt"',
    ],
    ["a status", tableWith({ TableStatus: "CREATING" }), 2, "✗ table"],
    ["provisioned capacity", tableWith({ BillingModeSummary: undefined }), 1, "! table"],
    ["no backups", { ...goodSettings, DescribeContinuousBackups: {} }, 1, "fix: leasehold table set --pitr"],
    [
      "no ttl where consistency is strong, which cannot have it",
      {
        ...tableWith({ Replicas: [{ RegionName: "us-east-1" }], MultiRegionConsistency: "STRONG" }),
        DescribeTimeToLive: {},
      },
      0,
      "✓ ttl       none: a table with strong",
    ],
    ["lagging replicas", tableWith({ Replicas: [{ RegionName: "us-east-1" }] }), 1, "! replicas"],
  ])("says what is wrong with a table of %s, and what to do", async (_, answers, exitCode, text) => {
    server.answer(answers);
    const { code, stdout } = await call(["table", "check", "--strict"]);
    expect([code, stdout]).toEqual([exitCode, expect.stringContaining(text)]);
  });

  it("says why something is not checked, and never that it is right", async () => {
    server.answer({
      ...goodSettings,
      DescribeContinuousBackups: refuse("UnknownOperationException"),
      DescribeTimeToLive: refuse("AccessDeniedException"),
    });
    const { code, stdout } = await call(["table", "check", "--strict"]);
    expect(code).toBe(0);
    expect(stdout).toContain("? ttl       not checked, because dynamodb:DescribeTimeToLive is denied");
    expect(stdout).toContain(
      "? recovery  not checked, because this engine does not know DescribeContinuousBackups",
    );
  });

  it("shows what is hostile in an attribute's name, and never sends it to the terminal", async () => {
    const AttributeName = "\u001b[2J";
    server.answer({
      ...goodSettings,
      DescribeTimeToLive: { TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName } },
    });
    const { stdout } = await call(["table", "check"]);
    expect(stdout).toContain("\\x1b[2J");
    expect(stdout).not.toContain("\u001b");
  });
});

it.each([
  ["create leases", "CreateTable", "ResourceInUseException", 78, "the table leases exists already"],
  ["create leases", "CreateTable", "AccessDeniedException", 77, "access denied"],
  ["check", "DescribeTable", "ResourceNotFoundException", 78, "table not found"],
  ["check", "DescribeTable", "AccessDeniedException", 77, "access denied"],
])(
  "leasehold table %s ends with a named message after %s: %s",
  async (line, operation, error, exit, text) => {
    server.answer({ ...goodSettings, [operation]: refuse(error) });
    const { code, stderr } = await call(["table", ...line.split(" ")]);
    expect([code, stderr]).toEqual([exit, expect.stringContaining(text)]);
  },
);

describe("leasehold table show", () => {
  it("prints the settings, and what is not known of them", async () => {
    server.answer({ ...goodSettings, ListTagsOfResource: refuse("AccessDeniedException") });
    const { code, stdout } = await call(["table", "show"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`arn                     ${arnOf("leases")}`);
    expect(stdout).toContain("tags                    not known: dynamodb:ListTagsOfResource is denied");
  });
});

describe("leasehold table set", () => {
  it("sends one request for each setting", async () => {
    server.answer({ ...goodSettings, UpdateTable: {}, UpdateContinuousBackups: {}, TagResource: {} });
    const args = "table set --deletion-protection --stream --pitr --tag leasehold=true".split(" ");
    const { code, stderr } = await call(args);
    expect([code, stderr]).toEqual([
      0,
      ["deletion protection on", "stream on", "point-in-time recovery on", "tagged leasehold=true"]
        .map((line) => `leases: ${line}\n`)
        .join(""),
    ]);
    const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" };
    expect(server.sent().filter(([operation]) => operation === "UpdateTable")).toEqual([
      ["UpdateTable", { TableName: "leases", DeletionProtectionEnabled: true }],
      ["UpdateTable", { TableName: "leases", StreamSpecification }],
    ]);
    expect(Object.fromEntries(server.sent()).TagResource).toMatchObject({ ResourceArn: arnOf("leases") });
  });

  it("turns ttl off where it is on another attribute, and says when to come again", async () => {
    server.answer({
      ...goodSettings,
      DescribeTimeToLive: {
        TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName: "expiresAt" },
      },
      UpdateTimeToLive: {},
    });
    const { code, stderr } = await call(["table", "set", "--ttl"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("again in an hour")]);
    expect(Object.fromEntries(server.sent()).UpdateTimeToLive).toMatchObject({
      TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: false },
    });
  });

  it.each([
    ["its name", ["leases"], 0, 1],
    ["another name", ["leasez"], 64, 0],
    ["nobody who can answer", undefined, 64, 0],
  ])(
    "asks for the table's name before it takes protection away: %s",
    async (_, answers, exitCode, updates) => {
      server.answer({ ...goodSettings, UpdateTable: {} });
      const args = ["table", "set", "--no-deletion-protection"];
      expect((await call(args, answers && { answers })).code).toBe(exitCode);
      expect(server.sent().filter(([operation]) => operation === "UpdateTable")).toHaveLength(updates);
    },
  );

  it("says that an engine does not know a setting", async () => {
    server.answer(goodSettings);
    const { code, stderr } = await call(["table", "set", "--pitr"]);
    expect([code, stderr]).toEqual([78, expect.stringContaining("does not know UpdateContinuousBackups")]);
  });
});

describe("without --table", () => {
  const unnamed = () => ({ ...server.env, LEASEHOLD_TABLE_NAME: "" });
  const tagged = (names: readonly string[]): Answers => ({
    ...goodSettings,
    ListTables: { TableNames: ["orders", "leases", "locks"] },
    ListTagsOfResource: (response, request) => {
      const { ResourceArn } = JSON.parse(request.body) as { ResourceArn: string };
      const isTagged = names.some((name) => ResourceArn.endsWith(`/${name}`));
      say({ Tags: isTagged ? [{ Key: "leasehold", Value: "true" }] : [] })(response, request);
    },
  });
  // The first table is described for the ARN that the others share.
  const first = { ...goodTable, TableName: "orders", TableArn: arnOf("orders") };

  it("is the one table that has the tag", async () => {
    server.answer({
      ...tagged(["leases"]),
      DescribeTable: (response, request) => {
        const { TableName } = JSON.parse(request.body) as { TableName: string };
        say({ Table: TableName === "orders" ? first : goodTable })(response, request);
      },
    });
    const { code, stdout } = await call(["table", "check"], { env: unnamed() });
    expect([code, stdout]).toEqual([0, expect.stringContaining("leases (")]);
  });

  it.each([
    [[], "none at"],
    [["leases", "locks"], "2 at"],
  ])("ends with 78 and the list where the tag is on %j", async (names, message) => {
    server.answer({ ...tagged(names), DescribeTable: { Table: first } });
    const { code, stderr } = await call(["ls"], { env: unnamed() });
    expect([code, stderr]).toEqual([78, expect.stringContaining(message)]);
    expect(stderr).toContain(names.join(", "));
    expect(stderr).toContain("LEASEHOLD_TABLE_NAME");
  });

  it.each(["ls", "table show", "stop k"])(
    "ends at once at Ctrl-C while it is looked for: %s",
    async (line) => {
      const stop = new AbortController();
      server.answer({ ListTables: () => stop.abort(new Interruption("SIGINT")) });
      const called = await call(line.split(" "), { env: unnamed(), signal: stop.signal });
      expect(called).toEqual({ code: 130, stdout: "", stderr: "" });
    },
  );
});

describe("without a region or credentials", () => {
  beforeEach(() => {
    for (const name of [
      "AWS_REGION",
      "AWS_DEFAULT_REGION",
      "AWS_PROFILE",
      "AWS_ACCESS_KEY_ID",
      "AWS_SECRET_ACCESS_KEY",
    ]) {
      vi.stubEnv(name, undefined);
    }
    vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  });

  it.each([["table", "check"], ["table", "create", "leases"], ["doctor"], ["ls"]])(
    "ends with 78 and says what to set: %s %s",
    async (...args) => {
      const named = args.filter((arg) => arg !== undefined);
      const noRegion = await leasehold(named);
      expect([noRegion.code, noRegion.stderr]).toEqual([
        78,
        expect.stringContaining("give --region, or set AWS_REGION"),
      ]);
      const noCredentials = await leasehold(named, { env: { AWS_REGION: "eu-central-1" } });
      expect([noCredentials.code, noCredentials.stderr]).toEqual([
        78,
        expect.stringContaining("aws sso login"),
      ]);
    },
  );
});
