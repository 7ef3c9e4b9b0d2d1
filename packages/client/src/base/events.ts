import { channel, hasSubscribers } from "node:diagnostics_channel";
import type { LeaseErrorCode, LeaseLostReason } from "./errors.ts";

/** The subject of every event about one lease. */
interface LeaseEventSubject {
  readonly key: string;
  /** The lease's sort key under its key: `lease` for a lock; see the page on the table for the others. */
  readonly sortKey: string;
  readonly owner: string;
  readonly fencingToken: number;
}

/** How a takeover was justified. */
export type TakeoverReason =
  /** The record had expired by the service's clock, as its answers tell it, and the allowance was over. */
  | "serviceClock"
  /** The record had stayed unchanged for a whole lease, and a little more, on this process's monotonic clock. */
  | "observation"
  /** The holder has the same owner, and the caller asked for a reentrant lease. */
  | "sameOwner";

/** The lock was taken. */
export interface AcquiredEvent extends LeaseEventSubject {
  readonly type: "acquired";
  /** From the call to the grant. */
  readonly waitedMs: number;
  readonly expiresAt: number;
}

/** The lock was taken from a holder that had not released it; an `acquired` event follows. */
export interface TakeoverEvent extends LeaseEventSubject {
  readonly type: "takeover";
  readonly reason: TakeoverReason;
  readonly from: { readonly owner: string; readonly fencingToken: number; readonly expiresAt: number };
}

/** Another caller holds the lock; emitted once for each lease that a call meets. */
export interface ContendedEvent {
  readonly type: "contended";
  readonly key: string;
  /** The sort key of the blocking lease. */
  readonly sortKey: string;
  readonly owner: string;
  readonly holder: string;
  readonly expiresAt: number;
  /** Whether the holder has released it, and it is in its cooldown (`lockAtLeastForMs`). */
  readonly inCooldown: boolean;
}

/** A renewal was confirmed. */
export interface RenewedEvent extends LeaseEventSubject {
  readonly type: "renewed";
  readonly expiresAt: number;
}

/** The lease ended before it was released. */
export interface LostEvent extends LeaseEventSubject {
  readonly type: "lost";
  readonly reason: LeaseLostReason;
  readonly heldMs: number;
}

/** The holder has released the lock. */
export interface ReleasedEvent extends LeaseEventSubject {
  readonly type: "released";
  readonly heldMs: number;
  /** False when the service did not answer, or when this lease did not hold the lock any more. */
  readonly confirmed: boolean;
}

/** A slot's work is done, but the service has not recorded it: the slot stays open, and its work will run again. */
export interface CompletionFailedEvent extends LeaseEventSubject {
  readonly type: "completionFailed";
  readonly slot: string;
  /** Of the error that the last try ended with. */
  readonly code: LeaseErrorCode;
}

/**
 * This machine's wall clock and the service's are further apart than `clockSkewMs`; at most one event a minute. No
 * lease depends on this machine's clock: the times in the table are the service's.
 */
export interface SkewEvent {
  readonly type: "skew";
  /** The service's clock minus this machine's clock lies between these two. */
  readonly offsetMinMs: number;
  readonly offsetMaxMs: number;
  readonly clockSkewMs: number;
}

/**
 * An answer has come without a usable Date header, and none before it had one; once for each client. A proxy may remove
 * the header. Safety is not affected: other clients judge this client's leases by observation alone, and so does this
 * client with theirs. But only a client that has observed a dead holder's lease for its whole duration takes it over. A
 * process that lives for one try never does.
 */
export interface TimeUnknownEvent {
  readonly type: "timeUnknown";
}

/**
 * A background request, or a request at the end of a call, failed with an error that is neither the service's nor the
 * network's. The cause is a mistake in the program, or in its own store or clock.
 *
 * After a failed heartbeat, a `lost` event with the reason `failed` follows.
 */
export interface LeaseErrorEvent {
  readonly type: "error";
  readonly key: string;
  /** The sort key of the lease. */
  readonly sortKey: string;
  readonly owner: string;
  /**
   * - `renew`: a heartbeat, or the intent of a writer that waits.
   * - `release`: a release, whose caller may have an error of its own to reject with.
   * - `cancel`: taking back a write whose answer was lost, after the call that sent it has given up.
   * - `leaveQueue`: giving up a ticket in a queue.
   */
  readonly operation: "renew" | "release" | "cancel" | "leaveQueue";
  readonly error: Error;
}

/**
 * A caller has asked for a lease of less than a second, and a network lies between the client and the table; once for
 * each client. One slow answer takes longer than such a lease. A common cause is a duration given in seconds.
 */
export interface ShortLeaseEvent {
  readonly type: "shortLease";
  readonly key: string;
  /** The lease's sort key under its key. */
  readonly sortKey: string;
  readonly owner: string;
  readonly leaseDurationMs: number;
}

/**
 * A call that reads many items (`list`, `inspectAll`, the runs of a job) has left out an unreadable item. Another
 * program or a person has written it.
 */
export interface UnreadableEvent {
  readonly type: "unreadable";
  readonly key: string;
  /** The item's sort key. */
  readonly sortKey: string;
  /** The attribute that cannot be read. */
  readonly attribute: string;
  /** Says what the attribute is, and what is allowed. */
  readonly message: string;
}

/** Every event of a client about its leases. No event carries a token or a payload. */
export type LeaseEvent =
  | AcquiredEvent
  | TakeoverEvent
  | ContendedEvent
  | RenewedEvent
  | LostEvent
  | ReleasedEvent
  | CompletionFailedEvent
  | SkewEvent
  | TimeUnknownEvent
  | LeaseErrorEvent
  | ShortLeaseEvent
  | UnreadableEvent;

/** Receives every event of one client. */
export type LeaseEventListener = (event: LeaseEvent) => void;

/** The types of all events. An event's diagnostics channel is `leasehold:` and its type. */
export const leaseEventTypes: readonly LeaseEvent["type"][] = [
  "acquired",
  "takeover",
  "contended",
  "renewed",
  "lost",
  "released",
  "completionFailed",
  "skew",
  "timeUnknown",
  "error",
  "shortLease",
  "unreadable",
];

/** Publishes an event on its diagnostics channel (`leasehold:` and the type) and to the client's listeners. */
export function publish(
  event: LeaseEvent,
  listeners: LeaseEventListener | readonly LeaseEventListener[] | undefined,
): void {
  publishOn(`leasehold:${event.type}`, event, listeners);
}

/**
 * Publishes an event on a diagnostics channel and to listeners, side by side.
 *
 * A listener that throws cannot disturb the protocol, nor the other listeners: its error surfaces as an uncaught
 * exception, which is what diagnostics channels do with their subscribers' errors.
 */
export function publishOn<Event>(
  name: string,
  event: Event,
  listeners: ((event: Event) => void) | readonly ((event: Event) => void)[] = [],
): void {
  if (hasSubscribers(name)) channel(name).publish(event);
  for (const listener of typeof listeners === "function" ? [listeners] : listeners) {
    try {
      listener(event);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
