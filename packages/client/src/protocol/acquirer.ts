import type { LeaseRecord } from "../record.ts";
import { Acquisition, type AcquisitionRequest, type Granted } from "./acquisition.ts";
import type { ProtocolContext } from "./context.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Judge } from "./judge.ts";
import { Reentrance } from "./reentrance.ts";
import { Tenancy, type TenancyTerms } from "./tenancy.ts";
import { type Patience, Waiting } from "./waiting.ts";

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
  readonly #reentrance = new Reentrance();

  constructor(context: ProtocolContext) {
    this.#context = context;
    this.#judge = new Judge(context.clock, context.clockSkewMs);
    this.#heartbeat = new Heartbeat(context);
  }

  /** Wins the lock, or shares the same owner's hold on it. In every case of failure nothing stays held. */
  acquire(call: AcquireCall): Promise<Tenancy> {
    if (!call.reentrant) return this.#win(call);
    return this.#reentrance.enter(call, () => this.#win(call));
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
    return this.#keep(new Tenancy(this.#context, terms, since), heartbeatMs);
  }

  async #win(call: AcquireCall): Promise<Tenancy> {
    const { clock } = this.#context;
    const startedAt = clock.monotonic();
    const acquisition = new Acquisition(this.#context, this.#judge, call);
    const granted = await this.#grant(acquisition, call);
    const { record, since } = granted;
    const closedUntil = call.lockAtLeastForMs > 0 ? record.acquiredAt + call.lockAtLeastForMs : undefined;
    const { leaseDurationMs, slot } = call;
    const terms = { record, leaseDurationMs, closedUntil, slot };
    const tenancy = this.#keep(new Tenancy(this.#context, terms, since), call.heartbeatMs);
    this.#announce(granted, clock.monotonic() - startedAt);
    return tenancy;
  }

  async #grant(acquisition: Acquisition, call: AcquireCall): Promise<Granted> {
    const { key, owner } = call;
    let isContended = false;
    const onContended = ({ owner: holder, expiresAt, closed }: LeaseRecord): void => {
      if (!isContended) this.#context.publish({ type: "contended", key, owner, holder, expiresAt, closed });
      isContended = true;
    };
    try {
      return await new Waiting(this.#context, this.#judge, acquisition, call, call).grant(onContended);
    } catch (error) {
      acquisition.abandon();
      throw error;
    }
  }

  #keep(tenancy: Tenancy, heartbeatMs: number | undefined): Tenancy {
    if (heartbeatMs !== undefined) this.#heartbeat.start(tenancy, heartbeatMs);
    return tenancy;
  }

  #announce({ record, takeover }: Granted, waitedMs: number): void {
    const { key, owner, fencingToken, expiresAt } = record;
    if (takeover !== undefined) {
      const { ground, from: before } = takeover;
      const from = { owner: before.owner, fencingToken: before.fencingToken, expiresAt: before.expiresAt };
      this.#context.publish({ type: "takeover", key, owner, fencingToken, ground, from });
    }
    const waited = { waitedMs: Math.round(waitedMs), expiresAt };
    this.#context.publish({ type: "acquired", key, owner, fencingToken, ...waited });
  }
}
