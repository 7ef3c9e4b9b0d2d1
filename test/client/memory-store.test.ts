import { type Item, LeaseServiceError, type TransactionEntry, type UpdateRequest } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { pagesOf } from "../../packages/client/src/base/store.ts";
import { readCondition } from "../../packages/client/src/stores/memory/condition.ts";
import { checkDefined, ExpressionError } from "../../packages/client/src/stores/memory/expression-parser.ts";

const key = { pk: "k", sk: "lease" };
const open = { signal: new AbortController().signal, isCurrent: () => true };

function update(expression: Partial<UpdateRequest>): UpdateRequest {
  return {
    key,
    update: "SET #a = :a",
    condition: "attribute_not_exists(#a)",
    names: { "#a": "a" },
    values: { ":a": 1 },
    returnsItem: true,
    ...expression,
  };
}

describe("a condition in memory", () => {
  const item: Item = { pk: "k", n: 5, s: "abc" };
  const holds = (condition: string, values: Item = {}): boolean => {
    const names = { "#n": "n", "#s": "s", "#none": "none" };
    const expression = readCondition(condition);
    checkDefined({ names, values }, expression);
    return expression.evaluate({ item, names, values });
  };

  // What the conformance checks of every store leave out.
  it.each([
    ["NOT attribute_exists(#none)", true],
    ["NOT attribute_exists(#n)", false],
    ["#n > :four", true],
    ["#n > :five", false],
    ["#none > :four", false],
    ["#n = :six OR #s = :abc AND #n = :six", false],
    ["begins_with(#s, :ab)", true],
    ["begins_with(#n, :ab)", false],
  ])("%s is %s", (condition, expected) => {
    expect(holds(condition, { ":five": 5, ":six": 6, ":four": 4, ":abc": "abc", ":ab": "ab" })).toBe(
      expected,
    );
  });

  it.each([
    "",
    "#n",
    "#n = ",
    "#n ~ :five",
    "size(#n)",
    "#n = :five)",
    "(#n = :five",
    "n = :five",
    "#missing = :five",
    "#n = :missing",
  ])("that DynamoDB would not take, such as %j, is an error", (condition) => {
    expect(() => holds(condition, { ":five": 5 })).toThrow(ExpressionError);
  });
});

describe("an update in memory", () => {
  it("gives the item after a success only where it is asked for", async () => {
    const store = new MemoryLeaseStore();
    const written = await store.update(update({ returnsItem: false }), open);
    expect(written).toStrictEqual({ applied: true, item: undefined, retried: false });
    expect(await store.update(update({ returnsItem: false }), open)).toMatchObject({ item: { a: 1 } });
  });

  it.each([
    [{ update: "SET #a = :a, #a = :a" }],
    [{ update: "SET #a = :a REMOVE #a" }],
    [{ update: "SET #a = :a REMOVE #b", names: { "#a": "a", "#b": "a" } }],
    [{ names: { "#a": "a", "#b": "b" } }],
    [{ values: { ":a": 1, ":b": 2 } }],
    [{ update: "ADD #a :a" }],
    [{ update: "SET #a = :a + :text", values: { ":a": 1, ":text": "x" } }],
  ])("that DynamoDB would not take is rejected: %j", async (expression) => {
    const store = new MemoryLeaseStore();
    const outcome = store.update(update(expression as Partial<UpdateRequest>), open);
    await expect(outcome).rejects.toBeInstanceOf(LeaseServiceError);
    expect(store.peek(key)).toBeUndefined();
  });
});

it("an expression that is read once means what its placeholders stand for, each time", async () => {
  const store = new MemoryLeaseStore();
  const condition = "attribute_not_exists(#a) OR #a = :b";
  for (const [attribute, was, is] of [
    ["one", 0, 1],
    ["two", 0, 7],
    ["one", 1, 2],
    ["two", 7, 8],
  ] as const) {
    const names = { "#a": attribute };
    const request = update({ condition, names, values: { ":a": is, ":b": was } });
    expect(await store.update(request, open)).toMatchObject({ applied: true, item: { [attribute]: is } });
  }
  expect(store.peek(key)).toEqual({ ...key, one: 2, two: 8 });
});

describe("a transaction in memory", () => {
  const other = { pk: "k", sk: "other" };
  const write = (entry: Partial<TransactionEntry>): TransactionEntry => ({
    key,
    condition: "attribute_not_exists(#a)",
    names: { "#a": "a" },
    values: { ":a": 1 },
    action: { update: "SET #a = :a" },
    ...entry,
  });

  it("takes up to 100 items, and each once", () => {
    const store = new MemoryLeaseStore();
    const writes = (count: number) =>
      Array.from({ length: count }, (_, index) => write({ key: { pk: "k", sk: `${index}` } }));
    expect(store.transactNow(writes(100))).toMatchObject({ applied: true });
    for (const entries of [writes(101), [write({}), write({})]])
      expect(() => store.transactNow(entries)).toThrow(LeaseServiceError);
  });

  it("is rejected where DynamoDB would not take an expression, and writes nothing", () => {
    const store = new MemoryLeaseStore();
    const check = write({ key: other, condition: "#a ~ #a", values: {}, action: "check" });
    expect(() => store.transactNow([write({}), check])).toThrow(LeaseServiceError);
    expect(store.peek(key)).toBeUndefined();
  });
});

it("a scan goes on behind its cursor, also where the item of the cursor was removed meanwhile", async () => {
  const store = new MemoryLeaseStore();
  for (let n = 0; n < 1_200; n += 1) store.updateNow(update({ key: { pk: `k${n}`, sk: "lease" } }));
  const asked = { filter: "attribute_exists(#a)", names: { "#a": "a" }, values: {} };
  const seen: unknown[] = [];
  for await (const { items, next } of pagesOf((from) => store.scan({ ...asked, ...from }, open))) {
    seen.push(...items.map(({ pk }) => pk));
    if (next !== undefined)
      store.transactNow([
        { key: next, condition: asked.filter, names: asked.names, values: {}, action: "delete" },
      ]);
  }
  expect(seen).toHaveLength(1_200);
  expect(new Set(seen).size).toBe(1_200);
});

it("a clock that is moved on by hand never runs backwards, though its process freezes on the way", async () => {
  const clock = new ManualClock();
  clock.schedule(() => clock.freeze(5_000), 10);
  await clock.advance(100);
  expect(clock.monotonic()).toBe(5_010);
  await Promise.all([clock.advance(1_000), clock.advance(10)]);
  expect(clock.monotonic()).toBe(6_010);
});

it("garbage collection removes what ttl allows, and nothing sooner", async () => {
  const store = new MemoryLeaseStore();
  await store.update(
    update({
      update: "SET #ttl = :ttl",
      condition: "attribute_not_exists(#ttl)",
      names: { "#ttl": "ttl" },
      values: { ":ttl": 100 },
    }),
    open,
  );
  expect(store.collectGarbage(100_000)).toBe(0);
  expect(store.collectGarbage(100_001)).toBe(1);
  expect(store.peek(key)).toBeUndefined();
});
