import { channel } from "node:diagnostics_channel";
import type { LeaseLostReason } from "./errors.ts";

/** What every event about one lease says. */
interface LeaseEventSubject {
  readonly key: string;
  /** The lease's sort key under its key: `lease` for a lock; see the page on the table for the others. */
  readonly place: string;
  readonly owner: string;
  readonly fencingToken: number;
}

/** How a takeover was justified. */
export type TakeoverGround =
  /** The record had expired by a wall clock that the service's Date header vouched for. */
  | "wallClock"
  /** The record had stayed unchanged for a whole lease on this process's monotonic clock. */
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
  readonly ground: TakeoverGround;
  readonly from: { readonly owner: string; readonly fencingToken: number; readonly expiresAt: number };
}

/** Somebody else holds the lock; emitted once for each lease that a call meets. */
export interface ContendedEvent {
  readonly type: "contended";
  readonly key: string;
  /** The sort key of the lease that is in the way. */
  readonly place: string;
  readonly owner: string;
  readonly holder: string;
  readonly expiresAt: number;
  /** Whether the holder has released it, and it stays closed (`lockAtLeastForMs`). */
  readonly closed: boolean;
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

/** The holder let the lock go. */
export interface ReleasedEvent extends LeaseEventSubject {
  readonly type: "released";
  readonly heldMs: number;
  /** False when the service's answer never came, or when the lock was no longer this lease's to release. */
  readonly confirmed: boolean;
}

/** This machine's clock and the service's are further apart than `clockSkewMs`; at most one event a minute. */
export interface SkewEvent {
  readonly type: "skew";
  /** The service's clock less ours lies between these. */
  readonly offsetMinMs: number;
  readonly offsetMaxMs: number;
  readonly clockSkewMs: number;
}

/** Everything that a client tells about its leases. No event carries a token or a payload. */
export type LeaseEvent =
  | AcquiredEvent
  | TakeoverEvent
  | ContendedEvent
  | RenewedEvent
  | LostEvent
  | ReleasedEvent
  | SkewEvent;

/** Receives every event of one client. */
export type LeaseEventListener = (event: LeaseEvent) => void;

const channels = {
  acquired: channel("leasehold:acquired"),
  takeover: channel("leasehold:takeover"),
  contended: channel("leasehold:contended"),
  renewed: channel("leasehold:renewed"),
  lost: channel("leasehold:lost"),
  released: channel("leasehold:released"),
  skew: channel("leasehold:skew"),
} as const;

/**
 * Publishes an event on its diagnostics channel (`leasehold:` and the type) and to the client's listener.
 *
 * A listener that throws cannot disturb the protocol: its error surfaces as an uncaught exception, which is what
 * diagnostics channels do with their subscribers' errors.
 */
export function publish(event: LeaseEvent, listener: LeaseEventListener | undefined): void {
  channels[event.type].publish(event);
  try {
    listener?.(event);
  } catch (error) {
    process.nextTick(() => {
      throw error;
    });
  }
}
