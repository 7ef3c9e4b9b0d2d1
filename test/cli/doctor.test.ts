import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { clockFinding } from "../../packages/cli/src/commands/doctor.ts";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import type { AskedTable } from "../../packages/cli/src/table/asked-table.ts";
import { permissionFindings } from "../../packages/cli/src/table/permissions.ts";
import { leasehold } from "../support/command-line.ts";
import { type Answers, goodSettings, goodTable, scriptedDynamoDb } from "../support/scripted-dynamodb.ts";
import { type Reaction, refuse, say } from "../support/scripted-server.ts";

const server = scriptedDynamoDb();
let env: NodeJS.ProcessEnv;
beforeEach(() => {
  env = server.env;
});

const good: Answers = {
  ...goodSettings,
  GetCallerIdentity: {
    GetCallerIdentityResponse: {
      GetCallerIdentityResult: { Arn: "arn:aws:sts::123456789012:assumed-role/ops/alice" },
    },
  },
  GetItem: {},
  Query: { Items: [] },
  Scan: { Items: [] },
  UpdateItem: refuse("ConditionalCheckFailedException"),
  DeleteItem: refuse("ConditionalCheckFailedException"),
  TransactWriteItems: refuse("TransactionCanceledException"),
  BatchExecuteStatement: { Responses: [{ Error: { Code: "ConditionalCheckFailed" } }] },
};

async function doctor(answers: Answers, ...args: string[]) {
  server.answer(answers);
  // Reads alone: what an acquisition shows is shown on an engine.
  const called = await leasehold(["doctor", "--read-only", ...args], { env });
  return { ...called, results: called.stdout.split("\n").map((line) => line.slice(0, 14).trimEnd()) };
}

describe("leasehold doctor", () => {
  it("says of each check what it has found, sends no write with --read-only, and exits with 0", async () => {
    const { code, stdout, stderr, results } = await doctor(good);
    expect(code).toBe(0);
    expect(results).toEqual([
      "✓ credentials",
      "✓ table",
      "✓ key",
      "✓ ttl",
      "? deletion",
      "✓ recovery",
      "✓ replicas",
      "✓ tag",
      "✓ permissions",
      "? permissions",
      "? latency",
      "✓ leftovers",
      "? clock",
      "",
    ]);
    expect(stdout).toContain("arn:aws:sts::123456789012:assumed-role/ops/alice");
    expect(stderr).toBe("0 errors, 0 warnings, 4 not checked. exit 0\n");
    const writes = /^(Update|Delete|Put|Transact|Batch)/;
    expect(server.sent().filter(([operation]) => writes.test(operation))).toEqual([]);
    const { findings, exitCode } = JSON.parse((await doctor(good, "--json")).stdout);
    expect([exitCode, findings[0]]).toMatchObject([0, { check: "credentials", result: "ok" }]);
  });

  it.each([
    [
      "credentials that STS refuses",
      { GetCallerIdentity: say({ Error: { Message: "expired" } }, 403) },
      "✗ credentials  expired",
    ],
    ["a table that is not there", { DescribeTable: refuse("ResourceNotFoundException") }, "table not found"],
    [
      "a table that may not be described",
      { DescribeTable: refuse("AccessDeniedException") },
      "permit dynamodb:DescribeTable",
    ],
    [
      "credentials that have expired",
      { DescribeTable: refuse("ExpiredTokenException") },
      "fix: set AWS_PROFILE or --profile, or log in: aws sso login",
    ],
    ["GetItem denied", { GetItem: refuse("AccessDeniedException") }, "denied: GetItem (waiting and looking)"],
  ])("exits with 2 at %s, and says what to do", async (_, change: Answers, text) => {
    const { code, stdout } = await doctor({ ...good, ...change });
    expect([code, stdout]).toEqual([2, expect.stringContaining(text)]);
    expect(stdout).toContain("fix: ");
    // Only a table that is not there is to be made.
    expect(stdout.includes("table create")).toBe(text === "table not found");
  });

  it.each([
    ["ExpiredTokenException", "log in: aws sso login"],
    ["UnrecognizedClientException", "log in: aws sso login"],
    ["AccessDeniedException", "give --table NAME"],
  ])("advises to make no table where looking for one by its tag fails with %s", async (code, advice) => {
    env = { ...env, LEASEHOLD_TABLE_NAME: "" };
    const called = await doctor({ ...good, ListTables: refuse(code) });
    expect([called.code, called.stderr]).toEqual([78, expect.stringContaining(advice)]);
    expect(called.stderr).toContain("looking for one with the tag leasehold=true failed");
    expect(called.stderr).not.toContain("table create");
  });

  it("exits with 1 at a warning with --strict, and else with 0", async () => {
    const answers = { ...good, DescribeContinuousBackups: {} };
    expect((await doctor(answers, "--strict")).code).toBe(1);
    expect((await doctor(answers)).code).toBe(0);
  });

  it("asks no question of a table that is none of ours, but what it is", async () => {
    const Table = {
      TableName: "orders",
      TableStatus: "ACTIVE",
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    };
    const { code, stdout } = await doctor({ ...good, DescribeTable: { Table } });
    expect(code).toBe(2);
    expect(stdout).not.toContain("permissions");
    expect(server.sent().map(([operation]) => operation)).not.toContain("Scan");
  });

  it("says that STS does not answer, and does not call the credentials wrong", async () => {
    env = { ...env, AWS_ENDPOINT_URL_STS: "http://127.0.0.1:1" };
    const { results } = await doctor(good);
    expect(results[0]).toBe("? credentials");
  });

  it("asks the STS of the region where the variable of another is empty", async () => {
    env = { ...env, AWS_ENDPOINT_URL_STS: "" };
    const fetching = vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no network"));
    onTestFinished(() => fetching.mockRestore());
    await doctor(good);
    expect(String(fetching.mock.calls[0]?.[0])).toMatch(/^https:\/\/sts\..*\.amazonaws\.com\/$/);
  });

  it("does not take a mistake in a program for STS that does not answer", async () => {
    const fetching = vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("a mistake"));
    try {
      const { code, stderr } = await doctor(good);
      expect([code, stderr]).toEqual([70, expect.stringContaining("leasehold: a mistake")]);
    } finally {
      fetching.mockRestore();
    }
  });

  it("says the status of an answer that is not of STS", async () => {
    const page: Reaction = (response) => response.writeHead(502).end("<html>proxy</html>");
    const { code, stdout } = await doctor({ ...good, GetCallerIdentity: page });
    expect([code, stdout]).toEqual([
      2,
      expect.stringContaining("✗ credentials  STS answered with status 502"),
    ]);
  });

  it("does not scan a large table unasked", async () => {
    const answers = { ...good, DescribeTable: { Table: { ...goodTable, ItemCount: 2_000_000 } } };
    const { stdout } = await doctor(answers);
    expect(stdout).toContain("a scan of 2,000,000 items has its price: --scan does it");
    const scanned = await doctor(answers, "--scan");
    expect(scanned.stdout).toContain("0 expired leases");
  });

  it("ends with 69 where DynamoDB fails, for nothing is known then", async () => {
    const { code } = await doctor(
      { ...good, DescribeTable: refuse("InternalServerError", 500) },
      "--timeout",
      "300ms",
    );
    expect(code).toBe(69);
  });

  it("does not call the table wrong where Ctrl-C ends its description", async () => {
    const stop = new AbortController();
    server.answer({ ...good, DescribeTable: () => stop.abort(new Interruption("SIGINT")) });
    const called = await leasehold(["doctor", "--read-only"], { env, signal: stop.signal });
    expect(called).toEqual({ code: 130, stdout: "", stderr: "" });
  });

  it("calls a clock wrong that is off by more than the allowance", async () => {
    const late: Reaction = (response, request) =>
      say({}, 200, { date: new Date(Date.now() - 60_000).toUTCString() })(response, request);
    const { code, stdout } = await doctor({ ...good, GetItem: late });
    expect(code).toBe(2);
    expect(stdout).toMatch(/✗ clock {8}about (59s|1m 0\ds) ahead of DynamoDB's \(allowed 1\.0s\)/);
  });
});

describe("the permissions' finding", () => {
  const findings = async (change: Answers) => {
    server.answer({ ...good, ...change });
    const dynamodb = new DynamoDBClient({
      endpoint: server.url,
      region: "eu-central-1",
      credentials: { accessKeyId: "local", secretAccessKey: "local" },
    });
    const send = dynamodb.send.bind(dynamodb);
    const found = await permissionFindings({ tableName: "leases", send } as AskedTable, false);
    dynamodb.destroy();
    return found;
  };

  it("takes a condition that does not hold for a permission", async () => {
    expect(await findings({})).toEqual([
      {
        check: "permissions",
        result: "ok",
        text:
          "GetItem UpdateItem Query Scan PartiQLUpdate ConditionCheckItem DeleteItem " +
          '(each tried on the key "leasehold/doctor")',
      },
    ]);
  });

  it("sends writes that no item can meet, and no others", async () => {
    await findings({});
    for (const [operation, body] of server
      .sent()
      .filter(([name]) => /^(Update|Delete|Transact|Batch)/.test(name))) {
      expect([operation, JSON.stringify(body)]).toEqual([
        operation,
        expect.stringContaining("no token is this one"),
      ]);
    }
  });

  it.each([
    ["UpdateItem", "error", { UpdateItem: refuse("AccessDeniedException") }],
    ["Scan", "warning", { Scan: refuse("AccessDeniedException") }],
    ["DeleteItem", "warning", { DeleteItem: refuse("AccessDeniedException") }],
    ["ConditionCheckItem", "warning", { TransactWriteItems: refuse("AccessDeniedException") }],
    [
      "PartiQLUpdate",
      "warning",
      { BatchExecuteStatement: { Responses: [{ Error: { Code: "AccessDenied" } }] } },
    ],
    ["PartiQLUpdate", "not checked", { BatchExecuteStatement: refuse("UnknownOperationException") }],
  ] as const)("says that %s is missing: %s", async (action, result, change) => {
    const [, missing] = await findings(change);
    expect(missing).toMatchObject({ result, text: expect.stringContaining(action) });
  });
});

it.each([
  [{ minMs: -450, maxMs: 500 }, "ok", "25ms behind"],
  // A header's resolution of a second may explain it.
  [{ minMs: -1_950, maxMs: -900 }, "ok", "1.4s ahead of"],
  [{ minMs: -2_150, maxMs: -1_100 }, "error", "1.6s ahead of"],
  [{ minMs: 1_100, maxMs: 2_150 }, "error", "1.6s behind"],
  [undefined, "not checked", "no Date header"],
])("a service that is ahead of this machine's clock by %j is told: %s, %s", (ahead, result, text) => {
  expect(clockFinding({ ahead: () => ahead }, 1_000)).toMatchObject({
    result,
    text: expect.stringContaining(text),
  });
});
