import { HeldSeat } from "../seats/held-seat.ts";
import { AcquireAttempt, type AcquireTerms, type Granted } from "./acquire-attempt.ts";
import { announceGrant, contentionOf } from "./announcement.ts";
import type { ProtocolContext } from "./context.ts";
import { Heartbeat } from "./heartbeat.ts";
import { HeldLease, type HeldLeaseTerms } from "./held-lease.ts";
import type { LeaseForm } from "./lease-form.ts";
import { LockForm } from "./lock-form.ts";
import { ReentrantLeases } from "./reentrant-leases.ts";
import { isTraced, traced } from "./tracing.ts";
import { unordered, type WaitTerms } from "./wait-loop.ts";
import type { WaitOrder } from "./wait-order.ts";

/** One call to acquire, validated. */
export interface AcquireCall extends AcquireTerms, WaitTerms {
  readonly heartbeatMs: number | undefined;
  readonly lockAtLeastForMs: number;
  /** The duration that the caller has named: a lease that is shared lasts as long from then on. @default - none */
  readonly askedDurationMs?: number | undefined;
  /** In which order the callers that wait get it. @default - none */
  readonly order?: WaitOrder | undefined;
}

/** What a grant was asked for. */
type GrantTerms = Pick<AcquireCall, "leaseDurationMs" | "lockAtLeastForMs" | "slot">;

/** Turns calls to acquire into leases that are held, and keeps what they share: heartbeats and reentrant leases. */
export class Acquirer {
  /** Which of its leases reentrant owners may be let into. */
  readonly reentrant: ReentrantLeases;
  readonly #context: ProtocolContext;
  readonly #heartbeat: Heartbeat;

  constructor(context: ProtocolContext) {
    this.#context = context;
    this.#heartbeat = new Heartbeat(context);
    this.reentrant = new ReentrantLeases(context.clock);
  }

  /**
   * Wins a lease of the given form, or shares the same owner's hold on it. Rejects with ClientClosedError when the client
   * is closed meanwhile. In every case of failure nothing stays held. With `shows`, tools can trace the call.
   */
  async acquire(
    call: AcquireCall,
    form: LeaseForm = new LockForm(call.key, call.sortKey),
    shows: boolean = isTraced(),
  ): Promise<HeldLease> {
    call.signal?.throwIfAborted();
    const { lifecycle, noteLease, table } = this.#context;
    if (shows) return await traced(table, [call.key], call, () => this.acquire(call, form, false));
    noteLease(call);
    const open = lifecycle.begin(call.signal);
    try {
      const own = { ...call, signal: open.signal };
      const lease = own.resumes
        ? await this.reentrant.share({ ...own, shareKey: form.shareKey }, own, () => this.#win(own, form))
        : await this.#win(own, form);
      lifecycle.throwIfClosed();
      return this.keepAlive(lease, own.heartbeatMs);
    } finally {
      open.end();
    }
  }

  /** Renews a lease in the background, where an interval is given; a shared one may be shorter than its caller asked. */
  keepAlive(lease: HeldLease, heartbeatMs: number | undefined): HeldLease {
    if (heartbeatMs === undefined || lease.deadline.lost !== undefined) return lease;
    const { leaseDurationMs } = lease.terms;
    this.#heartbeat.start(lease, heartbeatMs < leaseDurationMs / 2 ? heartbeatMs : leaseDurationMs / 3);
    return lease;
  }

  /**
   * Carries on a lease that another process won. One that no renewal has confirmed yet is held only once one has, for
   * nothing else would ever end it here.
   */
  adopt(terms: HeldLeaseTerms, heartbeatMs: number | undefined): HeldLease {
    const { clock, clockSkewMs, lifecycle, hold } = this.#context;
    lifecycle.throwIfClosed();
    const { record, leaseDurationMs } = terms;
    const since = clock.moment();
    const latest = record.ownClock ? undefined : clock.latest(since);
    // Where clocks cannot be compared, another's expiry says nothing: a renewal has to show that it stands.
    const leftMs = latest === undefined ? 0 : record.expiresAt - latest - clockSkewMs;
    const belief = leftMs > 0 ? { since, forMs: Math.min(leftMs, leaseDurationMs) } : undefined;
    const form =
      record.seat === undefined
        ? new LockForm(record.key, record.sortKey)
        : new HeldSeat(record.key, record.sortKey);
    const lease = new HeldLease(this.#context, form, terms, belief);
    if (belief !== undefined || heartbeatMs !== undefined) hold(lease);
    return this.keepAlive(lease, heartbeatMs);
  }

  /** Holds a lease that was granted, and announces it. */
  begin(
    form: LeaseForm,
    { leaseDurationMs, lockAtLeastForMs, slot }: GrantTerms,
    { record, belief, takeovers }: Pick<Granted, "record" | "belief" | "takeovers">,
    waitedMs: number,
  ): HeldLease {
    const cooldownUntil = lockAtLeastForMs > 0 ? record.acquiredAt + lockAtLeastForMs : undefined;
    const terms = { record, leaseDurationMs, heldSince: belief.since.monotonic, cooldownUntil, slot };
    const lease = new HeldLease(this.#context, form, terms, belief);
    this.#context.hold(lease);
    announceGrant(this.#context, record, takeovers, waitedMs);
    return lease;
  }

  async #win(call: AcquireCall, given: LeaseForm): Promise<HeldLease> {
    const context = this.#context;
    const { clock } = context;
    const startedAt = clock.monotonic();
    const wait = (call.order ?? unordered).begin(context, given, call);
    const { form } = wait;
    const attempt = new AcquireAttempt(context, form, call);
    try {
      // Most callers meet nobody.
      let tell: ReturnType<typeof contentionOf> | undefined;
      const granted = await wait.grant(attempt, (holder) => {
        tell ??= contentionOf(context, call.owner);
        tell(holder);
      });
      return this.begin(form, call, granted, clock.monotonic() - startedAt);
    } catch (error) {
      attempt.abandon();
      throw error;
    }
  }
}
