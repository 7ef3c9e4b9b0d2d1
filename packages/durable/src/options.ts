import { type HoldOptions, InvalidOptionsError, type Lease, type LeaseClient } from "@leasehold/client";
import { checkDuration, checkKnown } from "@leasehold/client/internal";
import { DurableLock } from "./durable-lock.ts";

/** Options of `withDurableLease`. They have to be the same in every replay of the execution. */
export interface DurableLeaseOptions
  extends Pick<HoldOptions, "leaseDurationMs" | "data" | "slot" | "lockAtLeastForMs"> {
  /**
   * How long the lease lasts unless it is renewed. The execution wakes every third of it for a renewal. A long lease
   * costs little; after an execution was stopped, the lock is held for up to this time. From 3,000 ms to 366 days.
   * @default 900000 (15 minutes)
   */
  readonly leaseDurationMs?: number;
  /**
   * How long to wait for a held lock, in milliseconds. The execution is suspended meanwhile. From 0 to 366 days.
   * @default 0
   */
  readonly waitMs?: number;
}

/** The lease as the work sees it. */
export type DurableLease = Pick<
  Lease,
  | "key"
  | "owner"
  | "token"
  | "fencingToken"
  | "acquiredAt"
  | "slot"
  | "signal"
  | "held"
  | "remainingMs"
  | "fence"
  | "conditionCheck"
>;

const defaultLeaseMs = 900_000;
/** A durable execution waits in whole seconds, and the lease is renewed every third of its duration. */
const shortestLeaseMs = 3_000;

const durableOptionNames = ["leaseDurationMs", "data", "slot", "lockAtLeastForMs", "waitMs"] as const;

/** A lock, and how long to wait for it. */
export interface DurableTerms {
  readonly lock: DurableLock;
  readonly waitMs: number;
}

/** Validates the options. Throws InvalidOptionsError. */
export function readDurableOptions(
  client: LeaseClient,
  key: string,
  options: DurableLeaseOptions,
  isWorking: () => boolean,
): DurableTerms {
  const given = checkKnown(options, durableOptionNames, "options");
  const { waitMs = 0, leaseDurationMs = defaultLeaseMs, ...others } = given;
  checkDuration("waitMs", waitMs, 0);
  checkDuration("leaseDurationMs", leaseDurationMs, 1);
  if (leaseDurationMs < shortestLeaseMs) {
    const allowed = `at least ${shortestLeaseMs} milliseconds, for a durable execution waits in whole seconds`;
    throw new InvalidOptionsError("leaseDurationMs", leaseDurationMs, allowed);
  }
  return { lock: new DurableLock(client, key, { ...others, leaseDurationMs, isWorking }), waitMs };
}
