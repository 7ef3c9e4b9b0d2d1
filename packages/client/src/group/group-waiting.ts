import type { LeaseServiceError } from "../errors/errors.ts";
import { passing, unlessPassing } from "../errors/operational.ts";
import { callBudgetMs, type ProtocolContext } from "../protocol/context.ts";
import { claimableIn } from "../protocol/expiry-detector.ts";
import type { WaitTerms } from "../protocol/retry-loop.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import { sleep } from "../time/clock.ts";
import { RetryPauses } from "../time/retry.ts";
import { WaitBudget } from "../time/wait-budget.ts";
import { GroupUnavailableError } from "./errors.ts";
import type { GroupAcquisition, GroupGranted, GroupRefused } from "./group-acquisition.ts";

/** A lock that stands in the way, and when it could be taken if nothing changes, on the monotonic clock. */
interface Obstacle {
  readonly record: LeaseRecord;
  readonly claimableAt: number;
}

/** What is known of the locks between two attempts. */
interface Prospect {
  obstacles: Obstacle[];
  /** Why the last attempt has told nothing about the locks. */
  readonly failure: LeaseServiceError | undefined;
}

/** Transactions that meet cancel each other; who wins is known well within this time, even to a caller that does not wait. */
const conflictPatienceMs = 2_000;
const firstConflictDelayMs = 20;
const longestConflictDelayMs = 320;

/**
 * One caller's wait for several locks: tries until all are its own or its patience is over, and holds none meanwhile.
 *
 * Between attempts it reads one lock that stood in its way, which may lag and costs a fraction of a refused
 * transaction; only when that one is free does it look at the next, and only when none is in the way does it try.
 */
export class GroupWaiting {
  readonly #context: ProtocolContext;
  readonly #acquisition: GroupAcquisition;
  readonly #keys: readonly string[];
  readonly #patience: WaitTerms;
  readonly #budget: WaitBudget;
  readonly #conflictBudget: WaitBudget;
  readonly #pauses: RetryPauses;
  #conflicts = 0;

  constructor(
    context: ProtocolContext,
    acquisition: GroupAcquisition,
    keys: readonly string[],
    patience: WaitTerms,
  ) {
    this.#context = context;
    this.#acquisition = acquisition;
    this.#keys = keys;
    this.#patience = patience;
    this.#budget = new WaitBudget(context.clock, patience.waitMs);
    this.#conflictBudget = new WaitBudget(context.clock, Math.max(patience.waitMs, conflictPatienceMs));
    this.#pauses = new RetryPauses(context, patience.retry);
  }

  /**
   * Gives the grant.
   *
   * Rejects with GroupUnavailableError, with the service's error if that is what the last attempt ended with, or
   * with the signal's reason. The caller abandons the acquisition then.
   */
  async grant(onContended: (records: readonly LeaseRecord[]) => void): Promise<GroupGranted> {
    for (;;) {
      const outcome = await this.#attempt();
      if ("granted" in outcome) return outcome;
      onContended(outcome.obstacles.map(({ record }) => record));
      await this.#untilWorthwhile(outcome);
    }
  }

  async #attempt(): Promise<GroupGranted | Prospect> {
    const { signal, waitMs } = this.#patience;
    try {
      const withinMs = waitMs > 0 ? this.#budget.callMs : Number.POSITIVE_INFINITY;
      const outcome = await this.#acquisition.attempt(withinMs, signal);
      return outcome.granted ? outcome : this.#prospect(outcome);
    } catch (error) {
      signal?.throwIfAborted();
      return { obstacles: [], failure: passing(error) };
    }
  }

  #prospect({ obstacles }: GroupRefused): Prospect {
    const now = this.#context.clock.monotonic();
    return {
      obstacles: obstacles.map(({ record, claimableInMs }) => ({ record, claimableAt: now + claimableInMs })),
      failure: undefined,
    };
  }

  /** Sleeps and looks until another attempt can hope for success; rejects when there is no time left for one. */
  async #untilWorthwhile(prospect: Prospect): Promise<void> {
    const { clock } = this.#context;
    const { signal } = this.#patience;
    const { failure } = prospect;
    if (failure?.code === "LEASE_CONFLICT" && this.#conflictBudget.leftMs > 0) {
      await sleep(clock, this.#conflictDelayMs(), signal);
      return;
    }
    for (;;) {
      if (this.#budget.leftMs <= 0) throw failure ?? this.#unavailable(prospect);
      const claimableAt = failure ? Number.POSITIVE_INFINITY : claimableAtIn(prospect);
      await sleep(clock, Math.min(this.#pauses.nextMs(claimableAt), this.#budget.leftMs), signal);
      // After a failure nothing is known of the locks, and our own writes may have landed: only an attempt tells.
      if (failure !== undefined || (await this.#isClear(prospect))) return;
    }
  }

  /** Looks at the locks in the way, one after the other, up to the first that still is. */
  async #isClear(prospect: Prospect): Promise<boolean> {
    const { clock } = this.#context;
    for (const obstacle of [...prospect.obstacles]) {
      if (clock.monotonic() >= obstacle.claimableAt) continue;
      const record = await this.#look(obstacle.record);
      if (record === "unknown") return false;
      const others = prospect.obstacles.filter((other) => other !== obstacle);
      // An own transaction that landed late is recognised by the next attempt, too.
      const isGone = record === "free" || record.token === this.#acquisition.token;
      const revised = isGone ? undefined : this.#revised(record);
      prospect.obstacles = revised ? [revised, ...others] : others;
      if (revised !== undefined && clock.monotonic() < revised.claimableAt) return false;
    }
    return true;
  }

  /** Looks at a lock without writing; a look that was not answered is made good by the next one. */
  async #look({ key, sortKey }: LeaseRecord): Promise<LeaseRecord | "free" | "unknown"> {
    const { table } = this.#context;
    const { signal } = this.#patience;
    const request = { key: leaseItemKey(key, sortKey), consistent: false };
    const withinMs = Math.min(this.#budget.callMs, callBudgetMs);
    const look = async (): Promise<LeaseRecord | "free"> =>
      readRecord(await table.get(request, { withinMs, signal })) ?? "free";
    return (await unlessPassing(look, signal)) ?? "unknown";
  }

  #revised(record: LeaseRecord): Obstacle {
    const claimableInMs = claimableIn(this.#context.detector.judge(record));
    return { record, claimableAt: this.#context.clock.monotonic() + claimableInMs };
  }

  #conflictDelayMs(): number {
    const longest = Math.min(firstConflictDelayMs * 2 ** this.#conflicts, longestConflictDelayMs);
    this.#conflicts += 1;
    return longest * this.#context.randomness.fraction();
  }

  #unavailable(prospect: Prospect): GroupUnavailableError {
    const rank = new Map(this.#keys.map((key, index) => [key, index]));
    const held = prospect.obstacles
      .map(({ record: { key, owner, expiresAt, inCooldown } }) => ({
        key,
        holder: owner,
        expiresAt,
        inCooldown,
      }))
      .sort((one, other) => (rank.get(one.key) ?? 0) - (rank.get(other.key) ?? 0));
    const retryAfterMs = Math.ceil(Math.max(0, claimableAtIn(prospect) - this.#context.clock.monotonic()));
    return new GroupUnavailableError(this.#keys, held, retryAfterMs, { waitedMs: this.#patience.waitMs });
  }
}

/** When the last of the locks in the way could be taken, on the monotonic clock; at once where none is in the way. */
function claimableAtIn({ obstacles }: Prospect): number {
  return Math.max(Number.NEGATIVE_INFINITY, ...obstacles.map(({ claimableAt }) => claimableAt));
}
