import { LeaseServiceError } from "../errors/errors.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { claimableIn } from "../protocol/expiry-detector.ts";
import type { Blocked, TryBounds, WaitTerms, Wanted } from "../protocol/retry-loop.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import { sleep } from "../time/clock.ts";
import { WaitBudget } from "../time/wait-budget.ts";
import { GroupUnavailableError } from "./errors.ts";
import type { GroupAcquisition, GroupGranted, GroupRefused } from "./group-acquisition.ts";

/** A lock that stands in the way, and when it could be taken if nothing changes, on the monotonic clock. */
interface Obstacle {
  readonly record: LeaseRecord;
  readonly claimableAt: number;
}

/** The locks that stand in the way, the one to look at first at their head. */
export interface BlockedLocks extends Blocked {
  readonly obstacles: readonly Obstacle[];
}

/** Transactions that meet cancel each other; who wins is known well within this time, even to a caller that does not wait. */
const conflictPatienceMs = 2_000;
const firstConflictDelayMs = 20;
const longestConflictDelayMs = 320;

/**
 * Several locks that a caller waits for, and of which it holds none meanwhile.
 *
 * A look reads one lock that stood in the way, which may lag and costs a fraction of a refused transaction; only when
 * that one is free does it read the next.
 */
export class WantedLocks implements Wanted<GroupGranted, GroupRefused, BlockedLocks> {
  readonly #context: ProtocolContext;
  readonly #acquisition: GroupAcquisition;
  readonly #keys: readonly string[];
  readonly #terms: WaitTerms;
  readonly #onContended: (record: LeaseRecord) => void;
  readonly #conflictBudget: WaitBudget;
  #conflicts = 0;

  constructor(
    context: ProtocolContext,
    acquisition: GroupAcquisition,
    keys: readonly string[],
    terms: WaitTerms,
    onContended: (record: LeaseRecord) => void,
  ) {
    this.#context = context;
    this.#acquisition = acquisition;
    this.#keys = keys;
    this.#terms = terms;
    this.#onContended = onContended;
    this.#conflictBudget = new WaitBudget(context.clock, Math.max(terms.waitMs, conflictPatienceMs));
  }

  async try({ withinMs, signal }: TryBounds): Promise<GroupGranted | GroupRefused> {
    for (;;) {
      try {
        return await this.#acquisition.attempt(withinMs, signal);
      } catch (error) {
        const isConflict = error instanceof LeaseServiceError && error.code === "LEASE_CONFLICT";
        if (!isConflict || this.#conflictBudget.leftMs <= 0) throw error;
      }
      await sleep(this.#context.clock, this.#conflictDelayMs(), signal);
    }
  }

  blockedBy({ obstacles }: GroupRefused): BlockedLocks {
    for (const { record } of obstacles) this.#onContended(record);
    return blockedBy(obstacles.map((obstacle) => this.#from(obstacle)));
  }

  async look({ obstacles }: BlockedLocks, withinMs: number): Promise<BlockedLocks> {
    const { clock, detector, table } = this.#context;
    let left = obstacles;
    for (const obstacle of obstacles) {
      if (clock.monotonic() >= obstacle.claimableAt) continue;
      const { key, place } = obstacle.record;
      const request = { key: leaseItemKey(key, place), consistent: false };
      const record = readRecord(await table.get(request, { withinMs, signal: this.#terms.signal }));
      left = left.filter((other) => other !== obstacle);
      // An own transaction that landed late is recognised by the next try, too.
      if (record === undefined || record.token === this.#acquisition.token) continue;
      const seen = this.#from({ record, claimableInMs: claimableIn(detector.judge(record)) });
      left = [seen, ...left];
      if (clock.monotonic() < seen.claimableAt) break;
    }
    return blockedBy(left);
  }

  unavailable({ obstacles, claimableAt }: BlockedLocks): GroupUnavailableError {
    const rank = new Map(this.#keys.map((key, index) => [key, index]));
    const held = obstacles
      .map(({ record: { key, owner, expiresAt, closed } }) => ({ key, holder: owner, expiresAt, closed }))
      .sort((one, other) => (rank.get(one.key) ?? 0) - (rank.get(other.key) ?? 0));
    const retryAfterMs = Math.ceil(Math.max(0, claimableAt - this.#context.clock.monotonic()));
    return new GroupUnavailableError(this.#keys, held, retryAfterMs, { waitedMs: this.#terms.waitMs });
  }

  #from({ record, claimableInMs }: { record: LeaseRecord; claimableInMs: number }): Obstacle {
    return { record, claimableAt: this.#context.clock.monotonic() + claimableInMs };
  }

  #conflictDelayMs(): number {
    const longest = Math.min(firstConflictDelayMs * 2 ** this.#conflicts, longestConflictDelayMs);
    this.#conflicts += 1;
    return longest * this.#context.randomness.fraction();
  }
}

/** All of them can be had when the last one can; at once where none is in the way. */
function blockedBy(obstacles: readonly Obstacle[]): BlockedLocks {
  const claimableAt = Math.max(
    Number.NEGATIVE_INFINITY,
    ...obstacles.map((obstacle) => obstacle.claimableAt),
  );
  return { obstacles, claimableAt };
}
