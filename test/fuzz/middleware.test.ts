// Invocations of locked functions: any options, any event and any context of Lambda's. Each is refused by name, skipped, or runs
// its handler under the lock; when it has ended, nothing is held.

import { LeaseClient } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { leased, leaseLock } from "@leasehold/middy";
import { jmespath } from "@leasehold/middy/jmespath";
import middy from "@middy/core";
import fc from "fast-check";
import { Bench, isNamed } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { fewHostileOptions, hostileText, madeOptions, type OptionsRecipe } from "./hostile.ts";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

const json = fc.oneof(fc.jsonValue({ maxDepth: 2 }), hostileText);
const functions = fc.constantFrom(
  () => "k",
  () => "",
  () => undefined,
  () => {
    throw new RangeError("the caller's own");
  },
);
const options = fewHostileOptions({
  key: fc.oneof(fc.constantFrom("k", "ü".repeat(1_024)), functions),
  whenHeld: fc.constantFrom("skip", "throw", "wait", "replace"),
  order: fc.constantFrom(fair(), fair({ maxWaiters: 1 })),
  lockAtMostForMs: fc.constantFrom(1, 1_000, 60_000),
  lockAtLeastForMs: fc.constantFrom(0, 10),
  heartbeat: fc.constantFrom(true, false, 100),
  once: fc.oneof(fc.boolean(), functions),
  resume: fc.boolean(),
  data: json,
  reserveMs: fc.constantFrom(0, 100, 1e9),
  timeoutMarginMs: fc.constantFrom(0, 100, 1e9),
  timeoutEarlyInMillis: fc.constantFrom(0, 5),
  job: hostileText,
  metrics: fc.constantFrom<unknown>(false, () => undefined, { addMetric: () => undefined }, {}),
});
/** An event is JSON, whatever has made it. */
const event = fc.oneof(
  fc.record(
    {
      time: fc.oneof(fc.constantFrom("2025-11-21T10:00:00Z", "tomorrow"), json),
      scheduledTime: fc.oneof(fc.constantFrom("2025-11-21T10:00:00Z", "9999-01-01T00:00:00Z"), json),
      Records: fc.oneof(fc.constantFrom([], [{}]), json),
      eventSource: fc.oneof(fc.constant("aws:kafka"), json),
      requestContext: fc.oneof(fc.constantFrom({ http: {} }, { elb: 1 }), json),
    },
    { requiredKeys: [] },
  ),
  json,
);
const remaining = fc.constantFrom(
  ...[30_000, 1_000, 1, 0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "30000", null].map(
    (left) => () => left,
  ),
);
/** Of any members, but an object that lets itself be looked at. */
const context = fewHostileOptions({
  awsRequestId: fc.oneof(fc.constantFrom("r", "é".repeat(2_000)), hostileText),
  functionName: fc.constantFrom("f", "x".repeat(2_000)),
  getRemainingTimeInMillis: remaining,
  lambdaContext: fc.constantFrom({}),
  write: fc.constantFrom(() => true),
}).filter((recipe) => "shape" in recipe || !/proxy|function/.test("hostile" in recipe ? recipe.hostile : ""));

/** What a function that the options have may throw is its caller's own. */
const isExpected = (error: unknown): boolean => isNamed(error) || error instanceof RangeError;

/** Whose lock it is when the invocation comes. */
const holder = fc.constantFrom(undefined, "another", "f/r");

const ways: Readonly<Record<string, (given: Anything, work: () => Promise<string>) => Anything>> = {
  leased: (given, work) => leased(given, work),
  "leaseLock in a chain of middy's": (given, work) =>
    middy({ timeoutEarlyInMillis: 0 }).use(leaseLock(given)).handler(work),
  // Without middy, which looks at the context itself.
  "leaseLock's own hooks": (given, work) => {
    const { before, after, onError } = leaseLock(given) as Anything;
    return async (trigger: Anything, lambda: Anything) => {
      const request: Anything = { event: trigger, context: lambda, internal: {} };
      await before(request);
      if ("earlyResponse" in request) return request.earlyResponse;
      try {
        request.response = await work();
        await after(request);
      } catch (error) {
        request.error = error;
        await onError(request);
        throw error;
      }
      return request.response;
    };
  },
};

/** Options without a key and a client of their own get them. */
function withClient(recipe: OptionsRecipe, skipResult: unknown, { client, clock }: Bench): OptionsRecipe {
  if (!("shape" in recipe)) return recipe;
  const values = { client, clock, metrics: false, key: "k", skipResult };
  const recipes = Object.entries(values).map(([name, value]) => [name, { value }]);
  return { ...recipe, options: { ...Object.fromEntries(recipes), ...recipe.options } };
}

for (const [name, lockedBy] of Object.entries(ways)) {
  const isMiddys = name.includes("chain");
  fuzz(
    `${name}: any options, event and context are refused by name, or the handler runs under the lock`,
    fc.record({
      options,
      skipResult: fc.oneof(json, functions),
      event,
      context: isMiddys ? fc.constant(undefined) : context,
      holder,
    }),
    async (given) => {
      const bench = new Bench();
      const { store, clock, client } = bench;
      const other = new LeaseClient({ store, clock, leaseDurationMs: 500 });
      let hasRun = false;
      const held = given.holder && (await other.acquire("k", { owner: given.holder }));
      await bench.check(async () => {
        const handler = lockedBy(
          madeOptions(withClient(given.options, given.skipResult, bench)),
          async () => {
            hasRun = true;
            if (client.held().length !== 1) throw new Error("the handler runs without the lock");
            await clock.advance(10);
            return "done";
          },
        );
        bench.begin();
        const lambda = given.context ? madeOptions(given.context) : { awsRequestId: "r", functionName: "f" };
        return await handler(structuredClone(given.event), lambda);
      }, isExpected);
      if (held) await bench.outcomeOf(() => held.release());
      await bench.release(undefined);
      return hasRun ? [] : undefined;
    },
    { few: 100, many: 5_000, accepted: { share: 0.05, options: [] } },
  );
}

const expression = fc.oneof(
  hostileText,
  fc.constantFrom(
    "a.b",
    "[0]",
    "join('/', [a])",
    "to_string(@)",
    "powertools_json(a)",
    "sort_by(a, &b)",
    "a[::0]",
  ),
);

fuzz(
  "jmespath: any expression and event are refused by name, or give a key",
  fc.record({ expression, event: fc.oneof(fc.record({ a: json }), json) }),
  (given) => {
    let key: string;
    try {
      key = jmespath(given.expression as Anything)(given.event);
    } catch (error) {
      if (!isNamed(error)) throw error;
      return undefined;
    }
    if (typeof key !== "string" || key === "") throw new Error("a key that is none");
    return ["key"];
  },
  { accepted: { share: 0.05, options: ["key"] } },
);
