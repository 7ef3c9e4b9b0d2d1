import { untilAborted } from "../../base/abort.ts";
import { brandClass } from "../../base/brand.ts";
import { type AcquisitionTerms, checkAcquireOptions, slotlessOptionNames } from "../../base/check-options.ts";
import { check, checkData, checkKey, checkKnown, readable } from "../../base/check-values.ts";
import { InvalidOptionsError, LeaseUnavailableError, type RefusalDetails } from "../../base/errors.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { ifOperational } from "../../base/operational.ts";
import type { WaitOptions } from "../../base/options.ts";
import { readRecord } from "../../base/record.ts";
import { leaseItemKey, leaseSortKey, limits, utf8Bytes } from "../../base/schema.ts";
import { begin, contentionOf, isTraced, traced } from "../../core/acquire.ts";
import type { LeaseClient } from "../../core/client.ts";
import { type Core, coreOf } from "../../core/core.ts";
import type { HeldLease } from "../../core/held-lease.ts";
import { whileOpen } from "../../core/lifecycle.ts";
import { LockForm } from "../../core/lock-form.ts";
import type { WaitTerms } from "../../core/order.ts";
import { type Blocked, WaitLoop } from "../../core/wait-loop.ts";
import { type Blocker, GroupAcquisition, type GroupGranted, type GroupRefused } from "./group-acquisition.ts";
import { LeaseGroup } from "./lease-group.ts";

/** One lock of a group that another caller holds. */
export interface HeldKey {
  readonly key: string;
  /** The holder's owner label, or that of the last holder during a cooldown. */
  readonly holder: string;
  /** When the holder's lease ends unless it is renewed, in epoch milliseconds of the holder's clock. */
  readonly expiresAt: number;
  /** Whether the lock has no holder: it was released early, and is in its cooldown (`lockAtLeastForMs`). */
  readonly inCooldown: boolean;
}

/**
 * Other callers hold some of the locks, and the time to wait for them is over. None of the locks is held by this
 * call.
 *
 * Its code is LEASE_UNAVAILABLE. `key`, `holder` and `expiresAt` are those of the first lock in `held`.
 */
export class GroupUnavailableError extends LeaseUnavailableError {
  static {
    brandClass(GroupUnavailableError, "GroupUnavailableError");
  }
  /** All locks that were asked for. */
  readonly keys: readonly string[];
  /**
   * The locks that other callers hold, in the order of `keys`. Empty when they were released at the moment of giving
   * up.
   */
  readonly held: readonly HeldKey[];

  constructor(
    keys: readonly string[],
    held: readonly HeldKey[],
    retryAfterMs: number,
    details?: RefusalDetails,
  ) {
    const [first] = held;
    super(first?.key ?? keys[0] ?? "", first && { ...first, owner: first.holder }, retryAfterMs, details);
    this.keys = keys;
    this.held = held;
    const others = held.length - 1;
    if (others > 0) {
      this.message = `${held.length} of the ${keys.length} locks are not to be had; ${this.message}`;
    }
  }
}

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
class GroupWait extends WaitLoop<GroupGranted, GroupRefused, BlockedGroup, GroupAcquisition> {
  readonly #keys: readonly string[];

  constructor(core: Core, keys: readonly string[], terms: WaitTerms) {
    super(core, terms);
    this.#keys = keys;
  }

  protected blockedBy({ blockers }: GroupRefused): BlockedGroup {
    return blockedBy(blockers.map((blocker) => this.#asOfNow(blocker)));
  }

  protected async look({ token }: GroupAcquisition, { locks }: BlockedGroup): Promise<BlockedGroup> {
    const { core } = this;
    const { clock, detector } = core;
    let left = locks;
    for (const lock of locks) {
      if (clock.monotonic() >= lock.claimableAt) continue;
      const { key, sortKey } = lock.record;
      const request = { key: leaseItemKey(key, sortKey), consistent: false };
      const record = readRecord(await core.get(request, this.lookBudget));
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
    return new GroupUnavailableError(this.#keys, held, retryAfterMs, { waitedMs: this.terms.waitMs });
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

/** Options of {@link acquireAll}: those of `client.acquire`, for all locks alike. */
export type GroupOptions = Omit<WaitOptions, "slot">;

const groupOptionNames: readonly (keyof GroupOptions)[] = [...slotlessOptionNames, "waitMs", "retry"];

/** DynamoDB's limit for one transaction's items. */
const mostKeys = 100;
/** DynamoDB's limit for the size of one transaction's items together. */
const transactionBytes = 4 * 1024 * 1024;
/** Our own share of an item: its key, its owner and every other attribute but the payload. */
const itemBytes = 8 * 1024;

/**
 * Acquires several locks, all of them or none, waiting up to `waitMs` for their holders.
 *
 * 1 transaction when all are free, of 2 write units for each lock; 2 when some have to be taken over from holders
 * whose leases have ended. While it waits it holds none of them, and reads, mostly 1 lock each time. So callers that
 * want the same locks in different orders cannot deadlock. But there is no order: a caller of many busy locks can
 * wait for longer than a caller of one. Transactions that conflict cancel each other. They are repeated with jitter
 * for up to 2 s, even without `waitMs`.
 *
 * `keys` are 1 to 100 different keys. `data` is stored with each of them, at most 4 MB in all. A lease cannot stand
 * for a `slot` here.
 *
 * With `reentrant`, locks that the owner holds reentrantly through this client are shared without a request. Its
 * reentrant locks from elsewhere are taken over with the rest. In that case it does hold some locks while it waits
 * for others. Two owners that do so in opposite order wait for each other until one of them gives up.
 *
 * Rejects with GroupUnavailableError, which names the held locks and their holders; with LeaseLostError when a lease of
 * a reentrant owner has ended during the wait for the others; with InvalidOptionsError before it sends anything; with
 * LeaseServiceError, LeaseTableError and LeaseConfigurationError; with LeaseAbortedError when the signal aborts, which
 * names the first lock. In every case of failure nothing stays held.
 *
 * ```ts
 * await using group = await acquireAll(client, ["stock/7", "order/42"], { waitMs: 5_000, heartbeat: true });
 * await documents.send(
 *   new TransactWriteCommand({
 *     TransactItems: [
 *       ...group.conditionChecks(),
 *       { Put: { TableName: "orders", Item: { id: "42", state: "closed" } } },
 *     ],
 *   }),
 * );
 * ```
 */
export async function acquireAll(
  client: LeaseClient,
  keys: readonly string[],
  options: GroupOptions = {},
): Promise<LeaseGroup> {
  const core = coreOf(client);
  const wanted = checkKeys(keys);
  const { terms, data } = checkGroupOptions(core, options, wanted);
  const { signal } = terms;
  const acquire = (): Promise<LeaseGroup> =>
    whileOpen(core.lifecycle, signal, (cut) => acquireThese(core, wanted, { ...terms, signal: cut }, data));
  const trace = { ...terms, sortKey: leaseSortKey };
  return await untilAborted(wanted[0] ?? "", signal, () =>
    isTraced() ? traced(core, wanted, trace, acquire) : acquire(),
  );
}

/** Shares the locks that a reentrant owner has already, and acquires the others. */
async function acquireThese(
  core: Core,
  wanted: readonly string[],
  terms: AcquisitionTerms,
  data: string | undefined,
): Promise<LeaseGroup> {
  let won: readonly HeldLease[] = [];
  const winThese = async (missing: readonly { readonly key: string }[]): Promise<readonly HeldLease[]> => {
    const keys = missing.map(({ key }) => key);
    won = await winAll(core, keys, terms, data);
    return won;
  };
  const { owner, leaseDurationMs, askedDurationMs, lockAtLeastForMs } = terms;
  const wish = { sortKey: leaseSortKey, owner, slot: undefined, data, askedDurationMs, lockAtLeastForMs };
  const wishes = wanted.map((key) => ({ key, ...wish }));
  for (const key of wanted) core.noteLease({ key, sortKey: leaseSortKey, owner, leaseDurationMs });
  const held = terms.reentrant ? await core.sharing.share(wishes, terms, winThese) : await winThese(wishes);
  for (const lease of held) lease.keepAlive(terms.heartbeatMs);
  const group = new LeaseGroup(held as [HeldLease, ...HeldLease[]], won[0]);
  core.lifecycle.throwIfClosed();
  if (group.held) return group;
  // A lease that the owner had before has ended during the wait for the others.
  await group.release().catch(ifOperational(undefined));
  throw group.signal.reason;
}

/** Acquires several locks together. */
async function winAll(
  core: Core,
  keys: readonly string[],
  terms: AcquisitionTerms,
  data: string | undefined,
): Promise<HeldLease[]> {
  const { clock } = core;
  const { owner, leaseDurationMs, reentrant, waitMs } = terms;
  const startedAt = clock.monotonic();
  const acquisition = new GroupAcquisition(core, { keys, owner, leaseDurationMs, reentrant, data, waitMs });
  const wait = new GroupWait(core, keys, terms);
  let granted: GroupGranted;
  try {
    granted = await wait.grant(acquisition, contentionOf(core, undefined, owner));
  } catch (error) {
    acquisition.abandon();
    throw error;
  }
  const { records, belief, takeovers } = granted;
  const waitedMs = clock.monotonic() - startedAt;
  return records.map((record) => {
    const takeover = takeovers.get(record.key);
    const form = new LockForm(record.key, record.sortKey);
    const one = { record, belief, takeovers: takeover === undefined ? [] : [takeover] };
    return begin(core, form, { ...terms, slot: undefined }, one, waitedMs);
  });
}

function checkKeys(keys: unknown): readonly string[] {
  const allowed = `an array of 1 to ${mostKeys} different keys`;
  const wanted = readable("keys", keys, () => {
    check(Array.isArray(keys), "keys", keys, allowed);
    // A copy: a hole in the array counts as a missing key.
    return [...keys].map(checkKey);
  });
  const { length } = wanted;
  const isInRange = length >= 1 && length <= mostKeys;
  if (!isInRange) throw new InvalidOptionsError("keys", length, allowed, { finding: `are ${length}` });
  const twice = wanted.find((key, index) => wanted.indexOf(key) !== index);
  if (twice === undefined) return wanted;
  const finding = `name ${JSON.stringify(twice)} more than once`;
  throw new InvalidOptionsError("keys", twice, allowed, { finding, advice: "leave the repetition out" });
}

function checkGroupOptions(
  { owner, times }: Core,
  options: GroupOptions,
  keys: readonly string[],
): { readonly terms: AcquisitionTerms; readonly data: string | undefined } {
  const { slot, ...given }: WaitOptions = checkKnown(options, [...groupOptionNames, "slot"], "options");
  check(slot === undefined, "slot", slot, "nothing: only a single lease can have it");
  const terms = checkAcquireOptions(given, true, owner, times);
  const data = checkData(terms.data);
  const bytes = keys.length * (itemBytes + (data === undefined ? 0 : utf8Bytes(data)));
  const allowed = `at most ${limits.dataBytes} bytes for one lock, and ${transactionBytes} for all with ${itemBytes} of our own each`;
  if (bytes > transactionBytes) {
    const finding = `needs ${bytes} bytes for ${keys.length} locks`;
    throw new InvalidOptionsError("data", bytes, allowed, { finding, advice: "store it elsewhere" });
  }
  return { terms, data };
}
