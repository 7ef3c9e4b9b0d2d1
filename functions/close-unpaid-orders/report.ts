import { InvalidOptionsError, type LeaseClient } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { environmentNames } from "@leasehold/client/environment";
import type { BackfillReport, JobRun, JobRuns, MissedSlot } from "@leasehold/jobs";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { once, optional, required, wholeNumber } from "../support/environment.ts";
import { choiceIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { leaseClient } from "../support/leases.ts";
import { untilTimeIsUp, waitWithin } from "../support/working-time.ts";
import { attemptsOfTrigger, closeInRun, closeUnpaidOrdersKey as key, openRuns, usualLeaseMs } from "./job.ts";
import { OrderBook } from "./orders.ts";
import { closeAfterMs, closeAfterVariable, scheduleVariable, tableVariable } from "./schema.ts";

const dayMs = 86_400_000;
const mostAttempts = 1000;
const slotText = "an ISO time in UTC with milliseconds";
/** An answer stays far below the 6 MB that Lambda takes. */
const mostShown = 100;
/** The scheduler invokes within the minute after a slot. A run that fails at once is left to its own retry first. */
const graceMs = 60_000;

/** The parts of the report. */
export interface ReportSources {
  readonly leases: LeaseClient;
  readonly orders: OrderBook;
  /** An expression of EventBridge Scheduler, in UTC. */
  readonly schedule: string;
  readonly leaseDurationMs: number;
  readonly now: () => number;
}

const sources = once(
  (): ReportSources => ({
    leases: leaseClient(documents()),
    orders: new OrderBook(documents(), required(tableVariable), closeAfterMs(optional(closeAfterVariable))),
    schedule: required(scheduleVariable),
    leaseDurationMs: wholeNumber(environmentNames.lockAtMostForMs, usualLeaseMs),
    now: Date.now,
  }),
);

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
export const handler: Answering<object> = answering((event, context) =>
  report(sources(), event, () => context.getRemainingTimeInMillis()),
);

/** What an action does, with its fields and the milliseconds that the invocation has left. */
type Action = (from: ReportSources, fields: Fields, remainingMs: () => number) => Promise<object>;

/** The actions, and the fields that each takes. */
const actions = {
  runs: [runsSince, "since", "state"],
  missed: [missedSince, "since"],
  backfill: [backfillSince, "since", "maxAttempts"],
  parked: [async ({ orders }) => ({ parked: await orders.parked(mostShown) })],
  putBack: [
    async ({ orders }, fields, remainingMs) => ({
      isPutBack: await orders.putBack(nameIn(fields, "order"), remainingMs),
    }),
    "order",
  ],
  slot: [async ({ leases }) => ({ doneSlot: await leases.doneSlot(key) })],
  takeBack: [takeBackSlot, "slot", "to"],
} satisfies Record<string, readonly [act: Action, ...fields: string[]]>;

/** What the handler does, with what it works with. */
export async function report(
  from: ReportSources,
  event: unknown,
  remainingMs: () => number,
): Promise<object> {
  const names = Object.keys(actions) as (keyof typeof actions)[];
  const action = choiceIn(fieldsOf(event), "action", names);
  const [act, ...allowed]: readonly [Action, ...string[]] = actions[action];
  return await act(from, fieldsOf(event, ["action", ...allowed]), remainingMs);
}

function sinceIn({ since }: Fields, { now }: ReportSources): string {
  if (since === undefined) return new Date(now() - dayMs).toISOString();
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

/** More attempts than the trigger has, so that exhausted slots run again. */
function attemptsIn({ maxAttempts: value }: Fields): { readonly maxAttempts?: number } {
  if (value === undefined) return {};
  const isWhole = typeof value === "number" && Number.isSafeInteger(value);
  if (isWhole && value > attemptsOfTrigger && value <= mostAttempts) return { maxAttempts: value };
  const allowed = `a whole number from ${attemptsOfTrigger + 1} to ${mostAttempts}: a slot has ${attemptsOfTrigger} anyway`;
  throw new InvalidOptionsError("event.maxAttempts", value, allowed);
}

/** The states of a run for an operator: a failed or lost run without attempts left is `exhausted`. */
const standings = ["running", "succeeded", "failed", "lost", "exhausted", "skipped"] as const;
type Standing = (typeof standings)[number];

/** What an operator is shown of a run. */
type ShownRun = ReturnType<typeof shownRun>;

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

/** The result of a back-fill, with errors as texts; another call goes on where it stopped. */
export interface BackfillAnswer extends Omit<BackfillReport, "failed"> {
  readonly failed: readonly { readonly slot: string; readonly problem: string }[];
}

/** Lists the runs of a range: those of one state, or else those that did not succeed. 1 query for 250 runs. */
async function runsSince(from: ReportSources, fields: Fields): Promise<RunsAnswer> {
  const since = sinceIn(fields, from);
  const wanted = fields.state === undefined ? undefined : choiceIn(fields, "state", standings);
  const counts = { running: 0, succeeded: 0, failed: 0, lost: 0, exhausted: 0, skipped: 0 };
  const runs: ShownRun[] = [];
  for await (const run of runsOf(from).runs({ since, descending: true })) {
    const shown = shownRun(run);
    counts[shown.state] += 1;
    const isWanted = wanted === undefined ? shown.state !== "succeeded" : shown.state === wanted;
    if (isWanted && runs.length < mostShown) runs.push(shown);
  }
  return { since, counts, runs };
}

/** Lists the slots that were due and have neither succeeded nor been skipped. 1 consistent query for 250 runs. */
async function missedSince(from: ReportSources, fields: Fields): Promise<MissedAnswer> {
  const since = sinceIn(fields, from);
  const until = new Date(from.now() - graceMs).toISOString();
  const found: MissedSlot[] = [];
  for await (const one of runsOf(from).missed({ schedule: from.schedule, since, until })) {
    found.push(one);
    if (found.length > mostShown) break;
  }
  const missed = found.slice(0, mostShown).map(({ slot, run }) => ({ slot, run: run && shownRun(run) }));
  return { since, until, missed, complete: found.length <= mostShown };
}

/**
 * Runs the missed slots of a range, oldest first, under the lock of the schedule's runs.
 *
 * It holds the lock from the first slot to the last, so ticks that come meanwhile are skipped: these slots close
 * their orders. It takes the lock before it begins a slot, as the trigger does, so the two cannot deadlock. It
 * acquires the lock without a slot, so earlier slots are not refused. The run history refuses slots that are done.
 * It begins no slot, and no order, when the invocation's time is nearly over.
 *
 * Rejects with LeaseUnavailableError when the lock stays held, and with LeaseLostError when it is lost.
 */
async function backfillSince(
  from: ReportSources,
  fields: Fields,
  remainingMs: () => number,
): Promise<BackfillAnswer> {
  const { leases, orders, schedule, leaseDurationMs, now } = from;
  const runs = openRuns(leases, { key, leaseDurationMs, ...attemptsIn(fields) });
  const range = { schedule, since: sinceIn(fields, from), until: new Date(now() - graceMs) };
  // Refuses a wrong range before the lock is taken.
  runs.missed(range);
  const signal = untilTimeIsUp(remainingMs());
  const waitMs = waitWithin(leaseDurationMs, remainingMs());
  const terms = { leaseDurationMs, heartbeat: true, waitMs, signal };
  return await leases.withLease(key, terms, async (lease) => {
    const lock = { lease, signal: AbortSignal.any([lease.signal, signal]) };
    const work = { orders, now, remainingMs };
    const done = await runs.backfill({ ...range, signal: lock.signal }, (run) =>
      closeInRun(run, { work, lock }),
    );
    return { ...done, failed: done.failed.map(({ slot, error }) => ({ slot, problem: String(error) })) };
  });
}

function runsOf({ leases }: ReportSources): JobRuns {
  return openRuns(leases, { key });
}

function shownRun({ exhausted, ...run }: JobRun) {
  const { slot, attempt, owner, fencingToken, startedAt, endedAt, remark, progress } = run;
  const state: Standing = exhausted ? "exhausted" : run.state;
  return { slot, state, attempt, owner, fencingToken, startedAt, endedAt, remark, progress };
}

/**
 * Takes back a slot that is done by mistake, at the lock and then in the run history: back to `to`, or to none. Tells whether it
 * was the latest that was done, and which one is now.
 *
 * A slot that lies ahead would keep out every tick until then. Where the second step fails, the call can be repeated.
 */
async function takeBackSlot(from: ReportSources, fields: Fields): Promise<object> {
  const { leases } = from;
  const slot = slotIn(fields, "slot");
  const to = fields.to === undefined ? {} : { to: slotIn(fields, "to") };
  const isTakenBack = await new LeaseAdmin(leases).takeBackSlot(key, { doneSlot: slot, ...to });
  const runs = runsOf(from);
  const run = isTakenBack ? await runs.get(slot) : undefined;
  if (run?.state === "succeeded") await runs.takeBack(run);
  return { isTakenBack, doneSlot: await leases.doneSlot(key) };
}
