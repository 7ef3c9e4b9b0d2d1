import { randomUUID } from "node:crypto";
import { asError, isOperational } from "../errors/operational.ts";
import type { LeaseErrorEvent, LeaseEvent, ShortLeaseEvent } from "../events.ts";
import type { TimedStore } from "../store/timed-store.ts";
import type { ServiceClock } from "../time/service-clock.ts";
import type { ExpiryDetector } from "./expiry-detector.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { RequestGate } from "./request-gate.ts";

/** The source of tokens and jitter. */
export interface Randomness {
  /** A new unique token. */
  token(): string;
  /** A number from 0 (included) to 1 (excluded). */
  fraction(): number;
}

/** The platform's own random source. */
export const systemRandomness: Randomness = {
  // Uncached: two clones of one snapshot would draw the same tokens from what the first had drawn in advance.
  token: () => randomUUID({ disableEntropyCache: true }),
  fraction: () => Math.random(),
};

/** What every part of the protocol uses; one for each client. */
export interface ProtocolContext {
  /** The lease table; each of its calls ends in time. */
  readonly table: TimedStore;
  readonly clock: ServiceClock;
  /** Decides which leases have expired. */
  readonly detector: ExpiryDetector;
  /** Sends renewals and attempts to acquire. */
  readonly gate: RequestGate;
  readonly randomness: Randomness;
  readonly clockSkewMs: number;
  readonly retentionMs: number;
  readonly publish: (event: LeaseEvent) => void;
  /** Takes note of the lease that a caller asks for. */
  readonly noteLease: (lease: Omit<ShortLeaseEvent, "type">) => void;
  /** What is under way, until the client is closed. */
  readonly lifecycle: Lifecycle;
  /** Takes note of a lease that the client holds from now on. */
  readonly hold: (lease: HeldLease) => void;
}

/** Ends a promise that nobody waits for: ignores failures of the service, and publishes every other error. */
export function inBackground(
  { publish }: Pick<ProtocolContext, "publish">,
  work: Pick<LeaseErrorEvent, "key" | "sortKey" | "owner" | "operation">,
): (error: unknown) => void {
  const { key, sortKey, owner, operation } = work;
  return (error) => {
    if (!isOperational(error))
      publish({ type: "error", key, sortKey, owner, operation, error: asError(error) });
  };
}
