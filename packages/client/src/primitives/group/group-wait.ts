import type { LeaseRecord } from "../../base/lease-record.ts";
import { readRecord } from "../../base/record.ts";
import { leaseItemKey } from "../../base/schema.ts";
import type { Core } from "../../core/core.ts";
import type { WaitTerms } from "../../core/order.ts";
import { type Blocked, WaitLoop } from "../../core/wait-loop.ts";
import { GroupUnavailableError } from "./errors.ts";
import type { Blocker, GroupAcquisition, GroupGranted, GroupRefused } from "./group-acquisition.ts";

/** A held lock, and when it could be taken if nothing changes, on the monotonic clock. */
interface BlockedLock {
  readonly record: LeaseRecord;
  readonly claimableAt: number;
}

/** The held locks; the first one is read first. */
interface BlockedGroup extends Blocked {
  readonly locks: readonly BlockedLock[];
}

/**
 * One caller's wait for several locks, of which it holds none meanwhile.
 *
 * A look reads one held lock. The read may lag, and costs a fraction of a refused transaction. The next lock is read
 * only when that one is free.
 */
export class GroupWait extends WaitLoop<GroupGranted, GroupRefused, BlockedGroup, GroupAcquisition> {
  readonly #keys: readonly string[];
  readonly #terms: WaitTerms;

  constructor(core: Core, keys: readonly string[], terms: WaitTerms) {
    super(core, terms);
    this.#keys = keys;
    this.#terms = terms;
  }

  protected blockedBy({ blockers }: GroupRefused): BlockedGroup {
    return blockedBy(blockers.map((blocker) => this.#asOfNow(blocker)));
  }

  protected async look(
    { token }: GroupAcquisition,
    { locks }: BlockedGroup,
    withinMs: number,
  ): Promise<BlockedGroup> {
    const { core } = this;
    const { clock, detector } = core;
    const { signal } = this.#terms;
    let left = locks;
    for (const lock of locks) {
      if (clock.monotonic() >= lock.claimableAt) continue;
      const { key, sortKey } = lock.record;
      const request = { key: leaseItemKey(key, sortKey), consistent: false };
      const record = readRecord(await core.get(request, { withinMs, signal }));
      left = left.filter((other) => other !== lock);
      // The next attempt also recognises an own transaction that landed late.
      if (record === undefined || record.token === token) continue;
      const seen = this.#asOfNow({ record, claimableInMs: detector.judge(record).claimableInMs });
      left = [seen, ...left];
      if (clock.monotonic() < seen.claimableAt) break;
    }
    return blockedBy(left);
  }

  protected unavailable({ blockers, claimableAt }: BlockedGroup): GroupUnavailableError {
    const held = blockers
      .map(({ key, owner, expiresAt, inCooldown }) => ({ key, holder: owner, expiresAt, inCooldown }))
      .sort((one, other) => this.#keys.indexOf(one.key) - this.#keys.indexOf(other.key));
    const retryAfterMs = Math.ceil(Math.max(0, claimableAt - this.core.clock.monotonic()));
    return new GroupUnavailableError(this.#keys, held, retryAfterMs, { waitedMs: this.#terms.waitMs });
  }

  #asOfNow({ record, claimableInMs }: Blocker): BlockedLock {
    return { record, claimableAt: this.core.clock.monotonic() + claimableInMs };
  }
}

/** All of them can be taken when the last one can; at once when none is held. */
function blockedBy(locks: readonly BlockedLock[]): BlockedGroup {
  const claimableAt = Math.max(Number.NEGATIVE_INFINITY, ...locks.map((lock) => lock.claimableAt));
  return { blockers: locks.map(({ record }) => record), claimableAt, locks };
}
