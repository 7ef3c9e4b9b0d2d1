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
  /** The duration that the caller has named. A shared lease lasts at least this long from then on. @default - none */
  readonly askedDurationMs?: number | undefined;
  /** The order in which waiting callers get the lease. @default - none */
  readonly order?: WaitOrder | undefined;
}

/** The terms that a grant is checked against. */
type GrantTerms = Pick<AcquireCall, "leaseDurationMs" | "lockAtLeastForMs" | "slot">;

/** Acquires leases for a client's calls, and keeps what the leases share: heartbeats and reentrant leases. */
export class Acquirer {
  /** The leases that their reentrant owners may share. */
  readonly reentrant: ReentrantLeases;
  readonly #context: ProtocolContext;
  readonly #heartbeat: Heartbeat;

  constructor(context: ProtocolContext) {
    this.#context = context;
    this.#heartbeat = new Heartbeat(context);
    this.reentrant = new ReentrantLeases(context.clock);
  }

  /**
   * Acquires a lease of the given form, or shares the same owner's lease. Rejects with ClientClosedError when the
   * client is closed meanwhile. After a failure nothing stays held. With `shows`, tools can trace the call.
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

  /** Renews a lease in the background if an interval is given. A shared lease may be shorter than its caller asked. */
  keepAlive(lease: HeldLease, heartbeatMs: number | undefined): HeldLease {
    if (heartbeatMs === undefined || lease.deadline.lost !== undefined) return lease;
    const { leaseDurationMs } = lease.terms;
    this.#heartbeat.start(lease, heartbeatMs < leaseDurationMs / 2 ? heartbeatMs : leaseDurationMs / 3);
    return lease;
  }

  /**
   * Adopts a lease that another process acquired. If no renewal has confirmed it yet, a renewal comes first: otherwise
   * nothing would ever end the lease here.
   */
  adopt(terms: HeldLeaseTerms, heartbeatMs: number | undefined): HeldLease {
    const { clock, clockSkewMs, lifecycle, hold } = this.#context;
    lifecycle.throwIfClosed();
    const { record, leaseDurationMs } = terms;
    const since = clock.moment();
    const latest = record.ownClock ? undefined : clock.latest(since);
    // If clocks cannot be compared, another process's expiry means nothing: a renewal has to confirm the lease.
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

  /** Holds a granted lease, and announces it. */
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
      // Most calls meet no other holder.
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
