import type { LeaseRecord } from "../record.ts";
import type { Acquisition, AcquisitionRequest, Granted } from "./acquisition.ts";
import type { ProtocolContext } from "./context.ts";
import type { ExpiryDetector } from "./expiry-detector.ts";
import { type Patience, Waiting } from "./waiting.ts";

/** How one call gets to its lock: what its lease's writes go through, and how it waits. */
export interface Approach {
  /** Also what the lease is renewed and released with. */
  readonly context: ProtocolContext;
  readonly detector: ExpiryDetector;
  /**
   * Gives the grant. Rejects with LeaseUnavailableError, with the service's error if that is what the last attempt ended
   * with, or with the signal's reason; the caller abandons the acquisition then.
   */
  grant(acquisition: Acquisition, onContended: (record: LeaseRecord) => void): Promise<Granted>;
}

/** Straight at the lock: whoever comes first after it was let go has it. */
export function straight(
  context: ProtocolContext,
  detector: ExpiryDetector,
  call: AcquisitionRequest & Patience,
): Approach {
  return {
    context,
    detector,
    grant: (acquisition, onContended) =>
      new Waiting(context, detector, acquisition, call, call).grant(onContended),
  };
}
