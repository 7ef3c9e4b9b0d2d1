import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocument, DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import {
  createLeaseTable,
  LeaseClient,
  LeaseConfigurationError,
  type LeaseError,
  LeaseServiceError,
  LeaseTableError,
} from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { renew } from "../../packages/client/src/statements/lock.ts";
import { isDocumentClient, toStatement } from "../../packages/client/src/stores/sdk/encoding.ts";
import { rejectionFor } from "../../packages/client/src/stores/sdk/errors.ts";

async function failureOf(...failed: Parameters<typeof rejectionFor>): Promise<LeaseError> {
  return (await rejectionFor(...failed)) as LeaseError;
}

const idle = new AbortController().signal;
const leases = { tableName: "leases", dynamodb: new DynamoDBClient({ region: "eu-central-1" }) };
const once = (lastError?: unknown) => ({ mayHaveLanded: false, lastError });
const sdkError = (name: string, message: string, httpStatusCode?: number): Error =>
  Object.assign(new Error(message), {
    name,
    $metadata: httpStatusCode === undefined ? {} : { httpStatusCode },
  });

describe("an error of the SDK becomes", () => {
  const types: Readonly<Record<string, unknown>> = {
    LEASE_TABLE_NOT_FOUND: LeaseTableError,
    LEASE_TABLE_MISMATCH: LeaseTableError,
    LEASE_CREDENTIALS_MISSING: LeaseConfigurationError,
    LEASE_REGION_MISSING: LeaseConfigurationError,
    LEASE_ACCESS_DENIED: LeaseConfigurationError,
  };

  // An error without a status has no answer.
  it.each([
    ["ResourceNotFoundException 400: Requested resource not found", "LEASE_TABLE_NOT_FOUND"],
    ["ValidationException 400: The provided key element does not match the schema", "LEASE_TABLE_MISMATCH"],
    ["ValidationException 400: The number of conditions on the keys is invalid", "LEASE_TABLE_MISMATCH"],
    ["ValidationException 400: values were invalid: Type mismatch for key pk", "LEASE_TABLE_MISMATCH"],
    ["CredentialsProviderError: Could not load credentials from any providers", "LEASE_CREDENTIALS_MISSING"],
    ["Error: Region is missing", "LEASE_REGION_MISSING"],
    ["AccessDeniedException 400: User is not authorized to perform UpdateItem", "LEASE_ACCESS_DENIED"],
    ["UnrecognizedClientException 400: The security token is invalid", "LEASE_ACCESS_DENIED"],
    ["ProvisionedThroughputExceededException 400: exceeded", "LEASE_THROTTLED"],
    ["ThrottlingException 400: slow down", "LEASE_THROTTLED"],
    ["TransactionConflictException 400: Transaction is ongoing for the item leases", "LEASE_CONFLICT"],
    ["ReplicatedWriteConflictException 400: being modified in another region", "LEASE_CONFLICT"],
    ["InternalServerError 500: oops", "LEASE_SERVICE_FAILED"],
    ["TimeoutError: timed out", "LEASE_NO_ANSWER"],
    ["ECONNREFUSED: connect ECONNREFUSED", "LEASE_NO_ANSWER"],
    ["ValidationException 400: Item size to update has exceeded the size", "LEASE_REQUEST_REJECTED"],
  ])("%s: %s", async (said, code) => {
    const [, name = "", status, message = ""] = /^(\w+)(?: (\d+))?: (.*)$/.exec(said) ?? [];
    const error = sdkError(name, message, status === undefined ? undefined : Number(status));
    const translated = await failureOf(error, leases, idle, once(error));
    expect(translated).toBeInstanceOf(types[code] ?? LeaseServiceError);
    expect(translated.code).toBe(code);
    expect(translated.cause).toBe(error);
    if (code !== "LEASE_CREDENTIALS_MISSING" && code !== "LEASE_REGION_MISSING")
      expect(translated.message).toContain("leases");
  });

  it("the reason why its last attempt failed, when it was cut off while it waited to try again", async () => {
    const cut = AbortSignal.abort(new Error("no answer within 10 ms"));
    const aborted = sdkError("AbortError", "Request aborted");
    const throttled = sdkError("ThrottlingException", "slow down", 400);
    expect((await failureOf(aborted, leases, cut, once(throttled))).code).toBe("LEASE_THROTTLED");
    const silent = await failureOf(aborted, leases, cut, once());
    expect(silent).toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining("no answer within 10 ms"),
    });
  });
});

it("only a rejection is not worth repeating", () => {
  const codes = [
    "LEASE_THROTTLED",
    "LEASE_CONFLICT",
    "LEASE_SERVICE_FAILED",
    "LEASE_NO_ANSWER",
    "LEASE_REQUEST_REJECTED",
  ] as const;
  const lasting = codes.filter((code) => !new LeaseServiceError(code, "x").retryable);
  expect(lasting).toEqual(["LEASE_REQUEST_REJECTED"]);
});

it("a renewal as PartiQL says what its update expression says, with every value a parameter", () => {
  const request = renew(
    { key: "k'\"; --" },
    {
      shown: { token: "t", fencingToken: 6 },
      version: 7,
      expiresAt: 5_000,
      leaseDurationMs: 1_000,
      retentionMs: 0,
    },
  ).request();
  expect(toStatement("leases", request)).toEqual({
    Statement:
      'UPDATE "leases" SET "version" = ? SET "expiresAt" = ? SET "leaseDurationMs" = ? SET "ttl" = ? ' +
      'WHERE "pk" = ? AND "sk" = ? AND "token" = ? AND "fence" = ? AND "version" < ? RETURNING ALL NEW *',
    Parameters: [
      { N: "7" },
      { N: "5000" },
      { N: "1000" },
      { N: "5" },
      { S: "k'\"; --" },
      { S: "lease" },
      { S: "t" },
      { N: "6" },
      { N: "7" },
    ],
  });
});

describe("a client of the user's", () => {
  const credentials = { accessKeyId: "id", secretAccessKey: "secret" };
  const dynamodb = new DynamoDBClient({ region: "eu-central-1", credentials });

  it("is told apart from a document client, which marks the client that it is made from", () => {
    const documents = DynamoDBDocumentClient.from(dynamodb);
    expect([dynamodb, documents, DynamoDBDocument.from(dynamodb)].map(isDocumentClient)).toEqual([
      false,
      true,
      true,
    ]);
  });

  it("keeps its middleware as it was", async () => {
    const own = new DynamoDBClient({
      region: "eu-central-1",
      credentials,
      maxAttempts: 1,
      requestHandler: { handle: () => Promise.reject(sdkError("ECONNRESET", "gone")) },
    });
    const identify = own.middlewareStack.identify();
    const client = new LeaseClient({ tableName: "leases", dynamodb: own, clock: new ManualClock() });
    await expect(client.acquire("k")).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(own.middlewareStack.identify()).toEqual(identify);
  });

  /** A client whose credentials never come, and when it asks for them. */
  function withoutCredentials(): { readonly dynamodb: DynamoDBClient; readonly asked: Promise<void> } {
    const asked = Promise.withResolvers<void>();
    const credentials = (): Promise<never> => {
      asked.resolve();
      return new Promise(() => undefined);
    };
    return { dynamodb: new DynamoDBClient({ region: "eu-central-1", credentials }), asked: asked.promise };
  }

  it("hears when the time of a call is over", async () => {
    const clock = new ManualClock();
    const asked = Promise.withResolvers<AbortSignal | undefined>();
    const handle = (_request: unknown, { abortSignal }: { readonly abortSignal?: AbortSignal } = {}) => {
      asked.resolve(abortSignal);
      return new Promise<never>(() => undefined);
    };
    const own = new DynamoDBClient({
      region: "eu-central-1",
      credentials,
      requestHandler: { handle } as never,
    });
    const client = new LeaseClient({ tableName: "leases", dynamodb: own, clock });
    const acquired = client.acquire("k").catch((error: unknown) => error);
    const signal = await asked.promise;
    expect(signal?.aborted).toBe(false);
    await clock.advance(10_000);
    await acquired;
    expect(signal?.aborted).toBe(true);
  });

  it("does not keep a call beyond its time while it waits for credentials", async () => {
    const clock = new ManualClock();
    const { dynamodb, asked } = withoutCredentials();
    const client = new LeaseClient({ tableName: "leases", dynamodb, clock });
    const acquired = client.acquire("k").catch((error: unknown) => error);
    await asked;
    await clock.advance(10_000);
    expect(await acquired).toMatchObject({ code: "LEASE_NO_ANSWER", mayHaveLanded: false });
  });

  it("does not keep the making of a table beyond its time while it waits for credentials", async () => {
    const clock = new ManualClock();
    const { dynamodb, asked } = withoutCredentials();
    const made = createLeaseTable({ tableName: "leases", dynamodb, clock, waitMs: 5_000 }).catch(
      (error: unknown) => error,
    );
    await asked;
    await clock.advance(5_000);
    expect(await made).toMatchObject({ code: "LEASE_NO_ANSWER" });
  });

  it("is asked for nothing but one conditional write, with user values only as values", async () => {
    const sent: unknown[] = [];
    const recording = {
      send: (command: unknown) => {
        sent.push(command);
        return Promise.reject(sdkError("AccessDeniedException", "no", 400));
      },
    };
    const client = new LeaseClient({ tableName: "leases", dynamodb: recording as never, owner: "#owner :x" });
    await expect(client.acquire("key = :token", { data: "#token" })).rejects.toMatchObject({
      code: "LEASE_ACCESS_DENIED",
    });
    expect(sent).toHaveLength(1);
    const { input } = sent[0] as UpdateItemCommand;
    expect(sent[0]).toBeInstanceOf(UpdateItemCommand);
    expect(input.Key).toEqual({ pk: { S: "key = :token" }, sk: { S: "lease" } });
    expect(`${input.UpdateExpression} ${input.ConditionExpression}`).not.toMatch(/key = :token|#owner :x/);
    expect(input.ConditionExpression).toBe(
      "attribute_not_exists(#token) AND #releasedToken <> :ifReleasedToken",
    );
    expect(input.ReturnValuesOnConditionCheckFailure).toBe("ALL_OLD");
  });
});
