/**
 * The trace of an operator's action: an item of its own under the key, written in the same transaction as the action.
 * So no action is without its trace, and no trace is without its action.
 */

import { check, checkOptions, duration, type Rules, text } from "../base/check-values.ts";
import { sleep } from "../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../base/errors.ts";
import { parsedJson } from "../base/item-values.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { retryPauses } from "../base/retry.ts";
import {
  attributeNames,
  auditSortKeyPrefix,
  type ItemKey,
  leaseItemKey,
  limits,
  timeToLive,
} from "../base/schema.ts";
import { type Item, pagesOf, type ScanPage, type TransactionResult } from "../base/store.ts";
import { callBudgetMs } from "../base/timed-call.ts";
import { type Core, query, scan, transact } from "../core/core.ts";
import { WaitBudget } from "../core/wait-loop.ts";
import type { LeaseAddress } from "../statements/lock.ts";
import { namesIn, type Part, say, Write } from "../statements/statement.ts";

/** The actions of an operator: on leases, on a slot of a job (`skip`), and on tasks (`requeue`, `cancel`). */
export type OperatorAction = "stop" | "break" | "pause" | "resume" | "skip" | "requeue" | "cancel";

/** How long traces are kept by default. */
export const usualAuditRetentionMs: number = 30 * 24 * 60 * 60 * 1000;

/** One action of an operator: what, to which lease, and why. It holds no token and no payload. */
export interface AuditEntry {
  readonly key: string;
  /**
   * The sort key of the lease under the key; for `skip`, `requeue` and `cancel`, that of the run's or the task's item.
   */
  readonly sortKey: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly action: OperatorAction;
  readonly by: string;
  readonly reason: string | undefined;
  /** The holder of the lease; for a pause, the dead holder that it took the lock over from, if any. */
  readonly holder: Pick<LeaseRecord, "owner" | "acquiredAt" | "fencingToken"> | undefined;
  /** When a pause ends by itself, in epoch milliseconds; undefined for other actions. */
  readonly until: number | undefined;
}

const traceKept: Part = { set: "#ttl = :ttl", when: "attribute_not_exists(#ttl)" };
const leavesTrace = say(traceKept, { set: "#data = :data" });

/** Writes a trace. Refused if the same trace is there: then an earlier copy of its transaction has landed. */
function leaveTrace(entry: AuditEntry, id: string, retentionMs: number): Write {
  const { key, at, ...content } = entry;
  const values = { ":ttl": timeToLive(at, retentionMs), ":data": JSON.stringify(content) };
  return new Write(
    leaseItemKey(key, `${auditSortKeyPrefix}${new Date(at).toISOString()}#${id}`),
    leavesTrace,
    values,
  );
}

/** Occupies the place of a trace with an empty item: no copy of that trace can land any more. */
function occupyTrace(trace: Write): Write {
  return new Write(trace.key, say(traceKept), { ":ttl": trace.values[":ttl"] as number });
}

/** Writes the trace of an action on an item that nobody holds. */
export function traceNow(
  { clock, randomness }: Pick<Core, "clock" | "randomness">,
  what: Pick<AuditEntry, "key" | "sortKey" | "action" | "by" | "reason">,
): Write {
  const entry: AuditEntry = { ...what, at: clock.now(), holder: undefined, until: undefined };
  return leaveTrace(entry, randomness.token().slice(-12), usualAuditRetentionMs);
}

/** By name, the types of members; one with a question mark may be absent. */
export type Shape = Readonly<Record<string, `${"string" | "number" | "object"}${"" | "?"}`>>;

const traceShape: Shape = {
  ...{ sortKey: "string", action: "string", by: "string", reason: "string?" },
  ...{ holder: "object?", until: "number?" },
};
const holderShape: Shape = { owner: "string", acquiredAt: "number", fencingToken: "number" };

/** Whether the members of a content are of these types: another program may have written it. */
export function fits(content: object, shape: Shape): boolean {
  return Object.entries(shape).every(([name, type]) => {
    const value: unknown = content[name as keyof typeof content];
    return value === undefined ? type.endsWith("?") : type.startsWith(typeof value);
  });
}

/** Reads a trace; undefined if another program has written the item. */
export function auditEntryIn(item: Item): AuditEntry | undefined {
  const content = Object(parsedJson(String(item[attributeNames.data]))?.value) as AuditEntry;
  const [, time] = String(item[attributeNames.sortKey]).split("#");
  const { sortKey, action, by, reason, holder, until } = content;
  if (!fits(content, traceShape) || (holder !== undefined && !fits(Object(holder), holderShape)))
    return undefined;
  const key = String(item[attributeNames.partitionKey]);
  return { key, sortKey, at: Date.parse(String(time)), action, by, reason, holder, until };
}

/** Options of {@link LeaseOperator.audit}. */
export interface AuditOptions {
  /** Reads only this key. @default - all keys */
  readonly key?: string;
  /** Reads only keys with this prefix; not together with `key`. @default - all keys */
  readonly prefix?: string;
  /** Only actions of the last so many milliseconds. @default - all that are kept */
  readonly sinceMs?: number;
}

const auditRules: Rules<AuditOptions> = {
  key: text(limits.keyBytes),
  prefix: text(limits.keyBytes),
  sinceMs: duration(1),
};

const { partitionKey, sortKey } = attributeNames;

/** Reads the traces of a key, or of all keys. Throws InvalidOptionsError. */
export async function* auditTrail(
  core: Core,
  options: AuditOptions,
): AsyncGenerator<AuditEntry, void, undefined> {
  const { key, prefix, sinceMs } = checkOptions(options, auditRules);
  check(key === undefined || prefix === undefined, "prefix", prefix, "nothing beside key");
  const within = await timesSince(core, auditSortKeyPrefix, key === undefined ? {} : { key, sinceMs });
  const read = (after: { readonly after?: ItemKey }): Promise<ScanPage> =>
    key === undefined
      ? scan(core, { ...everywhere(within, prefix), ...after })
      : query(core, { ...under({ key }, within), consistent: true, ...after });
  for await (const { items } of pagesOf(read)) {
    const entries = items.flatMap((item) => auditEntryIn(item) ?? []);
    // A scan costs the same without the time, and its first answer tells the service's.
    const from = core.clock.now() - (sinceMs ?? Number.POSITIVE_INFINITY);
    yield* entries.filter(({ at }) => !(at < from));
  }
}

/** A range of sort keys that are a prefix and a time. */
export interface TimeRange {
  readonly from: string;
  readonly to: string;
}

/**
 * The sort keys of the last so many milliseconds of the service's time. 1 request if no answer has told it: this
 * machine's clock may be wrong.
 */
export async function timesSince(
  core: Core,
  prefix: string,
  { key, sinceMs }: { readonly key?: string; readonly sinceMs?: number | undefined },
): Promise<TimeRange> {
  const to = `${prefix}~`;
  if (key === undefined || sinceMs === undefined) return { from: prefix, to };
  if (!core.clock.isTold)
    await query(core, { ...under({ key }, { from: to, to }), consistent: false, limit: 1 });
  return { from: prefix + new Date(Math.max(0, core.clock.now() - sinceMs)).toISOString(), to };
}

/** The key condition for the items of a time range under a key. */
export function under(
  { key }: LeaseAddress,
  { from, to }: TimeRange,
): { readonly keyCondition: string; readonly names: Record<string, string>; readonly values: Item } {
  const keyCondition = `#${partitionKey} = :key AND #${sortKey} BETWEEN :from AND :to`;
  return { keyCondition, names: namesIn(keyCondition), values: { ":key": key, ":from": from, ":to": to } };
}

function everywhere(
  { from, to }: TimeRange,
  prefix: string | undefined,
): { readonly filter: string; readonly names: Record<string, string>; readonly values: Item } {
  const inTime = `#${sortKey} BETWEEN :from AND :to`;
  const filter = prefix === undefined ? inTime : `${inTime} AND begins_with(#${partitionKey}, :prefix)`;
  const values = { ":from": from, ":to": to, ...(prefix === undefined ? {} : { ":prefix": prefix }) };
  return { filter, names: namesIn(filter), values };
}

/** The longest try: a hanging try leaves time for others. */
const longestTracedTryMs = 3_000;
const pauses = { strategy: "fullJitter", delayMs: 50, maxDelayMs: 1_000 } as const;

/**
 * Writes together with their trace, in one transaction. The trace has its own id, which identifies an earlier copy
 * whose answer was lost, however often the transaction is sent.
 */
export class TracedWrite {
  readonly #core: Core;
  readonly #trace: Write;
  readonly #budget: WaitBudget;
  readonly #nextPauseMs: () => number;
  /** Whether a copy may have landed, or may still land, without an answer. */
  mayHaveLanded = false;

  constructor(core: Core, entry: AuditEntry, retentionMs: number) {
    this.#core = core;
    this.#trace = leaveTrace(entry, core.randomness.token().slice(-12), retentionMs);
    this.#budget = new WaitBudget(core.clock, callBudgetMs);
    this.#nextPauseMs = retryPauses(core, pauses);
  }

  /**
   * Prevents every further copy from landing: it occupies the place of the trace. 1 request. Returns whether that
   * succeeded; false if a copy has landed already.
   */
  async revoke(): Promise<boolean> {
    const write = occupyTrace(this.#trace);
    return (await this.#core.update(write, { withinMs: longestTracedTryMs })).applied;
  }

  /**
   * Sends it, and repeats it after a conflict, a throttle or a lost answer, for up to 10 s; also on a closed client.
   * Returns what has refused it.
   *
   * Rejects when the service fails for longer, and with the signal's reason. A LeaseServiceError says whether any copy
   * may have landed.
   */
  async send(
    writes: readonly Write[],
    signal?: AbortSignal,
  ): Promise<
    { readonly applied: true } | (Pick<TransactionResult, "refusals"> & { readonly applied: false })
  > {
    const { clock } = this.#core;
    for (;;) {
      try {
        const budget = { withinMs: longestTracedTryMs, signal };
        const { applied, refusals, retried } = await transact(this.#core, [...writes, this.#trace], budget);
        const isDone = applied || refusals[writes.length] !== undefined;
        // An answer without its trace does not rule out a copy that is still under way.
        this.mayHaveLanded = !isDone && (retried || this.mayHaveLanded);
        return isDone ? { applied: true } : { applied: false, refusals };
      } catch (error) {
        if (!(error instanceof LeaseError)) throw error;
        this.mayHaveLanded ||= error.mayHaveLanded;
        const isTransient = error instanceof LeaseServiceError && error.retryable;
        if (!isTransient || this.#budget.leftMs <= 0) {
          throw Object.assign(error, { mayHaveLanded: this.mayHaveLanded });
        }
      }
      await sleep(clock, Math.min(this.#nextPauseMs(), this.#budget.leftMs), signal);
    }
  }
}
