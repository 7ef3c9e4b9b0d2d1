import { readdirSync, readFileSync } from "node:fs";
import { DynamoDBClient, type DynamoDBClientConfig, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { TaskSet } from "@leasehold/jobs";
import { describe, expect, test } from "vitest";
import { acceptanceKeyPrefix } from "../../functions/acceptance/schema.ts";
import { readArguments } from "./arguments.ts";
import { checked } from "./check.ts";
import { keepToKeySpace, readConsistently, sweep } from "./key-space.ts";
import { AcceptanceProblem, problemOf } from "./problems.ts";

/** An SDK client whose requests reach this list and nothing else. */
function recording(config: DynamoDBClientConfig = {}): {
  readonly dynamodb: DynamoDBClient;
  readonly sent: { readonly name: string; readonly input: Record<string, unknown> }[];
} {
  const dynamodb = new DynamoDBClient({ region: "us-east-1", ...config });
  const sent: { name: string; input: Record<string, unknown> }[] = [];
  dynamodb.middlewareStack.add(
    (_next, { commandName }) =>
      async ({ input }) => {
        sent.push({ name: String(commandName), input: { ...input } });
        return { output: { $metadata: {} }, response: undefined } as never;
      },
    { step: "initialize", priority: "low", name: "recording" },
  );
  return { dynamodb, sent };
}

describe("the keys of acceptance", () => {
  /** What reached the service, as text, and what the call was rejected with. */
  const write = async (perform: (client: LeaseClient) => Promise<unknown>) => {
    const { dynamodb, sent } = recording();
    keepToKeySpace(dynamodb);
    const error = await perform(new LeaseClient({ tableName: "leases", dynamodb })).then(
      () => undefined,
      (reason: Error) => reason.cause ?? reason,
    );
    return { sent: JSON.stringify(sent), error };
  };
  const ours = `${acceptanceKeyPrefix}lock`;
  const foreign = "close-unpaid-orders";

  const outside = { code: "OUTSIDE_KEY_SPACE" };
  const writes: [string, (key: string) => (client: LeaseClient) => Promise<unknown>][] = [
    ["a lock", (key) => (client) => client.acquire(key)],
    ["a group, beside one of ours", (key) => (client) => acquireAll(client, [ours, key])],
    ["tasks", (key) => (client) => new TaskSet(client, key).add([{ id: "1" }])],
  ];

  test.each(writes)("are the only ones that are written, by %s", async (_, of) => {
    const own = `${ours}/2`;
    expect((await write(of(own))).sent).toContain(own);
    const { sent, error } = await write(of(foreign));
    expect(sent).not.toContain(foreign);
    expect(error).toMatchObject(outside);
  });

  test("are told from a batch's statements, whatever their values begin with", async () => {
    const { dynamodb, sent } = recording();
    keepToKeySpace(dynamodb);
    const { toStatement } = await import("../../packages/client/src/stores/sdk/encoding.ts");
    const { BatchExecuteStatementCommand } = await import("@aws-sdk/client-dynamodb");
    const statement = (pk: string) =>
      toStatement("leases", {
        key: { pk, sk: "lease" },
        update: "SET #owner = :owner, #version = :version",
        condition: "#token = :token",
        names: { "#owner": "owner", "#version": "version", "#token": "token" },
        values: { ":owner": `${acceptanceKeyPrefix}owner?`, ":version": 1, ":token": ours },
        returnsItem: true,
      });
    const batch = (...keys: string[]) =>
      dynamodb.send(new BatchExecuteStatementCommand({ Statements: keys.map(statement) }));
    await batch(ours, `${ours}/2`);
    expect(sent).toHaveLength(1);
    await expect(batch(ours, foreign)).rejects.toMatchObject(outside);
    expect(sent).toHaveLength(1);
  });

  test("are read wherever they are, and consistently where a contract looks", async () => {
    const { dynamodb, sent } = recording();
    keepToKeySpace(dynamodb);
    const look = () =>
      dynamodb.send(new GetItemCommand({ TableName: "t", Key: { pk: { S: foreign }, sk: { S: "lease" } } }));
    await look();
    readConsistently(dynamodb);
    await look();
    expect(sent.map(({ input }) => input.ConsistentRead)).toEqual([undefined, true]);
  });
});

test("what is left is deleted many items at a time, a page after the other, and nothing else", async () => {
  const pages = [50, 30].map((count, page) =>
    Array.from({ length: count }, (_, index) => ({
      pk: { S: `${acceptanceKeyPrefix}${page}/${index}` },
      sk: { S: "lease" },
    })),
  );
  const dynamodb = new DynamoDBClient({ region: "us-east-1" });
  const deleted: unknown[] = [];
  let [underWay, most, scans] = [0, 0, 0];
  dynamodb.middlewareStack.add(
    (_next, { commandName }) =>
      async ({ input }) => {
        const answer = (output: object) =>
          ({ output: { $metadata: {}, ...output }, response: undefined }) as never;
        if (commandName === "ScanCommand") {
          const Items = pages[scans];
          scans += 1;
          return answer({ Items, ...(scans < pages.length ? { LastEvaluatedKey: Items?.at(-1) } : {}) });
        }
        underWay += 1;
        most = Math.max(most, underWay);
        await Promise.resolve();
        deleted.push((input as { Key?: unknown }).Key);
        underWay -= 1;
        return answer({});
      },
    { step: "initialize", priority: "low", name: "pages" },
  );
  expect(await sweep(dynamodb, "leases")).toBe(80);
  expect(deleted).toEqual(pages.flat());
  // From a distance of 100 ms, a thousand items take seconds, not minutes; and the SDK has 50 connections.
  expect(most).toBe(20);
});

describe("the command line", () => {
  test("without arguments means this machine; a stack needs DYNAMODB_ENDPOINT=aws, which needs a stack", () => {
    expect(readArguments([], {})).toEqual({ stackName: undefined });
    expect(readArguments(["--stack", "Leases"], { DYNAMODB_ENDPOINT: "aws" })).toEqual({
      stackName: "Leases",
    });
  });

  test.each([
    [["--stack", "Leases"], {}, /DYNAMODB_ENDPOINT is not set/],
    [[], { DYNAMODB_ENDPOINT: "aws" }, /no stack is named/],
    [["--stack", ""], { DYNAMODB_ENDPOINT: "aws" }, /--stack is empty/],
    [["--stacks"], {}, /--stacks/],
    [["Leases"], {}, /Leases/],
  ])("%j with %j is refused, and says how it is used", (args, env, message) => {
    const read = () => readArguments(args, env);
    expect(read).toThrow(message);
    expect(read).toThrow(/npm run evidence -- acceptance --stack/);
    expect(read).toThrow(expect.objectContaining({ code: "USAGE" }));
  });
});

describe("an error of AWS's", () => {
  const named = (name: string, more: object = {}) =>
    Object.assign(new Error("as AWS says it"), { name, ...more });

  test.each([
    ["CredentialsProviderError", "NO_CREDENTIALS"],
    ["ExpiredTokenException", "CREDENTIALS_EXPIRED"],
    ["InvalidClientTokenId", "CREDENTIALS_REFUSED"],
    ["AccessDeniedException", "ACCESS_DENIED"],
    ["ENOTFOUND", "UNREACHABLE"],
  ])("%s is named %s, with what to do and what AWS said; any other is not explained away", (name, code) => {
    for (const error of [named(name), named("Error", { code: name })]) {
      const problem = problemOf(error, "reading the stack");
      expect(problem).toMatchObject({ code });
      expect(problem?.message).toMatch(/reading the stack: \w+: as AWS says it$/);
    }
    expect(problemOf(named("ValidationException"), "looking")).toBeUndefined();
  });

  test("ends the checks where it would end all of them; any other fails its own check alone", async () => {
    const { signal } = new AbortController();
    const failing = (error: Error) => checked("a check", "much", () => Promise.reject(error), signal);
    await expect(failing(named("AccessDeniedException"))).rejects.toBeInstanceOf(AcceptanceProblem);
    await expect(failing(new Error("no", { cause: named("ExpiredToken") }))).rejects.toMatchObject({
      code: "CREDENTIALS_EXPIRED",
    });
    expect(await failing(named("LeaseLostError"))).toEqual({
      name: "a check",
      promised: "much",
      measured: "failed",
      holds: false,
      details: ["LeaseLostError: as AWS says it"],
    });
  });

  test("is the interruption's where somebody has asked for the end", async () => {
    const end = new Error("the end");
    const check = checked("a check", "much", () => Promise.reject(new Error("x")), AbortSignal.abort(end));
    await expect(check).rejects.toBe(end);
  });
});

test("the permissions in docs/deploy.md are those of the requests that acceptance makes, and no others", () => {
  const [, json = ""] = /```json\n(.*?)```/s.exec(readFileSync("docs/deploy.md", "utf8")) ?? [];
  const { Statement } = JSON.parse(json) as { Statement: { Action: string | string[] }[] };
  const listed = Statement.flatMap(({ Action }) => Action);
  const sources = readdirSync("test/acceptance")
    .filter((name) => name.endsWith(".ts") && name !== "local-deployment.ts")
    .map((name) => readFileSync(`test/acceptance/${name}`, "utf8"))
    .join("\n");
  const services: [string, RegExp][] = [
    ["cloudformation", /new (DescribeStacks)Command/g],
    ["lambda", /new (Invoke)Command/g],
    ["states", /(?:new |paginate)(\w+Execution\w*?)(?:Command)?\(/g],
  ];
  const sent = services.flatMap(([service, sign]) =>
    [...sources.matchAll(sign)].map(
      ([, name]) => `${service}:${name === "Invoke" ? "InvokeFunction" : name}`,
    ),
  );
  const onTables = [...useActions, "dynamodb:Query", "dynamodb:DeleteItem", "dynamodb:Scan"];
  expect(listed.toSorted()).toEqual([...new Set([...sent, ...onTables])].sort());
});

/** What a lease client sends; test/infra holds the grants to it. */
const useActions = ["UpdateItem", "GetItem", "ConditionCheckItem", "PartiQLUpdate"].map(
  (it) => `dynamodb:${it}`,
);
