import { BatchExecuteStatementCommand, type BatchStatementResponse } from "@aws-sdk/client-dynamodb";
import { LeaseError, type UpdateRequest } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { renew } from "../../packages/client/src/statements/lock.ts";
import { DynamoDBLeaseStore } from "../../packages/client/src/stores/sdk/store.ts";

const minute = 60_000;
const served: BatchStatementResponse = { Item: { token: { S: "t" } } };
const failed = (Code: string): BatchStatementResponse => ({
  Error: { Code: Code as never, Message: "as the test wants it" },
});
const thrown = (name: string): Error =>
  Object.assign(new Error("as the test wants it"), { name, $metadata: { httpStatusCode: 400 } });

let clock: ManualClock;
let store: DynamoDBLeaseStore;
/** How many statements each batch had. */
let sent: number[];
/** What the service says to a batch. */
let answer: (statements: number) => BatchStatementResponse[];

beforeEach(() => {
  clock = new ManualClock();
  sent = [];
  answer = (statements) => Array.from({ length: statements }, () => served);
  const dynamodb = {
    send: async (command: BatchExecuteStatementCommand) => {
      expect(command).toBeInstanceOf(BatchExecuteStatementCommand);
      const statements = command.input.Statements?.length ?? 0;
      sent.push(statements);
      return { Responses: answer(statements) };
    },
  };
  store = new DynamoDBLeaseStore("leases", dynamodb as never, clock);
});

const renewals = (count: number): UpdateRequest[] =>
  Array.from({ length: count }, (_, index) =>
    renew(
      { key: `k${index}` },
      {
        shown: { token: "t", fencingToken: 1 },
        version: 2,
        expiresAt: 1_000,
        leaseDurationMs: 1_000,
        retentionMs: 0,
      },
    ).request(),
  );

/** What became of each write, in short. */
const update = async (count: number): Promise<string[]> => {
  const call = { signal: new AbortController().signal, isCurrent: () => true };
  const results = await store.updateMany(renewals(count), call);
  return results.map((result) =>
    result === undefined
      ? "alone"
      : result instanceof LeaseError
        ? result.code
        : result.applied
          ? "applied"
          : "refused",
  );
};

it("a batch has 25 statements at most", async () => {
  expect(await update(60)).toEqual(Array(60).fill("applied"));
  expect(sent).toEqual([25, 25, 10]);
  await update(25);
  expect(sent).toEqual([25, 25, 10, 25]);
});

describe("a statement that failed", () => {
  it.each(["ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"])(
    "for %s is not to be repeated at once",
    async (code) => {
      answer = () => [served, failed(code)];
      expect(await update(2)).toEqual(["applied", "LEASE_THROTTLED"]);
    },
  );

  it("inside the service is not to be repeated at once", async () => {
    answer = () => [served, failed("InternalServerError")];
    expect(await update(2)).toEqual(["applied", "LEASE_SERVICE_FAILED"]);
  });

  it.each(["ConditionalCheckFailed", "TransactionConflict", "AccessDenied", "ValidationError"])(
    "for %s is sent alone, and the next batch is sent as before",
    async (code) => {
      answer = () => [served, failed(code)];
      expect(await update(2)).toEqual(["applied", "alone"]);
      expect(await update(2)).toEqual(["applied", "alone"]);
      expect(sent).toEqual([2, 2]);
    },
  );
});

it.each(["ThrottlingException", "ProvisionedThroughputExceededException"])(
  "a batch that failed for %s is not to be repeated at once",
  async (name) => {
    answer = () => {
      throw thrown(name);
    };
    expect(await update(3)).toEqual(Array(3).fill("LEASE_THROTTLED"));
  },
);

describe.each([
  [
    "a whole batch is refused",
    () => {
      throw thrown("AccessDeniedException");
    },
  ],
  ["each statement of a batch is refused", (count: number) => Array(count).fill(failed("AccessDenied"))],
])("where %s", (_, refuse) => {
  it("writes are sent alone, and a batch is tried again after a minute", async () => {
    answer = refuse;
    expect(await update(2)).toEqual(["alone", "alone"]);
    clock.freeze(minute - 1);
    expect(await update(2)).toEqual(["alone", "alone"]);
    expect(sent).toHaveLength(1);
    answer = () => [served, served];
    clock.freeze(1);
    expect(await update(2)).toEqual(["applied", "applied"]);
    expect(await update(2)).toEqual(["applied", "applied"]);
    expect(sent).toHaveLength(3);
  });

  it("the pause doubles with each refusal, up to an hour, and starts anew after a success", async () => {
    answer = refuse;
    const sentAfterMinutes = async (minutes: number): Promise<number[]> => {
      const sentAt: number[] = [];
      for (let passed = 0; passed < minutes; passed += 1) {
        const before = sent.length;
        // Several at once: those that are refused together count once.
        await Promise.all([update(2), update(2)]);
        if (sent.length > before) sentAt.push(passed);
        clock.freeze(minute);
      }
      return sentAt;
    };
    expect(await sentAfterMinutes(243)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
    answer = () => [served, served];
    await update(2);
    answer = refuse;
    expect(await sentAfterMinutes(4)).toEqual([0, 1, 3]);
  });
});

it("a table that is named by its ARN has no batches: a statement would take the caller's own table of that name", async () => {
  const dynamodb = {
    send: async () => {
      throw new Error("nothing is sent");
    },
  };
  const table = "arn:aws:dynamodb:eu-west-1:444455556666:table/leases";
  const foreign = new DynamoDBLeaseStore(table, dynamodb as never, clock);
  const call = { signal: new AbortController().signal, isCurrent: () => true };
  expect(await foreign.updateMany(renewals(2), call)).toEqual([undefined, undefined]);
});
