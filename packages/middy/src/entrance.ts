import type { AcquireOptions, Lease } from "@leasehold/client";
import {
  coreOf,
  LeaseAbortedError,
  LeaseUnavailableError,
  requestRevocation,
  sleep,
  unlessPassing,
} from "@leasehold/client/internal";
import { type Invocation, isNewer } from "./invocation.ts";
import type { MiddlewareSettings } from "./settings.ts";

/** The duration of a lease that is renewed. */
const renewedLeaseMs = 30_000;
/**
 * The longest remaining time that one lease covers by default. After a crash early in a longer invocation, such a lease
 * would keep the lock for up to 15 minutes.
 */
const longestCoveredMs = 60_000;
/** A lease that covers an invocation ends this long after it, so that the lease never ends first. */
const coverMarginMs = 1_000;
/** How often an invocation looks for another holder to ask, while it waits to replace one. */
const askEveryMs = 1_000;

/** A newer trigger holds the lock, and this invocation would have replaced the holder. */
export class Superseded extends Error {}

/** The acquired lease, and the interval of its renewals. */
export interface Admission {
  readonly lease: Lease;
  readonly renewEveryMs: number | undefined;
}

/** How long an invocation may still wait for the lock. */
export function patienceMs(
  { reserveMs }: Pick<MiddlewareSettings<never>, "reserveMs">,
  remainingMs: number | undefined,
): number {
  if (remainingMs === undefined) return renewedLeaseMs;
  return Math.max(0, Math.floor(remainingMs - (reserveMs ?? remainingMs / 4)));
}

/**
 * Acquires the lock as `whenHeld` says: 1 request if it is free.
 *
 * Rejects with LeaseUnavailableError, SlotDoneError, {@link Superseded}, the signal's reason and the client's other
 * errors.
 */
export async function admit<TEvent>(
  settings: MiddlewareSettings<TEvent>,
  invocation: Invocation,
  waitMs: number,
  signal: AbortSignal,
): Promise<Admission> {
  const { client, order, lockAtLeastForMs, data, resume: reentrant } = settings;
  const { key, owner, slot, whenHeld } = invocation;
  const remainingMs = invocation.remainingMs();
  const isLong =
    remainingMs === undefined || (settings.lockAtMostForMs === undefined && remainingMs > longestCoveredMs);
  const heartbeat = settings.heartbeat ?? (whenHeld === "replace" || isLong);
  // The lease counts from the grant. So after a wait it covers more than the rest of the invocation.
  const coveringMs =
    heartbeat || remainingMs === undefined ? renewedLeaseMs : Math.ceil(remainingMs) + coverMarginMs;
  const leaseDurationMs = settings.lockAtMostForMs ?? Math.max(coveringMs, lockAtLeastForMs);
  const options = {
    ...{ leaseDurationMs, lockAtLeastForMs, data, signal, owner, reentrant },
    ...(slot !== undefined && { slot }),
  };
  const thirdMs = Math.max(1, Math.floor(leaseDurationMs / 3));
  const renewEveryMs = typeof heartbeat === "number" ? Math.min(heartbeat, thirdMs) : thirdMs;
  const waiting = whenHeld === "wait" ? { waitMs, ...(order && { order }) } : {};
  const lease =
    whenHeld === "replace"
      ? await replace(settings, invocation, options, waitMs, signal)
      : await client.acquire(key, { ...options, ...waiting });
  return { lease, renewEveryMs: heartbeat ? renewEveryMs : undefined };
}

async function replace<TEvent>(
  settings: MiddlewareSettings<TEvent>,
  invocation: Invocation,
  options: AcquireOptions,
  waitMs: number,
  signal: AbortSignal,
): Promise<Lease> {
  const { client } = settings;
  const { key } = invocation;
  try {
    return await client.acquire(key, options);
  } catch (error) {
    if (!(error instanceof LeaseUnavailableError)) throw error;
  }
  // Ends the wait if the asking fails, and ends the asking when the wait is over.
  const over = new AbortController();
  askHolders(settings, invocation, over.signal).catch((error: unknown) => over.abort(error));
  try {
    return await client.acquire(key, {
      ...options,
      waitMs,
      signal: AbortSignal.any([signal, over.signal]),
    });
  } catch (error) {
    // Rethrow the real cause of the abort.
    const { aborted, reason } = over.signal;
    throw aborted && error instanceof LeaseAbortedError && error.cause === reason ? reason : error;
  } finally {
    over.abort();
  }
}

/** Asks each new holder to stop, until the signal aborts. Rejects with {@link Superseded} if a holder is newer. */
async function askHolders<TEvent>(
  { client, clock }: MiddlewareSettings<TEvent>,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<never> {
  const { key, owner } = invocation;
  const reason = `replaced by ${owner}`;
  const core = coreOf(client);
  const asked = new Set<string>();
  for (;;) {
    await unlessPassing(async () => {
      const holder = await client.inspect(key);
      if (signal.aborted || holder === undefined || holder.inCooldown || asked.has(holder.token)) return;
      if (isNewer(holder.owner, invocation)) throw new Superseded();
      // This invocation may hold the lock by now. A `LeaseAdmin` would bring all its methods into the handler's bundle.
      if (holder.owner !== owner) await core.update(requestRevocation({ key }, holder.token, reason));
      // Only now: if the service fails the request, it is repeated.
      asked.add(holder.token);
    });
    await sleep(clock, askEveryMs, signal);
  }
}
