/**
 * How a lease lies in its item: the writes that move it on, and what an item says of it. The protocol is the same for
 * all forms: whatever form a lease has, its writes prove it by its token and its fencing token, and a write that takes
 * the place of an expired lease is refused if that lease has changed since it was judged.
 */
import { LeaseUnavailableError } from "../errors/errors.ts";
import type { TakeoverReason } from "../events.ts";
import type { LeaseRecord } from "../record.ts";
import type { Cancellation, Grant, LockEnding, LockRenewal } from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import type { Item } from "../store.ts";
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

/** A lease whose time is over, or which its own owner shares, and why it may be taken. */
export interface Takeover {
  readonly reason: TakeoverReason;
  readonly from: LeaseRecord;
}

/** What an item promises a caller. */
export interface Prospect {
  /** The lease whose end lets the caller in; undefined where none keeps it out. */
  readonly blocker: LeaseRecord | undefined;
  /** In how many milliseconds an attempt can succeed, if nothing changes; 0 for at once. */
  readonly claimableInMs: number;
  /** The leases that the next attempt takes the place of; none while it cannot succeed. */
  readonly takeovers: readonly Takeover[];
}

/** One way for leases to lie in an item, as far as their holder needs it. */
export interface HeldForm {
  readonly key: string;
  readonly sortKey: string;
  /** Prolongs it; a renewal that arrives late does not shorten a newer one. Wants the item. */
  renew(renewal: Renewal): Write;
  /** Lets it go, or starts its cooldown. The fencing token survives. */
  release(ending: Ending): Write;
  /** A token's own lease in an item; undefined where it is not there. @default - by `leasesIn` */
  leaseIn?(item: Item | undefined, token: string): LeaseRecord | undefined;
  /** Every lease that an item shows, the oldest first, those that have expired and cooldowns included. Throws LeaseItemError. */
  leasesIn(item: Item | undefined): readonly LeaseRecord[];
  /** A check that holds only while this very lease stands. */
  proof(lease: LeaseRecord): Write;
  /** Called when the service has confirmed that the lease was won or prolonged, with the item as it is then. */
  confirmed?(item: Item | undefined): void;
  /** Called when the service has confirmed that the lease was let go. */
  released?(): void;
}

/** The same, as far as callers that want a lease need it too. */
export interface LeaseForm extends HeldForm {
  /** What a reentrant owner's leases of one item have to have in common to be shared. @default - nothing */
  readonly shareKey?: string;
  /** What the caller asks for, by the form's own word, where several leases may stand side by side. */
  readonly shape?: string;
  /**
   * Takes a lease: where there is room, or in the place of `passed`, which are as they were judged. Refused to a token that was
   * revoked. Wants the item.
   */
  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write;
  /**
   * Takes back an acquisition whose write may have landed, may be under way or may be lost: a lease that is there goes, and
   * the token is revoked, so that a late copy is refused. Refused where another's lease is in the way of that.
   */
  cancel(cancellation: Cancellation): Write;
  /**
   * Revokes a token whose lease is not there, beside leases of others, which stay as they are; undefined where `cancel`
   * has done what there is to do. `passes`: whether one of its writes was to take another lease's place. Wants the item.
   */
  revoke(cancellation: Cancellation, passes: boolean): Write | undefined;
  /**
   * Removes what an acquisition has to pass, where that is more than it can take along; it is not made when one of these
   * writes is refused. @default - none
   */
  clear?(passed: readonly LeaseRecord[]): readonly Write[];
  /** How a refusal tells what is held. @default - the lock of that key */
  describe?(blocker: LeaseRecord | undefined): string;
  /** What an item promises a caller. To be called once for each answer, for the detector counts from the first sight. */
  judge(
    item: Item | undefined,
    caller: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Prospect;
  /**
   * Whether leases of these shapes could be taken at once beside those that stand; expired ones make room.
   * @default - a lease excludes every other
   */
  mayJoin?(item: Item | undefined, shapes: readonly string[], detector: ExpiryDetector): boolean;
}

/** The error of a call whose time is over: what is in its way, and when to try again. */
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

/** A token's own lease in an item; undefined where it is not there. */
export function leaseOf(form: HeldForm, item: Item | undefined, token: string): LeaseRecord | undefined {
  if (form.leaseIn !== undefined) return form.leaseIn(item, token);
  return form.leasesIn(item).find((lease) => lease.token === token);
}
