import type { DynamoDBClient, TransactWriteItemsCommandInput } from "@aws-sdk/client-dynamodb";
import type { DynamoDBDocumentClient, TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Lease, LeaseClientOptions } from "@leasehold/client";
import { expectTypeOf, it } from "vitest";

it("the clients of both SDK packages fit, and a condition check fits their transactions", () => {
  type Client = NonNullable<LeaseClientOptions["dynamodb"]>;
  expectTypeOf<DynamoDBClient>().toExtend<Client>();
  expectTypeOf<DynamoDBDocumentClient>().toExtend<Client>();
  type Check = ReturnType<Lease["conditionCheck"]>;
  expectTypeOf<Check>().toExtend<NonNullable<TransactWriteItemsCommandInput["TransactItems"]>[number]>();
  expectTypeOf<Check>().toExtend<NonNullable<TransactWriteCommandInput["TransactItems"]>[number]>();
});
