import { InvalidOptionsError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required, wholeNumber } from "../support/environment.ts";
import { choiceIn, type Fields, fieldsOf } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { untilTimeIsUp, waitWithin } from "../support/working-time.ts";
import { OrderBook } from "./orders.ts";
import {
  type BackfillAnswer,
  backfillSince,
  type MissedAnswer,
  missedSince,
  type ReportSources,
  type RunsAnswer,
  runsSince,
  standings,
} from "./run-report.ts";
import { attemptsOfTrigger, usualLeaseMs } from "./runs.ts";
import { scheduleVariable, tableVariable } from "./schema.ts";

const dayMs = 86_400_000;
const mostAttempts = 1000;

const sources = once(() => ({
  leases: leaseClient(documents()),
  orders: new OrderBook(documents(), required(tableVariable)),
  schedule: required(scheduleVariable),
  leaseDurationMs: wholeNumber(environmentNames.lockAtMostForMs, usualLeaseMs),
  now: Date.now,
}));

/**
 * Tells an operator how the runs of the schedule went, and makes up for those that are missing.
 *
 *     { "action": "runs", "since": "2026-11-21T00:00:00.000Z", "state": "exhausted" }
 *     { "action": "missed", "since": "2026-11-21T00:00:00.000Z" }
 *     { "action": "backfill", "since": "2026-11-21T00:00:00.000Z", "maxAttempts": 4 }
 *
 * `since` is the last 24 hours if it is left out, and at most 30 days ago. `state` is `running`, `succeeded`, `failed`,
 * `lost`, `exhausted` or `skipped`; without it, all but the succeeded are shown. `maxAttempts` lets exhausted slots run
 * again. Dies in mid-back-fill: the slot that it was at shows as lost, and the same call goes on from there.
 */
export const handler: Answering<RunsAnswer | MissedAnswer | BackfillAnswer> = answering((event, context) =>
  report(sources(), event, context.getRemainingTimeInMillis()),
);

/** What the handler does, with what it works with. */
export async function report(
  from: ReportSources,
  event: unknown,
  remainingMs: number,
): Promise<RunsAnswer | MissedAnswer | BackfillAnswer> {
  const fields = fieldsOf(event, ["action", "since", "state", "maxAttempts"]);
  const since = sinceIn(fields, from.now());
  switch (choiceIn(fields, "action", ["runs", "missed", "backfill"])) {
    case "runs":
      return await runsSince(
        from,
        since,
        fields.state === undefined ? undefined : choiceIn(fields, "state", standings),
      );
    case "missed":
      return await missedSince(from, since);
    case "backfill": {
      const maxAttempts = fields.maxAttempts === undefined ? undefined : attemptsIn(fields);
      const waitMs = waitWithin(from.leaseDurationMs, remainingMs);
      return await backfillSince(from, since, { maxAttempts, waitMs, signal: untilTimeIsUp(remainingMs) });
    }
  }
}

function sinceIn({ since }: Fields, now: number): string {
  if (since === undefined) return new Date(now - dayMs).toISOString();
  if (typeof since === "string") return since;
  throw new InvalidOptionsError("event.since", since, "an ISO time in UTC with milliseconds");
}

function attemptsIn({ maxAttempts: value }: Fields): number {
  if (
    typeof value === "number" &&
    Number.isSafeInteger(value) &&
    value > attemptsOfTrigger &&
    value <= mostAttempts
  )
    return value;
  const allowed = `a whole number from ${attemptsOfTrigger + 1} to ${mostAttempts}: a slot has ${attemptsOfTrigger} anyway`;
  throw new InvalidOptionsError("event.maxAttempts", value, allowed);
}
