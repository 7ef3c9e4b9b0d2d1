// The commands that look, in processes of their own on an engine: pipes that close, foreign tables, NO_COLOR.

import { CreateTableCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import type { LeaseClient } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cliOnTable } from "../support/cli-process.ts";

const cli = cliOnTable();
let client: LeaseClient;

beforeAll(async () => {
  client = cli.table.client({ owner: "worker" });
  for (let n = 0; n < 20; n += 1) await client.acquire(`key-${n}`, { leaseDurationMs: 3_600_000 });
});
afterAll(() => client.close());

/** Runs a line of a shell to its end. */
async function shell(line: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const call = cli.shell(line);
  expect(await call.ended).toBe(0);
  return call;
}

describe("in a shell", () => {
  it.each(["ls", "ls -o tsv", "ls --ndjson", "ls --watch --every 100ms", "audit", "get key-1"])(
    "leasehold %s ends with 0 and says nothing when the pipe is closed",
    async (args) => {
      const { stdout, stderr } = await shell(
        `set -o pipefail; leasehold ${args} -q | head -1 > /dev/null; echo "\${PIPESTATUS[0]}"`,
      );
      expect({ stdout, stderr }).toEqual({ stdout: "0\n", stderr: "" });
    },
  );

  it("writes no colours into a pipe, unless they are asked for", async () => {
    await cli.table.deadLease("dead");
    const escapes = "\u001b[";
    expect((await shell("leasehold ls --expired")).stdout).not.toContain(escapes);
    expect((await shell("leasehold ls --expired --color always")).stdout).toContain(escapes);
    expect((await shell("FORCE_COLOR=1 leasehold ls --expired")).stdout).toContain(escapes);
    expect((await shell("FORCE_COLOR=1 NO_COLOR=1 leasehold ls --expired")).stdout).not.toContain(escapes);
  });
});

describe("a table of another schema", () => {
  it.each([
    ["ls", "table mismatch"],
    ["get key", "table mismatch"],
    ["ls --watch", "table mismatch"],
    ["stop key --yes", "table mismatch"],
  ])("ends leasehold %s with 78", async (args, message) => {
    const tableName = await foreignTable({ hash: "id" });
    const call = cli.call(args.split(" "), { LEASEHOLD_TABLE_NAME: tableName });
    expect(await call.ended).toBe(78);
    expect(call.stderr).toContain(message);
    expect(call.stdout).toBe("");
  });

  it("is noticed where its items have pk, and no sk", async () => {
    const tableName = await foreignTable({ hash: "pk" });
    await cli.table.dynamodb.send(
      new PutItemCommand({ TableName: tableName, Item: { pk: { S: "x" }, token: { S: "y" } } }),
    );
    const call = cli.call(["ls"], { LEASEHOLD_TABLE_NAME: tableName });
    expect(await call.ended).toBe(78);
    expect(call.stderr).toContain("this is no lease table");
  });
});

async function foreignTable({ hash }: { readonly hash: string }): Promise<string> {
  const tableName = `foreign-${crypto.randomUUID()}`;
  await cli.table.dynamodb.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [{ AttributeName: hash, KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: hash, AttributeType: "S" }],
    }),
  );
  return tableName;
}
