import { InvalidOptionsError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { optional, required, wholeNumber } from "../support/environment.ts";
import { choiceIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { untilTimeIsUp, waitWithin } from "../support/working-time.ts";
import { OrderBook } from "./orders.ts";
import { ParkedOrders } from "./parked-orders.ts";
import { doneSlot, parkedOrders, type RepairAnswer, takeBackSlot } from "./repairs.ts";
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
import { closeAfterMs, closeAfterVariable, scheduleVariable, tableVariable } from "./schema.ts";

const dayMs = 86_400_000;
const mostAttempts = 1000;
const slotText = "an ISO time in UTC with milliseconds";

const sources = once(() => ({
  leases: leaseClient(documents()),
  orders: new OrderBook(documents(), required(tableVariable), closeAfterMs(optional(closeAfterVariable))),
  parked: new ParkedOrders(documents(), required(tableVariable)),
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
 *     { "action": "parked" }                                                 orders that could not be closed
 *     { "action": "putBack", "order": "2026-11-21T07:59:00.000Z#o-17" }      one of these, by its id
 *     { "action": "slot" }                                                   the latest slot that is done
 *     { "action": "takeBack", "slot": "2036-11-21T08:00:00.000Z", "to": "2026-11-21T08:00:00.000Z" }
 *
 * `since` is the last 24 hours if it is left out, and at most 30 days ago. `state` is `running`, `succeeded`, `failed`,
 * `lost`, `exhausted` or `skipped`; without it, all but the succeeded are shown. `maxAttempts` lets exhausted slots run
 * again. Dies in mid-back-fill: the slot that it was at shows as lost, and the same call goes on from there.
 */
export const handler: Answering<Answer> = answering((event, context) =>
  report(sources(), event, () => context.getRemainingTimeInMillis()),
);

type Action = "runs" | "missed" | "backfill" | "parked" | "putBack" | "slot" | "takeBack";

/** What each action takes. */
const fieldsOfAction: Readonly<Record<Action, readonly string[]>> = {
  runs: ["since", "state"],
  missed: ["since"],
  backfill: ["since", "maxAttempts"],
  parked: [],
  putBack: ["order"],
  slot: [],
  takeBack: ["slot", "to"],
};

/** What the report answers. */
export type Answer = RunsAnswer | MissedAnswer | BackfillAnswer | RepairAnswer;

/** What the handler does, with what it works with. */
export async function report(
  from: ReportSources & { readonly parked: Pick<ParkedOrders, "list" | "putBack"> },
  event: unknown,
  remainingMs: () => number,
): Promise<Answer> {
  const actions = Object.keys(fieldsOfAction) as Action[];
  const action = choiceIn(fieldsOf(event), "action", actions);
  const fields = fieldsOf(event, ["action", ...fieldsOfAction[action]]);
  const since = sinceIn(fields, from.now());
  switch (action) {
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
      const waitMs = waitWithin(from.leaseDurationMs, remainingMs());
      const signal = untilTimeIsUp(remainingMs());
      return await backfillSince(from, since, { maxAttempts, waitMs, remainingMs, signal });
    }
    case "parked":
      return await parkedOrders(from);
    case "putBack":
      return { isPutBack: await from.parked.putBack(nameIn(fields, "order"), remainingMs) };
    case "slot":
      return await doneSlot(from);
    case "takeBack":
      return await takeBackSlot(
        from,
        slotIn(fields, "slot"),
        fields.to === undefined ? undefined : slotIn(fields, "to"),
      );
  }
}

function sinceIn({ since }: Fields, now: number): string {
  if (since === undefined) return new Date(now - dayMs).toISOString();
  if (typeof since === "string") return since;
  throw new InvalidOptionsError("event.since", since, slotText);
}

/** The time of a slot of the schedule, in the one text that it has. */
function slotIn(fields: Fields, field: string): string {
  const slot = nameIn(fields, field);
  const time = Date.parse(slot);
  const isExact = /^\d{4}-/.test(slot) && !Number.isNaN(time) && new Date(time).toISOString() === slot;
  if (isExact) return slot;
  throw new InvalidOptionsError(`event.${field}`, slot, slotText);
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
