// Events of the app's functions: any JSON. Each is answered, or refused by name before anything is sent; when the invocation has
// ended, nothing that it took is held.

import { createHash } from "node:crypto";
import type { LeaseHandle } from "@leasehold/client";
import fc from "fast-check";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { compareChecksum } from "../../functions/claim-tasks/worker.ts";
import { onSchedule } from "../../functions/close-unpaid-orders/handler.ts";
import { OrderBook } from "../../functions/close-unpaid-orders/orders.ts";
import { report } from "../../functions/close-unpaid-orders/report.ts";
import { transferOrders } from "../../functions/import-orders/job.ts";
import { transferKey } from "../../functions/import-orders/schema.ts";
import { KeyNotAllowedError } from "../../functions/support/input.ts";
import { Bench, isNamed, type Outcome } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText, json, someEvent } from "./hostile.ts";

const longMs = 300_000;
const time = fc.constantFrom(
  "2025-12-31T10:00:00.000Z",
  "2025-12-31T10:00:00Z",
  "9999-01-01T00:00:00Z",
  "tomorrow",
);

beforeEach(() => {
  for (const method of ["log", "error"] as const)
    vi.spyOn(console, method).mockImplementation(() => undefined);
});
afterEach(() => vi.restoreAllMocks());

const isRefusal = (error: unknown): boolean => isNamed(error) || error instanceof KeyNotAllowedError;

function expectNamed(outcome: Outcome): void {
  if (outcome !== "waits" && "error" in outcome && !isRefusal(outcome.error))
    throw new Error("not a named error", { cause: outcome.error });
}

/** A shop without orders. */
class NoOrders extends OrderBook {
  constructor() {
    super({} as never, "orders");
  }
  override async *unpaid(): AsyncGenerator<never, void, undefined> {
    yield* [];
  }
}

/** A step of a workflow, with the handle of its lease: right, changed, or any JSON. */
const handle = fc.oneof(
  fc.constant({}),
  fc.record(
    {
      token: fc.oneof(fc.constant("made up"), json),
      fencingToken: json,
      key: fc.oneof(fc.constant("other"), json),
      version: json,
      slot: json,
      cooldownUntil: json,
    },
    { requiredKeys: [] },
  ),
);

const kind = fc.constantFrom("import", "export");
const limits = { waitMs: fc.constantFrom(0, 1_000), timeoutMs: fc.constantFrom(3_000, 60_000) };

fuzz(
  "an import answers any event, or refuses it by name, and the lease of a workflow stays its own",
  fc.record({
    event: fc.oneof(
      someEvent({ kind, ...limits }),
      someEvent({ kind, chunk: hostileText }),
      someEvent({ kind, putBack: hostileText }),
      someEvent({ kind, ...limits, chunk: hostileText, putBack: hostileText }),
    ),
    changes: fc.option(handle, { nil: undefined }),
    isHeld: fc.boolean(),
  }),
  async ({ event, changes, isHeld }) => {
    const bench = new Bench();
    const lease = isHeld || changes !== undefined ? await bench.client.acquire(transferKey) : undefined;
    const given =
      changes === undefined
        ? event
        : { ...Object(event), lease: { ...(lease?.toJSON() as LeaseHandle), ...changes } };
    const chunks = ["1", "2"];
    const transfer = {
      nextChunk: async () => chunks.shift(),
      transfer: async () => "transferred" as const,
      putBack: async () => false,
    };
    bench.begin();
    const job = { leases: bench.client, adopting: bench.client, transfer, remainingMs: () => longMs };
    const outcome = await bench.outcomeOf(() => transferOrders(job, structuredClone(given)));
    expectNamed(outcome);
    if (lease !== undefined) {
      expect((await bench.client.inspect(transferKey))?.token).toBe(lease.token);
      await lease.release();
    }
    await bench.release(undefined);
    return outcome !== "waits" && "result" in outcome ? [] : undefined;
  },
  { few: 100, many: 10_000, accepted: { share: 0.05, options: [] } },
);

const since = fc.oneof(time, fc.constant("2025-12-31T23:55:00.000Z"));
const question = (
  action: string,
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<unknown> => someEvent({ action: fc.constant(action), ...fields }, ["action"]);

fuzz(
  "a scheduled job and its report answer any event, or refuse it by name, and let every lock go",
  fc.record({
    trigger: someEvent({ scheduledTime: time, time }),
    question: fc.oneof(
      question("runs", { since, state: fc.constantFrom("running", "exhausted", "__proto__") }),
      question("missed", { since }),
      question("backfill", { since, maxAttempts: fc.constantFrom(4, 3, 1_000, 1_001) }),
      question("parked", {}),
      question("putBack", { order: hostileText }),
      question("slot", {}),
      question("takeBack", { slot: time, to: time }),
    ),
  }),
  async ({ trigger, question }) => {
    const bench = new Bench();
    const { client: leases, clock } = bench;
    const shop = { leases, orders: new NoOrders(), now: () => clock.now() };
    const context = { awsRequestId: "r", functionName: "f", getRemainingTimeInMillis: () => longMs };
    // The runs refuse a time of long ago when the lock is taken already, and it is let go.
    const ran = await bench.outcomeOf(() => onSchedule(shop)(trigger as never, context as never));
    expectNamed(ran);
    await bench.expectNothingHeld();
    const parked = { list: async () => ({ orders: [], isCut: false }), putBack: async () => false };
    const sources = { ...shop, parked, schedule: "rate(1 minute)", leaseDurationMs: 45_000 };
    const answer = await bench.check(() => report(sources as never, question, () => longMs), isRefusal);
    await bench.release(undefined);
    const hasRun = ran !== "waits" && "result" in ran;
    const answered = answer === undefined ? [] : [String(Object(question).action)];
    const accepted = [...(hasRun ? ["trigger"] : []), ...answered];
    return accepted.length > 0 ? accepted : undefined;
  },
  { few: 60, many: 3_000, accepted: { share: 0.1, options: ["trigger", "runs", "missed", "slot"] } },
);

const hashed = hostileText.map((text) => ({
  text,
  sha256: createHash("sha256").update(text, "utf8").digest("hex"),
}));

fuzz(
  "a task with any payload is checked, or fails with an error that says why",
  fc.oneof(json, hashed, someEvent({ text: hostileText, sha256: hostileText })),
  (payload) => {
    try {
      expect(typeof compareChecksum(payload)).toBe("string");
      return [];
    } catch (error) {
      if (!(error instanceof Error) || error instanceof TypeError) throw error;
      expect(error.message).not.toBe("");
      return undefined;
    }
  },
  { few: 200, many: 50_000, accepted: { share: 0.1, options: [] } },
);
