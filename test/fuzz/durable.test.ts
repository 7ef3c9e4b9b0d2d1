// Leases of durable executions: any key, options and work, with processes that die at any of their requests. Each execution is
// refused by name before any request, or ends with its work's own result or error; when it has ended, nothing is held.

import { type DurableContext, StepError, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { InvalidOptionsError, LeaseError } from "@leasehold/client";
import { isCooldownToken, leaseItemKey } from "@leasehold/client/schema";
import { type DurableLease, withDurableLease } from "@leasehold/durable";
import fc from "fast-check";
import { expect } from "vitest";
import { DurableWorld } from "../support/durable-leases.ts";
import { fuzz } from "./fuzz.ts";
import { hostileOptions, hostileText, hostileValue, made, madeOptions, mostly, namesIn } from "./hostile.ts";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;
type Work = (lease: DurableLease, context: DurableContext) => Promise<unknown>;

/** What the work throws: a value of its own, or an error that says in a checkpoint that it is a lease's. */
class OwnError extends Error {}
const forged = fc
  .oneof(
    fc.constantFrom("lost", "unavailable", "done", "service", "other", "__proto__"),
    fc.jsonValue({ maxDepth: 1 }),
  )
  .chain((leasehold) =>
    fc.record(
      {
        leasehold: fc.constant(leasehold),
        key: fc.jsonValue({ maxDepth: 1 }),
        reason: fc.jsonValue({ maxDepth: 1 }),
        held: fc.jsonValue({ maxDepth: 1 }),
        code: fc.oneof(fc.constantFrom("LEASE_THROTTLED", "x"), fc.jsonValue({ maxDepth: 1 })),
        name: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: ["leasehold"] },
    ),
  );

/** What one part of the work does. What a step gives is JSON: the SDK ends an invocation otherwise, which Lambda repeats. */
type Part =
  | { readonly waits: number }
  | { readonly gives: unknown }
  | { readonly throws: unknown }
  | { readonly forges: string };
const part: fc.Arbitrary<Part> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ waits: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 3, arbitrary: fc.record({ gives: fc.jsonValue({ maxDepth: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ throws: fc.constantFrom("own", "text", 7, null, undefined) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      forges: fc.oneof(
        forged.map((kept) => JSON.stringify(kept)),
        hostileText,
      ),
    }),
  },
);

async function play(part: Part, index: number, context: DurableContext): Promise<unknown> {
  if ("waits" in part) return await context.wait(`wait ${index}`, { seconds: part.waits });
  return await context.step(
    `part ${index}`,
    async () => {
      if ("gives" in part) return part.gives;
      if ("forges" in part) throw new StepError("forged", new OwnError("forged"), part.forges);
      throw part.throws === "own" ? new OwnError("the work's own") : part.throws;
    },
    { retryStrategy: () => ({ shouldRetry: false }) },
  );
}

const known = {
  leaseDurationMs: fc.constantFrom(3_000, 10_000, 900_000),
  waitMs: fc.constantFrom(0, 1, 5_000, 60_000),
  data: fc.jsonValue({ maxDepth: 2 }),
  slot: fc.constantFrom("2025-12-31T10:00:00.000Z", "7"),
  lockAtLeastForMs: fc.constantFrom(0, 1_000),
};

fuzz(
  "a durable lease with any options is refused by name before any request, or ends with its execution",
  fc.record({
    /** What is not as it should be besides: the context, or the client. */
    wrong: fc.oneof(
      { weight: 10, arbitrary: fc.constant(undefined) },
      {
        weight: 1,
        arbitrary: fc.record({ part: fc.constantFrom("context", "client"), by: hostileValue }),
      },
    ),
    key: mostly(fc.constantFrom("k", "ü".repeat(1_024))),
    options: hostileOptions(known),
    work: mostly(fc.constant("parts")),
    parts: fc.array(part, { maxLength: 3 }),
    /** For how long another has the lock when the execution begins. */
    heldMs: fc.constantFrom(0, 0, 2_000, 30_000),
    deaths: fc.array(
      fc.record({
        at: fc.integer({ min: 1, max: 30 }),
        when: fc.constantFrom("before" as const, "after" as const),
      }),
      { maxLength: 2 },
    ),
  }),
  async ({ wrong, key, options, work, parts, heldMs, deaths }) => {
    const world = new DurableWorld();
    world.service.killAt(...deaths);
    const other = heldMs > 0 ? await world.client().acquire("k", { leaseDurationMs: heldMs }) : undefined;
    const before = world.requests;
    const seen: unknown[] = [];
    let hasRun = false;
    const doing: Work = async (_, context) => {
      hasRun = true;
      let last: unknown;
      for (const [index, each] of parts.entries()) {
        last = await play(each, index, context).catch((error: unknown) => {
          seen.push(error);
          throw error;
        });
      }
      return last;
    };
    let thrown: { readonly error: unknown } | undefined;
    const handler = withDurableExecution(async (_: unknown, context: DurableContext) => {
      try {
        const given = "value" in work && work.value === "parts" ? doing : made(work);
        const insteadOf = (part: string, right: unknown): Anything =>
          wrong?.part === part ? made(wrong.by) : right;
        return await withDurableLease(
          insteadOf("context", context),
          insteadOf("client", world.client()),
          made(key) as Anything,
          madeOptions(options) as Anything,
          given as Anything,
        );
      } catch (error) {
        thrown = { error };
        throw error;
      }
    });
    const run = world.service.start(handler, {});
    await world.play(30 * 60_000);
    expect(["SUCCEEDED", "FAILED"]).toContain(run.status);
    for (const error of seen) if (!(error instanceof LeaseError || error instanceof StepError)) throw error;
    if (thrown && !(thrown.error instanceof LeaseError) && seen.length === 0) throw thrown.error;
    if (thrown?.error instanceof InvalidOptionsError) expect(world.requests).toBe(before);
    await other?.release();
    const left = world.table.peek(leaseItemKey("k"))?.token;
    expect(left === undefined || isCooldownToken(String(left))).toBe(true);
    return hasRun ? [...namesIn(options)] : undefined;
  },
  { few: 150, many: 10_000, accepted: { share: 0.1, options: Object.keys(known) } },
);
