import { unlessPassing } from "../errors/operational.ts";
import { checkDuration, checkKnown, checkSignal } from "../options/check-values.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { attributeNames, leaseItemKey } from "../schema.ts";
import { optionalWholeIn } from "../store/item-values.ts";

/** Who leads, as the table shows it. */
export interface Reign {
  /** Readable label of the leader. */
  readonly owner: string;
  /** Grows with every election. */
  readonly fencingToken: number;
  /** When it was elected, in epoch milliseconds of the leader's clock. */
  readonly since: number;
  /** What the leader wants others to know, such as its address. */
  readonly data: unknown;
}

/** Options of {@link Leader.observe}. */
export interface ObserveOptions {
  /** Ends the observation. @default - it ends when its reader stops reading */
  readonly signal?: AbortSignal;
  /** The rarest rhythm, in milliseconds: how long a change can go unnoticed, and a half more. @default 10000 */
  readonly everyMs?: number;
}

const firstLookMs = 500;
const defaultEveryMs = 10_000;

/** What one look shows. */
interface Sight {
  readonly reign: Reign | undefined;
  /** Of the latest reign, whether it has ended or not; 0 where there is no trace of any. */
  readonly fencingToken: number;
}

/**
 * Reads who leads. May lag a moment behind.
 *
 * A leader whose lease has been over for longer than clocks may differ is none any more.
 */
export async function readReign(context: ProtocolContext, key: string): Promise<Reign | undefined> {
  return (await readSight(context, key)).reign;
}

async function readSight(context: ProtocolContext, key: string): Promise<Sight> {
  const request = { key: leaseItemKey(key), consistent: false };
  const item = await context.table.get(request);
  return {
    reign: reignIn(readRecord(item), context),
    fencingToken: (item && optionalWholeIn(item, attributeNames.fence)) ?? 0,
  };
}

function reignIn(record: LeaseRecord | undefined, context: ProtocolContext): Reign | undefined {
  if (record === undefined || record.closed) return undefined;
  if (context.detector.judge(record).expired) return undefined;
  const { owner, fencingToken, acquiredAt, data } = record;
  return { owner, fencingToken, since: acquiredAt, data };
}

/**
 * Gives who leads at first, and then every change that its looks notice.
 *
 * One look may lag more than the one before it: what is older than what has been seen is passed over.
 */
export async function* reigns(
  context: ProtocolContext,
  key: string,
  options: ObserveOptions,
): AsyncGenerator<Reign | undefined, void, undefined> {
  const { signal, everyMs = defaultEveryMs } = options;
  let last: Reign | undefined | "unknown" = "unknown";
  let latestToken = 0;
  let looks = 0;
  while (!signal?.aborted) {
    context.lifecycle.throwIfClosed();
    const sight = await unlessPassing(() => readSight(context, key));
    if (signal?.aborted) return;
    // Where ttl has removed the item there is no trace of any reign, and nobody leads.
    if (sight !== undefined && (sight.fencingToken >= latestToken || sight.fencingToken === 0)) {
      latestToken = Math.max(latestToken, sight.fencingToken);
      if (isOther(sight.reign, last)) {
        last = sight.reign;
        looks = 0;
        yield sight.reign;
      }
    }
    const delayMs = Math.min(firstLookMs * 2 ** looks, everyMs) * (0.5 + context.randomness.fraction());
    looks += 1;
    await context.lifecycle.pause(delayMs, signal);
  }
}

function isOther(one: Reign | undefined, other: Reign | undefined | "unknown"): boolean {
  return other === "unknown" || one?.fencingToken !== other?.fencingToken || one?.owner !== other?.owner;
}

/** Validates the options of an observation. */
export function checkObserveOptions(options: ObserveOptions): ObserveOptions {
  const given = checkKnown(options, ["signal", "everyMs"], "options");
  checkSignal(given.signal);
  if (given.everyMs !== undefined) checkDuration("everyMs", given.everyMs, 1);
  return given;
}
