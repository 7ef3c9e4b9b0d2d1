/**
 * The layout of a lease in its item: the writes that change it, and how an item is read. The protocol is the same for
 * all forms. The writes of every form prove the lease by its token and its fencing token. A write that takes over an
 * expired lease is refused if that lease has changed since `judge`.
 */
import { LeaseUnavailableError } from "../base/errors.ts";
import type { LeaseEvent, TakeoverReason } from "../base/events.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import type { Item, UpdateResult } from "../base/store.ts";
import type { CallBudget } from "../base/timed-call.ts";
import type { Cancellation, Grant, LockEnding, LockRenewal } from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import type { ExpiryDetector } from "./expiry-detector.ts";

/** What a renewal writes. */
export interface Renewal extends LockRenewal {
  /** The lease as its holder saw it last. */
  readonly shown: LeaseRecord;
}

/** What the end of a lease writes. */
export interface Ending extends LockEnding {
  /** The lease as its holder saw it last. */
  readonly shown: LeaseRecord;
}

/** A lease that may be taken over, and why: it has expired, or its own owner asks for it. */
export interface Takeover {
  readonly reason: TakeoverReason;
  readonly from: LeaseRecord;
}

/** When a lease can be acquired, as its item shows it to one caller. */
export interface Availability {
  /** The lease that keeps the caller out; undefined if none does. */
  readonly blocker: LeaseRecord | undefined;
  /** Milliseconds until an attempt can succeed if nothing changes; 0 for now. */
  readonly claimableInMs: number;
  /** The leases that the next attempt takes over; none while it cannot succeed. */
  readonly takeovers: readonly Takeover[];
}

/** Nothing is in the caller's way. */
export const unblocked: Availability = { blocker: undefined, claimableInMs: 0, takeovers: [] };

/** The layout of a held lease, and what its primitive wants otherwise than the lock. */
export interface HeldForm {
  readonly key: string;
  readonly sortKey: string;
  /** How long DynamoDB's ttl keeps the item after the lease's end. @default - the client's `retentionMs` */
  readonly retentionMs?: number;
  /**
   * Whether several leases share the item. Then a lease that was adopted by a handle is read before its first write: the
   * write repeats what the lease takes of the item, and the item's counters have to stay equal to that.
   * @default false
   */
  readonly isShared?: boolean;
  /** False for a lease that belongs to no process: `held()` does not list it, and `close()` does not release it. @default true */
  readonly isListed?: boolean;
  /** Whether the next renewal writes what its holder has said since the last one was sent. @default false */
  readonly hasReport?: boolean;
  /** Whether an event about the lease is kept from the listeners. @default - none is */
  mutes?(event: LeaseEvent): boolean;
  /** Ends the lease in place of `release`, by the primitive's own requests. */
  endBy?(): Promise<Ended>;
  /** Prolongs the lease. A renewal that arrives late does not shorten a newer one. Needs the item. */
  renew(renewal: Renewal): Write;
  /** Releases the lease, or starts its cooldown. The fencing token survives. */
  release(ending: Ending): Write;
  /** A token's own lease in an item; undefined if the item does not have it. @default - by `leasesIn` */
  leaseIn?(item: Item | undefined, token: string): LeaseRecord | undefined;
  /** All leases of an item, the oldest first, including expired leases and cooldowns. Throws LeaseItemError. */
  leasesIn(item: Item | undefined): readonly LeaseRecord[];
  /** A condition that holds only while this lease is in the table. */
  proof(lease: LeaseRecord): Write;
  /** Called when the service has confirmed that the lease was won or prolonged, with the item of that answer. */
  confirmed?(item: Item | undefined): void;
  /**
   * Whether an item shows that this very lease was released, although it names another token as the last one that was.
   * @default - an item does not show it
   */
  showsRelease?(item: Item | undefined): boolean;
  /** Called when the service has confirmed the release. */
  released?(): void;
}

/** The outcome of a release. */
export interface Ended {
  /** Whether this token still held the lock; undefined if answers were lost and others have had the lock since. */
  readonly wasOurs: boolean | undefined;
  /** Whether the slot is recorded as done, or will be when the last handle ends. */
  readonly isRecorded: boolean;
}

/** The layout of a lease that can be acquired. */
export interface LeaseForm extends HeldForm {
  /**
   * What the owner's reentrant leases of one item must have in common to be shared in this process; false if they are
   * never shared.
   * @default - nothing
   */
  readonly shareKey?: string | false;
  /** What the caller asks for, as an opaque label such as `permit:2`; only if several leases may share an item. */
  readonly shape?: string;
  /**
   * Takes a lease if there is room, or takes over the `passed` leases if they are unchanged since `judge`. Refused to a
   * revoked token. Needs the item.
   */
  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write;
  /**
   * Acquires the lease in place of the write of `acquire` alone, by the primitive's own requests. Gives what that write
   * would give: the item that it has left, or that has refused it.
   */
  acquireBy?(grant: Grant, passed: readonly LeaseRecord[], budget: CallBudget): Promise<UpdateResult>;
  /**
   * Takes back an acquisition whose write may have landed, may be under way or may be lost. It removes the lease if the
   * item has it, and revokes the token, so that a late copy is refused. Refused if another caller's lease is in the
   * way.
   */
  cancel(cancellation: Cancellation): Write;
  /**
   * Revokes a token that has no lease, beside leases of others, which stay unchanged; undefined if `cancel` has done
   * everything. `passes`: whether one of the token's writes was to take over another lease. Needs the item.
   */
  revoke(cancellation: Cancellation, passes: boolean): Write | undefined;
  /**
   * Removes the leases that an acquisition has to pass if it cannot remove them all itself. The acquisition is not sent
   * if one of these writes is refused.
   * @default - none
   */
  clear?(passed: readonly LeaseRecord[]): readonly Write[];
  /** Whether a takeover from this lease is told: an intent to write holds nothing. @default true */
  announces?(from: LeaseRecord): boolean;
  /** How a refusal names the held lease. @default - the lock of that key */
  describe?(blocker: LeaseRecord | undefined): string;
  /**
   * When the lease can be acquired, as the item shows it to a caller. Call it once for each answer: the detector counts
   * from the first observation.
   */
  judge(
    item: Item | undefined,
    caller: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Availability;
  /**
   * Whether leases of these shapes could be taken now beside the unexpired leases of the item.
   * @default - a lease excludes every other
   */
  mayJoin?(item: Item | undefined, shapes: readonly string[], detector: ExpiryDetector): boolean;
}

/** The error at the end of a call's time: who is in its way, and when to try again. */
export function refusalOf(
  form: LeaseForm,
  call: { readonly owner: string; readonly reentrant: boolean; readonly waitMs: number },
  blocker: LeaseRecord | undefined,
  retryAfterMs: number,
  waiting = 0,
): LeaseUnavailableError {
  const isOwn = blocker?.owner === call.owner && !blocker.inCooldown && !call.reentrant;
  const what = form.describe?.(blocker);
  const details = { waitedMs: call.waitMs, waiting, isOwn, ...(what === undefined ? {} : { what }) };
  return new LeaseUnavailableError(form.key, blocker, retryAfterMs, details);
}

/** A token's own lease in an item; undefined if the item does not have it. */
export function leaseOf(form: HeldForm, item: Item | undefined, token: string): LeaseRecord | undefined {
  if (form.leaseIn !== undefined) return form.leaseIn(item, token);
  return form.leasesIn(item).find((lease) => lease.token === token);
}
