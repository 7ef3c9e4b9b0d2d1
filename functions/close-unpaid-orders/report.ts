import { type DynamoDBDocumentClient, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { InvalidOptionsError, type LeaseClient } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { environmentNames } from "@leasehold/client/environment";
import type { JobRun, JobRuns, MissedSlot } from "@leasehold/jobs";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { once, optional, required, wholeNumber } from "../support/environment.ts";
import { choiceIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { putBack } from "../support/transactions.ts";
import { untilTimeIsUp, waitWithin } from "../support/working-time.ts";
import { attemptsOfTrigger, closeInRun, closeUnpaidOrdersKey, openRuns, usualLeaseMs } from "./job.ts";
import { OrderBook, type ParkedItem, type ParkedOrder } from "./orders.ts";
import {
  closeAfterMs,
  closeAfterVariable,
  parkedOrderKey,
  partitions,
  scheduleVariable,
  tableVariable,
} from "./schema.ts";

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
type Answer =
  | RunsAnswer
  | MissedAnswer
  | BackfillAnswer
  /** The orders that could not be closed, the earliest due first: 100 at most. */
  | { readonly parked: readonly ParkedOrder[] }
  /** Whether the order was parked, and is open again. */
  | { readonly isPutBack: boolean }
  /** The latest slot that is done: it keeps earlier ones out. */
  | { readonly doneSlot: string | undefined }
  /** Whether the slot was the one that was done, and is not any more. */
  | { readonly doneSlot: string | undefined; readonly isTakenBack: boolean };

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
      return { parked: await from.parked.list(mostShown) };
    case "putBack":
      return { isPutBack: await from.parked.putBack(nameIn(fields, "order"), remainingMs) };
    case "slot":
      return { doneSlot: await from.leases.doneSlot(closeUnpaidOrdersKey) };
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

/** The state of a run for an operator: a failed or lost run without attempts left is `exhausted`. */
type Standing = JobRun["state"] | "exhausted";

/** All of them. */
const standings: readonly Standing[] = ["running", "succeeded", "failed", "lost", "exhausted", "skipped"];

/** What an operator is shown of a run. */
interface ShownRun
  extends Pick<
    JobRun,
    "slot" | "attempt" | "owner" | "fencingToken" | "startedAt" | "endedAt" | "remark" | "progress"
  > {
  readonly state: Standing;
}

/** A range's runs. */
export interface RunsAnswer {
  readonly since: string;
  readonly counts: Readonly<Record<Standing, number>>;
  /** The runs of the wanted state, latest first: 100 at most. */
  readonly runs: readonly ShownRun[];
}

/** The slots that were due and have no success. */
export interface MissedAnswer {
  readonly since: string;
  readonly until: string;
  /** Oldest first: 100 at most. */
  readonly missed: readonly { readonly slot: string; readonly run: ShownRun | undefined }[];
  /** Whether these are all. */
  readonly complete: boolean;
}

/** The result of a back-fill; another call goes on where it stopped. */
export interface BackfillAnswer {
  readonly succeeded: readonly string[];
  readonly failed: readonly { readonly slot: string; readonly problem: string }[];
  /** All attempts are used up, or another caller ran them meanwhile. */
  readonly left: readonly string[];
  readonly complete: boolean;
}

/** The parts of the report. */
interface ReportSources {
  readonly leases: LeaseClient;
  readonly orders: OrderBook;
  /** An expression of EventBridge Scheduler, in UTC. */
  readonly schedule: string;
  readonly leaseDurationMs: number;
  readonly now: () => number;
}

/** An answer stays far below the 6 MB that Lambda takes. */
const mostShown = 100;

/** The scheduler invokes within the minute after a slot. A run that fails at once is left to its own retry first. */
const graceMs = 60_000;

/** Lists the runs of a range: those of one state, or else those that did not succeed. 1 query for 250 runs. */
async function runsSince(
  { leases }: ReportSources,
  since: string,
  standing: Standing | undefined,
): Promise<RunsAnswer> {
  const counts = { running: 0, succeeded: 0, failed: 0, lost: 0, exhausted: 0, skipped: 0 };
  const shown: ShownRun[] = [];
  for await (const run of jobRuns(leases).runs({ since, descending: true })) {
    const its = standingOf(run);
    counts[its] += 1;
    const isWanted = standing === undefined ? its !== "succeeded" : its === standing;
    if (isWanted && shown.length < mostShown) shown.push(shownRun(run));
  }
  return { since, counts, runs: shown };
}

/** Lists the slots that were due and have neither succeeded nor been skipped. 1 consistent query for 250 runs. */
async function missedSince({ leases, schedule, now }: ReportSources, since: string): Promise<MissedAnswer> {
  const until = new Date(now() - graceMs).toISOString();
  const missed: MissedSlot[] = [];
  let complete = true;
  for await (const one of jobRuns(leases).missed({ schedule, since, until })) {
    complete = missed.length < mostShown;
    if (!complete) break;
    missed.push(one);
  }
  return {
    since,
    until,
    missed: missed.map(({ slot, run }) => ({ slot, run: run && shownRun(run) })),
    complete,
  };
}

/** How a back-fill is done. */
interface BackfillTerms {
  /** More than the trigger has, so that exhausted slots run again. */
  readonly maxAttempts: number | undefined;
  /** How long to wait for the lock. */
  readonly waitMs: number;
  /** Milliseconds that its invocation has left. It begins no slot, and no order, when they are nearly over. */
  readonly remainingMs: () => number;
  /** Aborts then. */
  readonly signal: AbortSignal;
}

/**
 * Runs the missed slots of a range, oldest first, under the lock of the schedule's runs.
 *
 * It holds the lock from the first slot to the last, so ticks that come meanwhile are skipped: these slots close
 * their orders. It takes the lock before it begins a slot, as the trigger does, so the two cannot deadlock. It
 * acquires the lock without a slot, so earlier slots are not refused. The run history refuses slots that are done.
 *
 * Rejects with LeaseUnavailableError when the lock stays held, and with LeaseLostError when it is lost.
 */
async function backfillSince(
  { leases, orders, schedule, leaseDurationMs, now }: ReportSources,
  since: string,
  { maxAttempts, waitMs, remainingMs, signal }: BackfillTerms,
): Promise<BackfillAnswer> {
  const options = maxAttempts === undefined ? {} : { maxAttempts };
  const runs = openRuns(leases, { key: closeUnpaidOrdersKey, leaseDurationMs, ...options });
  const until = new Date(now() - graceMs);
  // Refuses a wrong range before the lock is taken.
  runs.missed({ schedule, since, until });
  const terms = { leaseDurationMs, heartbeat: true, waitMs, signal };
  return await leases.withLease(closeUnpaidOrdersKey, terms, async (lease) => {
    const lock = { lease, signal: AbortSignal.any([lease.signal, signal]) };
    const range = { schedule, since, until, signal: lock.signal };
    const work = { orders, now, remainingMs };
    const report = await runs.backfill(range, (run) => closeInRun(run, { work, lock }));
    return { ...report, failed: report.failed.map(({ slot, error }) => ({ slot, problem: String(error) })) };
  });
}

function jobRuns(leases: LeaseClient): JobRuns {
  return openRuns(leases, { key: closeUnpaidOrdersKey });
}

function standingOf({ exhausted, state }: JobRun): Standing {
  return exhausted ? "exhausted" : state;
}

function shownRun(run: JobRun): ShownRun {
  const { slot, attempt, owner, fencingToken, startedAt, endedAt, remark, progress } = run;
  return { slot, state: standingOf(run), attempt, owner, fencingToken, startedAt, endedAt, remark, progress };
}

/**
 * Takes back a slot that is done by mistake, at the lock and then in the run history: back to `to`, or to none.
 *
 * A slot that lies ahead would keep out every tick until then. Where the second step fails, the call can be repeated.
 */
async function takeBackSlot(
  { leases }: ReportSources,
  slot: string,
  to: string | undefined,
): Promise<Answer> {
  const earlier = to === undefined ? {} : { to };
  const isTakenBack = await new LeaseAdmin(leases).takeBackSlot(closeUnpaidOrdersKey, {
    doneSlot: slot,
    ...earlier,
  });
  const runs = jobRuns(leases);
  const run = isTakenBack ? await runs.get(slot) : undefined;
  if (run?.state === "succeeded") await runs.takeBack(run);
  return { isTakenBack, doneSlot: await leases.doneSlot(closeUnpaidOrdersKey) };
}

/** The orders that could not be closed, for the people who correct them. */
export class ParkedOrders {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Lists them, the earliest due first. 1 consistent query. */
  async list(limit: number): Promise<readonly ParkedOrder[]> {
    const { Items = [] } = await this.#documents.send(
      new QueryCommand({
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :parked",
        ExpressionAttributeValues: { ":parked": partitions.parked },
        ConsistentRead: true,
        Limit: limit,
      }),
    );
    return (Items as ParkedItem[]).map(({ sk, orderId, problem, parkedBy, fencingToken }) => {
      return { id: sk, orderId, problem, parkedBy, fencingToken };
    });
  }

  /** Puts one back among the open ones, as it was: 2 requests. Tells whether it was there. */
  async putBack(id: string, remainingMs: () => number): Promise<boolean> {
    return await putBack(this.#documents, this.#tableName, parkedOrderKey(id), { remainingMs });
  }
}
