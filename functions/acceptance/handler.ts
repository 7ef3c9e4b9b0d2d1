import { setTimeout as delay } from "node:timers/promises";
import { type Lease, SlotDoneError } from "@leasehold/client";
import { type LeasedHandler, leased, type SkipReason } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { type Answering, answering } from "../support/answers.ts";
import { once } from "../support/environment.ts";

/** What the job's schedule sends, and what acceptance sends in its place. */
export interface AcceptanceEvent {
  readonly scheduledTime: string;
  readonly input?: {
    /** Milliseconds of work, up to 10,000. @default 0 */
    readonly holdMs?: number;
  };
}

/** The result of a trigger. */
export type AcceptanceOutcome =
  | { readonly result: "ran"; readonly fencingToken: Lease["fencingToken"] }
  | { readonly result: "skipped" | "doneBefore" };

const longestHoldMs = 10_000;

function skipped(_event: AcceptanceEvent, _context: Context, reason: SkipReason): AcceptanceOutcome {
  return { result: reason instanceof SlotDoneError ? "doneBefore" : "skipped" };
}

const job = once(
  (): LeasedHandler<AcceptanceEvent, AcceptanceOutcome> =>
    leased<AcceptanceEvent, AcceptanceOutcome>({ skipResult: skipped }, async ({ input }, _context, lock) => {
      await delay(Math.min(input?.holdMs ?? 0, longestHoldMs), undefined, { signal: lock.signal });
      return { result: "ran", fencingToken: lock.lease.fencingToken };
    }),
);

/**
 * A job that only holds its lock for a while, so that a deployment can be checked without touching anybody's data. All
 * of its settings come from the job's construct.
 *
 *     { "scheduledTime": "2026-11-21T08:00:00.000Z", "input": { "holdMs": 1000 } }
 *     → { "result": "ran", "fencingToken": 1795248000001 }
 *     → { "result": "skipped" }      another run was at work
 *     → { "result": "doneBefore" }   the scheduled time has had its run
 */
export const handler: Answering<AcceptanceOutcome> = answering((event, context) =>
  job()(event as AcceptanceEvent, context as Context),
);
