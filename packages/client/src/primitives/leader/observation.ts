import { checkOptions, checkSignal, duration, type Rules } from "../../base/check-values.ts";
import { optionalWholeIn } from "../../base/item-values.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { unlessPassing } from "../../base/operational.ts";
import { readRecord } from "../../base/record.ts";
import { attributeNames, leaseItemKey } from "../../base/schema.ts";
import { isHolder } from "../../core/attempt.ts";
import type { Core } from "../../core/core.ts";
import { pauseWhileOpen, whileOpen } from "../../core/lifecycle.ts";

/** The leader, as the table shows it. */
export interface LeaderRecord {
  /** Readable label of the leader. */
  readonly owner: string;
  /** Grows with every election. */
  readonly fencingToken: number;
  /** When it was elected, in epoch milliseconds of the leader's clock. */
  readonly since: number;
  /** The leader's data for others, such as its address. */
  readonly data: unknown;
}

/** Options of {@link Leader.observe}. */
export interface ObserveOptions {
  /** Ends the observation. @default - it ends when the caller's loop ends */
  readonly signal?: AbortSignal;
  /** The longest pause between two looks, in milliseconds, give or take a half. @default 10000 */
  readonly everyMs?: number;
}

const firstLeaderLookMs = 500;
const defaultEveryMs = 10_000;

/** The result of one look. */
interface Snapshot {
  readonly leader: LeaderRecord | undefined;
  /** The latest leader's token, even if that leader does not lead any more; 0 when the table shows none. */
  readonly fencingToken: number;
}

/**
 * Reads the leader. May lag a moment behind.
 *
 * A candidate does not lead any more when its lease has been over for longer than clocks may differ.
 */
export async function readLeader(core: Core, key: string): Promise<LeaderRecord | undefined> {
  return (await readSnapshot(core, key)).leader;
}

async function readSnapshot(core: Core, key: string, signal?: AbortSignal): Promise<Snapshot> {
  const request = { key: leaseItemKey(key), consistent: false };
  const item = await core.get(request, { signal });
  return {
    leader: leaderIn(readRecord(item), core),
    fencingToken: (item && optionalWholeIn(item, attributeNames.fence)) ?? 0,
  };
}

function leaderIn(record: LeaseRecord | undefined, core: Core): LeaderRecord | undefined {
  if (record === undefined || !isHolder(record)) return undefined;
  if (core.detector.judge(record).reason !== undefined) return undefined;
  const { owner, fencingToken, acquiredAt, data } = record;
  return { owner, fencingToken, since: acquiredAt, data };
}

/**
 * Yields the present leader, and then every change that its looks notice.
 *
 * One look may lag more than the one before it. A record that is older than an earlier look's is ignored.
 */
export async function* watchLeader(
  core: Core,
  key: string,
  options: ObserveOptions,
): AsyncGenerator<LeaderRecord | undefined, void, undefined> {
  const { signal, everyMs = defaultEveryMs } = options;
  let last: LeaderRecord | undefined | "unknown" = "unknown";
  let latestToken = 0;
  let looks = 0;
  const look = (either: AbortSignal): Promise<Snapshot | undefined> =>
    unlessPassing(() => readSnapshot(core, key, either));
  while (!signal?.aborted) {
    const snapshot = await whileOpen(core.lifecycle, signal, look).catch((error: unknown) => {
      if (!signal?.aborted) throw error;
    });
    if (signal?.aborted) return;
    // When ttl has removed the item, the table shows no leader, and there is none.
    if (snapshot !== undefined && (snapshot.fencingToken >= latestToken || snapshot.fencingToken === 0)) {
      latestToken = Math.max(latestToken, snapshot.fencingToken);
      if (isOther(snapshot.leader, last)) {
        last = snapshot.leader;
        looks = 0;
        yield snapshot.leader;
      }
    }
    const delayMs = Math.min(firstLeaderLookMs * 2 ** looks, everyMs) * (0.5 + core.randomness.fraction());
    looks += 1;
    await pauseWhileOpen(core, delayMs, signal);
  }
}

function isOther(one: LeaderRecord | undefined, other: LeaderRecord | undefined | "unknown"): boolean {
  return other === "unknown" || one?.fencingToken !== other?.fencingToken;
}

const observeRules: Rules<ObserveOptions> = { signal: checkSignal, everyMs: duration(1) };

/** Validates the options of an observation. */
export function checkObserveOptions(options: ObserveOptions): ObserveOptions {
  return checkOptions(options, observeRules);
}
