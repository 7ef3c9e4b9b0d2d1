import type { DynamoDBClient, TransactWriteItemsCommandInput } from "@aws-sdk/client-dynamodb";
import type {
  DynamoDBDocument,
  DynamoDBDocumentClient,
  TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";
import type { Lease, LeaseClient, LeaseClientOptions, LeaseHandle, LeaseRecord } from "@leasehold/client";
import { expectTypeOf, it } from "vitest";

it("the public names have the types that callers rely on", () => {
  expectTypeOf<DynamoDBClient>().toExtend<NonNullable<LeaseClientOptions["dynamodb"]>>();
  expectTypeOf<DynamoDBDocumentClient>().toExtend<NonNullable<LeaseClientOptions["dynamodb"]>>();
  expectTypeOf<DynamoDBDocument>().toExtend<NonNullable<LeaseClientOptions["dynamodb"]>>();
  expectTypeOf<LeaseClient["acquire"]>().returns.resolves.toEqualTypeOf<Lease>();
  expectTypeOf<LeaseClient["tryAcquire"]>().returns.resolves.toEqualTypeOf<Lease | undefined>();
  expectTypeOf<LeaseClient["inspect"]>().returns.resolves.toEqualTypeOf<LeaseRecord | undefined>();
  expectTypeOf<Lease["release"]>().returns.resolves.toEqualTypeOf<boolean>();
  expectTypeOf<Lease["fencingToken"]>().toEqualTypeOf<number>();
  expectTypeOf<Lease>().toExtend<AsyncDisposable>();
  expectTypeOf<Lease["toJSON"]>().returns.toEqualTypeOf<LeaseHandle>();
});

it("withLease gives what the work gives", () => {
  const typed = (client: LeaseClient) => client.withLease("k", {}, async () => 42 as const);
  expectTypeOf(typed).returns.resolves.toEqualTypeOf<42>();
  const bare = (client: LeaseClient) => client.withLease("k", (lease) => lease.key);
  expectTypeOf(bare).returns.resolves.toEqualTypeOf<string>();
});

it("a condition check fits the transactions of both SDK packages", () => {
  type Check = ReturnType<Lease["conditionCheck"]>;
  expectTypeOf<Check>().toExtend<NonNullable<TransactWriteItemsCommandInput["TransactItems"]>[number]>();
  expectTypeOf<Check>().toExtend<NonNullable<TransactWriteCommandInput["TransactItems"]>[number]>();
});
