import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseTable } from "@leasehold/cdk";
import { startApp } from "@leasehold/local";
import { expect, inject, onTestFinished, test } from "vitest";
import { engineAt } from "../support/engine-at.ts";
import { startStack } from "./fixtures/stack.ts";

test("a directory without an assembly is refused, and says what to do", async () => {
  const { clientConfig, ...engine } = inject("engine");
  const started = startApp({ assemblyDir: "/nowhere", engine: engineAt(clientConfig, engine) });
  await expect(started).rejects.toThrow(/no cloud assembly in \/nowhere: synthesize the app first/);
});

test("a name that nothing has is refused with the names that there are, and the tables are gone at the end", async () => {
  const { app, ...started } = await startStack((stack) => void new LeaseTable(stack, "Leases"), {});
  expect(() => app.tableName("Leeses")).toThrow(/no table is called "Leeses"; there are: Stack\/Leases/);
  const TableName = app.tableName("Leases/Resource");
  const dynamodb = new DynamoDBClient({ ...inject("engine").clientConfig });
  onTestFinished(() => dynamodb.destroy());
  const described = () => dynamodb.send(new DescribeTableCommand({ TableName }));
  expect((await described()).Table?.TableName).toBe(TableName);
  await started[Symbol.asyncDispose]();
  await expect(described()).rejects.toMatchObject({ name: "ResourceNotFoundException" });
});
