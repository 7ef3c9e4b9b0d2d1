import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../tools/local/src/assembly/types.ts";
import {
  type DeliveryRules,
  deliver,
  type FailedBatch,
  type InvokeAnswer,
} from "../../tools/local/src/streams/delivery.ts";
import { type StreamEventRecord, toEventRecord } from "../../tools/local/src/streams/event.ts";
import { compileFilters, UnsupportedFilterError } from "../../tools/local/src/streams/filter.ts";

const rules: DeliveryRules = {
  retries: 2,
  reportsItemFailures: false,
  retryDelayMs: 1000,
};

const failure: InvokeAnswer = { payload: { errorType: "Error" }, functionError: "Unhandled" };

const record = (sequence: string, seconds = 0): StreamEventRecord =>
  toEventRecord(
    {
      eventName: "INSERT",
      dynamodb: { SequenceNumber: sequence, ApproximateCreationDateTime: new Date(seconds * 1000) },
    },
    { arn: "arn", region: "us-east-1" },
  );

/** Delivers records on a clock of its own and tells which batches the function saw. */
function delivery(
  ids: readonly string[],
  changes: Partial<DeliveryRules>,
  answer: (ids: string[]) => InvokeAnswer,
) {
  const clock = new ManualClock(10_000_000);
  const seen: string[][] = [];
  const failed: FailedBatch[] = [];
  const stopping = new AbortController();
  const done = deliver(
    ids.map((id) => record(id, 10_000)),
    { ...rules, ...changes },
    {
      clock,
      signal: stopping.signal,
      onFailure: (batch) => failed.push(batch),
      async invoke({ Records }) {
        const batch = Records.map(({ dynamodb }) => dynamodb.SequenceNumber);
        seen.push(batch);
        return answer(batch);
      },
    },
  );
  return { clock, seen, failed, done, stopping };
}

describe("the delivery of a batch", () => {
  test("a failed batch is tried again as a whole, later each time, and then given up", async () => {
    const { clock, seen, failed, done } = delivery(["1", "2"], {}, () => failure);
    await clock.advance(999);
    expect(seen).toHaveLength(1);
    await clock.advance(1);
    expect(seen).toHaveLength(2);
    await clock.advance(1999);
    expect(seen).toHaveLength(2);
    await clock.advance(1);
    await done;
    expect(seen).toEqual([
      ["1", "2"],
      ["1", "2"],
      ["1", "2"],
    ]);
    expect(failed).toMatchObject([{ invocations: 3 }]);
    expect(failed[0]?.records).toHaveLength(2);
  });

  const reports = { reportsItemFailures: true };
  const items = (...ids: string[]) => ({
    batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
  });
  const all = ["1", "2", "3", "4"];
  test.each<[string, string[], unknown, Partial<DeliveryRules>]>([
    ["a result", [], null, {}],
    ["null, where failures are reported", [], null, reports],
    ["a report of no record", [], items(), reports],
    ["a report to a mapping without reports", [], items("1"), {}],
    ["a report of two records", ["3", "4"], items("4", "3"), reports],
    ["a report of an unknown record", all, items("9"), reports],
    ["a report of an empty identifier", all, items(""), reports],
    ["a report that is no list", all, { batchItemFailures: "all" }, reports],
  ])("after %s, these records are tried again: %j", async (_what, again, payload, changes) => {
    const answers: InvokeAnswer[] = [{ payload }, { payload: {} }];
    const { clock, seen, failed, done } = delivery(all, changes, () => answers.shift() ?? failure);
    await clock.advance(1000);
    await done;
    expect(seen).toEqual([all, ...(again.length === 0 ? [] : [again])]);
    expect(failed).toEqual([]);
  });

  test("a function that cannot be invoked at all costs no retry", async () => {
    let calls = 0;
    const { clock, seen, failed, done } = delivery(["1"], { retries: 0 }, () => {
      calls += 1;
      if (calls < 5) throw new Error("throttled");
      return { payload: null };
    });
    await clock.advance(10_000);
    await done;
    expect(seen).toHaveLength(5);
    expect(failed).toEqual([]);
  });
});

describe("records as Lambda gives them", () => {
  const source = { arn: "arn", region: "us-east-1" };

  test.each([
    ["DynamoDB Local", { eventName: "UNKNOWN_TO_SDK_VERSION" as "REMOVE", dynamodb: {} }],
    ["dynoxide", { eventName: "REMOVE" as const, userIdentity: {}, dynamodb: {} }],
  ])("what %s sends for ttl becomes what AWS sends, and a plain removal names nobody", (_, sent) => {
    expect(toEventRecord(sent, source)).toMatchObject({
      eventName: "REMOVE",
      userIdentity: { type: "Service", principalId: "dynamodb.amazonaws.com" },
    });
    expect(toEventRecord({ eventName: "REMOVE", dynamodb: {} }, source)).not.toHaveProperty("userIdentity");
  });
});

describe("filters", () => {
  const event = {
    eventName: "REMOVE",
    userIdentity: { type: "Service" },
    dynamodb: {
      OldImage: { sk: { S: "lease" }, token: { S: "t-1" }, n: { N: "5" }, tags: { SS: ["a", "b"] } },
      size: 7,
    },
  };
  const passes = (...patterns: JsonObject[]): boolean => compileFilters(patterns)(event);

  test.each<[string, JsonObject, boolean]>([
    ["a value", { eventName: ["REMOVE"] }, true],
    ["another value", { eventName: ["INSERT"] }, false],
    ["one of several", { eventName: ["INSERT", "REMOVE"] }, true],
    [
      "nested fields, all of which must match",
      { eventName: ["REMOVE"], dynamodb: { OldImage: { sk: { S: ["run"] } } } },
      false,
    ],
    ["exists", { dynamodb: { OldImage: { token: { S: [{ exists: true }] } } } }, true],
    ["not exists", { dynamodb: { OldImage: { closed: { BOOL: [{ exists: false }] } } } }, true],
    [
      "not exists under a missing parent",
      { dynamodb: { NewImage: { token: { S: [{ exists: false }] } } } },
      true,
    ],
    ["prefix", { dynamodb: { OldImage: { token: { S: [{ prefix: "t-" }] } } } }, true],
    ["a number above another", { dynamodb: { size: [{ numeric: [">", 6] }] } }, true],
    [
      "a number of DynamoDB's, which is a text",
      { dynamodb: { OldImage: { n: { N: [{ numeric: [">", 4] }] } } } },
      false,
    ],
    ["an element of a list", { dynamodb: { OldImage: { tags: { SS: ["b"] } } } }, true],
  ])("%s", (_what, pattern, expected) => {
    expect(passes(pattern)).toBe(expected);
  });

  test("without patterns everything passes, and with several one must match", () => {
    expect(passes()).toBe(true);
    expect(passes({ eventName: ["INSERT"] }, { eventName: ["REMOVE"] })).toBe(true);
    expect(passes({ eventName: ["INSERT"] }, { eventName: ["MODIFY"] })).toBe(false);
  });

  test.each<[JsonObject]>([
    [{ a: [{ "anything-but": "x" }] }],
    [{ $or: [{ a: ["x"] }, { b: ["y"] }] }],
    [{ a: [{ numeric: ["<", 1] }] }],
    [{ a: "REMOVE" }],
  ])("%j is refused by name before any event is judged", (pattern) => {
    expect(() => compileFilters([pattern])).toThrow(UnsupportedFilterError);
  });
});
