// An SDK below the range of the peer dependency is refused by name.
import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { createLeaseTable, InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { expect, it, vi } from "vitest";
import { refuse, startScriptedServer } from "../support/scripted-server.ts";

const tooOld =
  "the version of @aws-sdk/client-dynamodb is too old; allowed: 3.521.0 or newer; npm install @aws-sdk/client-dynamodb@latest";

vi.mock("@aws-sdk/client-dynamodb", async (original) => {
  const sdk = await original<typeof import("@aws-sdk/client-dynamodb")>();
  /** Before 3.521.0, settings were taken for a handler. */
  class OldClient extends sdk.DynamoDBClient {
    constructor(config: DynamoDBClientConfig) {
      super(config);
      if (config.requestHandler !== undefined) {
        Object.assign(this.config, { requestHandler: config.requestHandler });
      }
    }
  }
  return { ...sdk, DynamoDBClient: OldClient };
});

it("is refused where it would have to be given a handler", async () => {
  expect(() => new LeaseClient({ tableName: "leases" })).toThrow(InvalidOptionsError);
  expect(() => new LeaseClient({ tableName: "leases" })).toThrow(tooOld);
  await expect(createLeaseTable({ tableName: "leases" })).rejects.toThrow(tooOld);
});

it("is refused where it leaves out the wish for the item that refused a write", async () => {
  const server = await startScriptedServer();
  server.script(refuse("ConditionalCheckFailedException"));
  const credentials = { accessKeyId: "AKID", secretAccessKey: "s" };
  const dynamodb = new DynamoDBClient({ endpoint: server.url, region: "eu-central-1", credentials });
  dynamodb.middlewareStack.add(
    (next) => async (args) => {
      const request = args.request as { body: string };
      const { ReturnValuesOnConditionCheckFailure: _, ...input } = JSON.parse(request.body);
      request.body = JSON.stringify(input);
      return await next(args);
    },
    { step: "build", priority: "high" },
  );
  await expect(new LeaseClient({ tableName: "leases", dynamodb }).acquire("k")).rejects.toThrow(tooOld);
  expect(server.requests).toHaveLength(1);
  dynamodb.destroy();
  await server.close();
});
