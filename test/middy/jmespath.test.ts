import { InvalidOptionsError } from "@leasehold/client";
import { type LeaseLockOptions, leased } from "@leasehold/middy";
import { jmespath } from "@leasehold/middy/jmespath";
import { describe, expect, expectTypeOf, test } from "vitest";
import { bench, ways } from "./support.ts";

describe.each(Object.entries(ways))("%s: a key by JMESPath", (_, wrap) => {
  function setUp(expression: string, options: LeaseLockOptions = {}) {
    const b = bench();
    const app = wrap(
      { client: b.client, clock: b.clock, key: jmespath(expression), metrics: false, ...options },
      ({ lease }) => lease.key,
    );
    return { ...b, app };
  }

  test.each<[string, unknown, string]>([
    ["detail.orderId", { detail: { orderId: "o-1" } }, "o-1"],
    ["detail.orderId", { detail: { orderId: 4711 } }, "4711"],
    ["Records[0].body", { Records: [{ body: "a.csv" }] }, "a.csv"],
    ["join('/', ['order', detail.id])", { detail: { id: "1" } }, "order/1"],
    ["powertools_json(body).order.id", { body: '{"order":{"id":"7"}}' }, "7"],
  ])("is what the expression finds: %s", async (expression, event, key) => {
    const { app, context } = setUp(expression);
    expect(await app(event, context())).toBe(key);
  });

  test.each<[string, unknown]>([
    ["detail.orderId", {}],
    ["detail.orderId", undefined],
    ["detail.orderId", { detail: { orderId: "" } }],
    ["detail", { detail: { orderId: "o-1" } }],
    ["length(detail.orderId)", {}],
    ["powertools_json(body).id", { body: "no JSON" }],
    ["powertools_base64_gzip(body)", { body: "secret" }],
  ])(
    "that is none in an event is refused by name, before any request: %s in %j",
    async (expression, event) => {
      const { app, context, store } = setUp(expression);
      const refusal = await app(event, context()).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(InvalidOptionsError);
      expect(refusal).toMatchObject({ option: `the result of jmespath(${JSON.stringify(expression)})` });
      expect(String(refusal)).not.toContain("secret");
      expect(store.requests).toEqual([]);
    },
  );
});

test.each<[unknown]>([
  [""],
  ["detail."],
  ["detail orderId"],
  ["Records[?"],
  ["nothing_known(@)"],
  ["length(a, b)"],
  [undefined],
  [5],
  [["detail"]],
])("an expression that is none is refused when the lock is made: %j", (expression) => {
  expect(() => jmespath(expression as string)).toThrow(InvalidOptionsError);
  expect(() => jmespath(expression as string)).toThrow(
    /^expression .*; allowed: a (valid )?JMESPath expression/,
  );
});

test("a slot of once can be found so, too", async () => {
  const b = bench();
  const app = leased({ ...b.options, once: jmespath("day"), skipResult: "skipped" }, () => "ran");
  expect(await app({ day: "2026-01-01" }, b.context())).toBe("ran");
  expect(await app({ day: "2026-01-01" }, b.context())).toBe("skipped");
});

test("the handler's event keeps its own type", () => {
  const app = leased(
    { tableName: "leases", key: jmespath("id") },
    async (event: { readonly id: string }) => event.id,
  );
  expectTypeOf(app).parameter(0).toEqualTypeOf<{ readonly id: string }>();
});
