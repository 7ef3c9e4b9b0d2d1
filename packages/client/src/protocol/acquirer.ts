import { Acquisition, type AcquisitionRequest } from "./acquisition.ts";
import { announceGrant, contentionOf } from "./announcement.ts";
import { type Approach, straight } from "./approach.ts";
import type { ProtocolContext } from "./context.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Judge } from "./judge.ts";
import { Reentrance } from "./reentrance.ts";
import { Tenancy, type TenancyTerms } from "./tenancy.ts";
import type { Patience } from "./waiting.ts";

/** One call to acquire, validated. */
export interface AcquireCall extends AcquisitionRequest, Patience {
  readonly heartbeatMs: number | undefined;
  readonly lockAtLeastForMs: number;
}

/** Turns calls to acquire into tenancies, and keeps what they share: sightings, heartbeats, reentrant leases. */
export class Acquirer {
  readonly #context: ProtocolContext;
  readonly #judge: Judge;
  readonly #heartbeat: Heartbeat;
  /** Which of its leases reentrant owners may be let into. */
  readonly reentrance: Reentrance;

  constructor(context: ProtocolContext, judge: Judge) {
    this.#context = context;
    this.#judge = judge;
    this.#heartbeat = new Heartbeat(context);
    this.reentrance = new Reentrance(context.clock);
  }

  /** Wins the lock, or shares the same owner's hold on it. In every case of failure nothing stays held. */
  async acquire(
    call: AcquireCall,
    approach: Approach = straight(this.#context, this.#judge, call),
  ): Promise<Tenancy> {
    const tenancy = call.reentrant
      ? await this.reentrance.enter(call, call, () => this.#win(call, approach))
      : await this.#win(call, approach);
    return this.keepAlive(tenancy, call.heartbeatMs);
  }

  /** Renews a tenancy in the background, where an interval is given; a shared one may be shorter than its caller asked. */
  keepAlive(tenancy: Tenancy, heartbeatMs: number | undefined): Tenancy {
    if (heartbeatMs === undefined || tenancy.validity.lost !== undefined) return tenancy;
    const { leaseDurationMs } = tenancy.terms;
    this.#heartbeat.start(tenancy, heartbeatMs < leaseDurationMs / 2 ? heartbeatMs : leaseDurationMs / 3);
    return tenancy;
  }

  /** Carries on a tenancy that another process won. */
  adopt(terms: TenancyTerms, heartbeatMs: number | undefined): Tenancy {
    const { clock, clockSkewMs } = this.#context;
    const { record, leaseDurationMs } = terms;
    const now = clock.now();
    const remainingMs = Math.min(record.expiresAt - now, leaseDurationMs);
    // Where clocks are not to be compared, another's expiry says nothing: a renewal has to show that it stands.
    const isComparable = Number.isFinite(clockSkewMs);
    const elapsedMs = leaseDurationMs - remainingMs;
    const since =
      remainingMs > 0 && isComparable
        ? { monotonic: clock.monotonic() - elapsedMs, wall: now - elapsedMs }
        : undefined;
    return this.keepAlive(new Tenancy(this.#context, terms, since), heartbeatMs);
  }

  async #win(call: AcquireCall, { context, judge, grant }: Approach): Promise<Tenancy> {
    const { clock } = context;
    const startedAt = clock.monotonic();
    const acquisition = new Acquisition(context, judge, call);
    const granted = await grant(acquisition, contentionOf(context, call.owner)).catch((error: unknown) => {
      acquisition.abandon();
      throw error;
    });
    const { record, since, takeover } = granted;
    const closedUntil = call.lockAtLeastForMs > 0 ? record.acquiredAt + call.lockAtLeastForMs : undefined;
    const { leaseDurationMs, slot } = call;
    const terms = { record, leaseDurationMs, closedUntil, slot };
    const tenancy = new Tenancy(context, terms, since);
    announceGrant(context, record, takeover, clock.monotonic() - startedAt);
    return tenancy;
  }
}
