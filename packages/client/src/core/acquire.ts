import { tracingChannel } from "node:diagnostics_channel";
import type { LeaseEvent } from "../base/events.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { Attempt, type Granted } from "./attempt.ts";
import type { Core } from "./core.ts";
import type { HeldForm, LeaseForm } from "./form.ts";
import { HeldLease, type HeldLeaseTerms } from "./held-lease.ts";
import { LockForm } from "./lock-form.ts";
import type { AcquireCall, Order } from "./order.ts";
import { unordered } from "./wait-loop.ts";

/**
 * Acquires a lease of the given form, or shares the same owner's lease. Rejects with ClientClosedError when the client
 * is closed meanwhile. After a failure nothing stays held. Tools can trace the call, unless the lease is no caller's
 * own, such as a waiting writer's intent.
 */
export async function acquireLease(
  core: Core,
  call: AcquireCall,
  form: LeaseForm = new LockForm(call.key, call.sortKey),
  isShown: boolean = isTraced(),
): Promise<HeldLease> {
  if (isShown) {
    call.signal?.throwIfAborted();
    return await traced(core, [call.key], call, () => acquireLease(core, call, form, false));
  }
  const { lifecycle, sharing } = core;
  const open = lifecycle.begin(call.signal);
  try {
    core.noteLease(call);
    const own = { ...call, signal: open.signal };
    const { shareKey } = form;
    const [lease] = (
      own.resumes && shareKey !== false
        ? await sharing.share([{ ...own, shareKey }], own, async () => [await win(core, own, form)])
        : [await win(core, own, form)]
    ) as [HeldLease];
    lifecycle.throwIfClosed();
    lease.keepAlive(own.heartbeatMs);
    return lease;
  } finally {
    open.end();
  }
}

async function win(core: Core, call: AcquireCall, given: LeaseForm): Promise<HeldLease> {
  const { clock } = core;
  const startedAt = clock.monotonic();
  const order = (call.order as Order | undefined) ?? unordered;
  const wait = order.begin(core, given, call);
  const attempt = new Attempt(core, wait.form, call);
  try {
    // Most calls meet no other holder.
    let contended: ReturnType<typeof contentionOf> | undefined;
    const granted = await wait.grant(attempt, (holder) => {
      contended ??= contentionOf(core, wait.form, call.owner);
      contended(holder);
    });
    return begin(core, wait.form, call, granted, clock.monotonic() - startedAt);
  } catch (error) {
    attempt.abandon();
    throw error;
  }
}

/** Holds a granted lease, and announces it. */
export function begin(
  core: Core,
  form: LeaseForm,
  {
    leaseDurationMs,
    lockAtLeastForMs,
    slot,
  }: Pick<AcquireCall, "leaseDurationMs" | "lockAtLeastForMs" | "slot">,
  granted: Pick<Granted, "record" | "belief" | "takeovers">,
  waitedMs: number,
): HeldLease {
  const { record, belief } = granted;
  const cooldownUntil = lockAtLeastForMs > 0 ? record.acquiredAt + lockAtLeastForMs : undefined;
  const heldSince = belief.since.monotonic;
  const lease = new HeldLease(
    core,
    form,
    { record, leaseDurationMs, heldSince, cooldownUntil, slot },
    belief,
  );
  lease.list();
  announceGrant(core, form, granted, waitedMs);
  return lease;
}

/**
 * Adopts a lease that another process acquired. If no renewal has confirmed it yet, a renewal comes first: otherwise
 * nothing would ever end the lease here. Throws ClientClosedError.
 */
export function adoptLease(
  core: Core,
  form: HeldForm,
  terms: HeldLeaseTerms,
  heartbeatMs: number | undefined,
): HeldLease {
  const { clock, lifecycle, times } = core;
  lifecycle.throwIfClosed();
  const { record, leaseDurationMs } = terms;
  const since = clock.moment();
  const latest = record.ownClock ? undefined : clock.latest(since);
  // If clocks cannot be compared, another process's expiry means nothing: a renewal has to confirm the lease.
  const leftMs = latest === undefined ? 0 : record.expiresAt - latest - times.clockSkewMs;
  const belief = leftMs > 0 ? { since, forMs: Math.min(leftMs, leaseDurationMs) } : undefined;
  const lease = new HeldLease(core, form, terms, belief);
  if (belief !== undefined || heartbeatMs !== undefined) lease.list();
  lease.keepAlive(heartbeatMs);
  return lease;
}

/** Publishes an event, unless its lease's form keeps it to itself. */
function tell(core: Core, form: HeldForm | undefined, event: LeaseEvent): void {
  if (!form?.mutes?.(event)) core.publish(event);
}

/** Publishes that a lock was acquired, and for a takeover its last holder. */
export function announceGrant(
  core: Core,
  form: HeldForm,
  { record, takeovers }: Pick<Granted, "record" | "takeovers">,
  waitedMs: number,
): void {
  const { key, sortKey, owner, fencingToken, expiresAt } = record;
  const subject = { key, sortKey, owner, fencingToken };
  for (const { reason, from: before } of takeovers) {
    const from = { owner: before.owner, fencingToken: before.fencingToken, expiresAt: before.expiresAt };
    tell(core, form, { type: "takeover", ...subject, reason, from });
  }
  if (core.hears("acquired"))
    tell(core, form, { type: "acquired", ...subject, waitedMs: Math.round(waitedMs), expiresAt });
}

/** Returns a function that publishes `contended` once for each lock that blocks one call. */
export function contentionOf(
  core: Core,
  form: HeldForm | undefined,
  owner: string,
): (record: LeaseRecord | undefined) => void {
  const told = new Set<string>();
  return (record) => {
    if (record === undefined) return;
    const { key, sortKey, owner: holder, expiresAt, inCooldown } = record;
    if (!told.has(key))
      tell(core, form, { type: "contended", key, sortKey, owner, holder, expiresAt, inCooldown });
    told.add(key);
  };
}

/**
 * One call to acquire, as Node's tracing channel `leasehold:acquire` shows it. Node adds `error` to it when the call
 * rejects.
 */
export interface AcquireTrace {
  readonly tableName: string;
  /** One key, or all keys of a group. */
  readonly keys: readonly string[];
  readonly sortKey: string;
  readonly owner: string;
  /** How long the call waits for a lock that is held, in milliseconds. */
  readonly waitMs: number;
  /** Ends the call: its reason is the error then. */
  readonly signal: AbortSignal | undefined;
  readonly error?: unknown;
}

/** The name of the tracing channel of all calls to acquire. */
export const acquireChannel = "leasehold:acquire";

const calls = tracingChannel<unknown, AcquireTrace>(acquireChannel);

/** Whether a tool listens. */
export function isTraced(): boolean {
  return calls.hasSubscribers;
}

/**
 * Lets tracing tools follow a call to acquire from its beginning to its end, whatever the outcome. The tools see no token
 * and no payload.
 */
export async function traced<T>(
  { tableName }: Pick<AcquireTrace, "tableName">,
  keys: readonly string[],
  { sortKey, owner, waitMs, signal }: Omit<AcquireTrace, "tableName" | "keys">,
  call: () => Promise<T>,
): Promise<T> {
  let result: T | undefined;
  // The tools must not see the result.
  const show = async (): Promise<void> => {
    result = await call();
  };
  await calls.tracePromise(show, { tableName, keys, sortKey, owner, waitMs, signal });
  return result as T;
}
