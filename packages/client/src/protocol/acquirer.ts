import { Acquisition, type AcquisitionRequest } from "./acquisition.ts";
import { announceGrant, contentionOf } from "./announcement.ts";
import { type Approach, straight } from "./approach.ts";
import type { ProtocolContext } from "./context.ts";
import type { ExpiryDetector } from "./expiry-detector.ts";
import { Heartbeat } from "./heartbeat.ts";
import { HeldLease, type HeldLeaseTerms } from "./held-lease.ts";
import { Reentrance } from "./reentrance.ts";
import type { Patience } from "./waiting.ts";

/** One call to acquire, validated. */
export interface AcquireCall extends AcquisitionRequest, Patience {
  readonly heartbeatMs: number | undefined;
  readonly lockAtLeastForMs: number;
}

/** Turns calls to acquire into tenancies, and keeps what they share: sightings, heartbeats, reentrant leases. */
export class Acquirer {
  readonly #context: ProtocolContext;
  readonly #detector: ExpiryDetector;
  readonly #heartbeat: Heartbeat;
  /** Which of its leases reentrant owners may be let into. */
  readonly reentrance: Reentrance;

  constructor(context: ProtocolContext, detector: ExpiryDetector) {
    this.#context = context;
    this.#detector = detector;
    this.#heartbeat = new Heartbeat(context);
    this.reentrance = new Reentrance(context.clock);
  }

  /**
   * Wins the lock, or shares the same owner's hold on it. Rejects with ClientClosedError when the client is closed
   * meanwhile. In every case of failure nothing stays held.
   */
  async acquire(
    call: AcquireCall,
    approachOf: (call: AcquireCall) => Approach = (own) => straight(this.#context, this.#detector, own),
  ): Promise<HeldLease> {
    this.#context.noteLease(call);
    return await this.#context.lifecycle.run(call.signal, async (signal) => {
      const own = { ...call, signal };
      const win = (): Promise<HeldLease> => this.#win(own, approachOf(own));
      const tenancy = own.resumes ? await this.reentrance.enter(own, own, win) : await win();
      return this.keepAlive(tenancy, own.heartbeatMs);
    });
  }

  /** Renews a tenancy in the background, where an interval is given; a shared one may be shorter than its caller asked. */
  keepAlive(tenancy: HeldLease, heartbeatMs: number | undefined): HeldLease {
    if (heartbeatMs === undefined || tenancy.deadline.lost !== undefined) return tenancy;
    const { leaseDurationMs } = tenancy.terms;
    this.#heartbeat.start(tenancy, heartbeatMs < leaseDurationMs / 2 ? heartbeatMs : leaseDurationMs / 3);
    return tenancy;
  }

  /**
   * Carries on a tenancy that another process won. One that no renewal has confirmed yet is held only once one has, for
   * nothing else would ever end it here.
   */
  adopt(terms: HeldLeaseTerms, heartbeatMs: number | undefined): HeldLease {
    const { clock, clockSkewMs, lifecycle, hold } = this.#context;
    lifecycle.throwIfClosed();
    const { record, leaseDurationMs } = terms;
    const since = clock.moment();
    // Where clocks are not to be compared, another's expiry says nothing: a renewal has to show that it stands.
    const leftMs = clock.timeUntil(record.expiresAt) - clockSkewMs;
    const belief = leftMs > 0 ? { since, forMs: Math.min(leftMs, leaseDurationMs) } : undefined;
    const tenancy = new HeldLease(this.#context, terms, belief);
    if (belief !== undefined || heartbeatMs !== undefined) hold(tenancy);
    return this.keepAlive(tenancy, heartbeatMs);
  }

  async #win(call: AcquireCall, { context, detector, grant }: Approach): Promise<HeldLease> {
    const { clock } = context;
    const startedAt = clock.monotonic();
    const acquisition = new Acquisition(context, detector, call);
    const granted = await grant(acquisition, contentionOf(context, call.owner)).catch((error: unknown) => {
      acquisition.abandon();
      throw error;
    });
    const { record, belief, takeover } = granted;
    const closedUntil = call.lockAtLeastForMs > 0 ? record.acquiredAt + call.lockAtLeastForMs : undefined;
    const { leaseDurationMs, slot } = call;
    const terms = { record, leaseDurationMs, heldSince: belief.since.monotonic, closedUntil, slot };
    const tenancy = new HeldLease(context, terms, belief);
    context.hold(tenancy);
    announceGrant(context, record, takeover, clock.monotonic() - startedAt);
    return tenancy;
  }
}
