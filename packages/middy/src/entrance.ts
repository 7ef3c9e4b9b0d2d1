import type { AcquireOptions, Lease } from "@leasehold/client";
import { LeaseAbortedError, LeaseUnavailableError, sleep, unlessPassing } from "@leasehold/client/internal";
import { type Invocation, isNewer } from "./invocation.ts";
import type { Settings } from "./settings.ts";

/** A lease whose time nobody states: where the remaining time is unknown, and where it is renewed anyway. */
const renewedLeaseMs = 30_000;
/** A lease that covers an invocation ends this long after it, so that it never ends first. */
const coverMarginMs = 1_000;
/** While it waits to replace a holder, how often an invocation looks whether there is another one to ask. */
const askEveryMs = 1_000;

/** A newer trigger is in the way of one that would have replaced the holder. */
export class Superseded extends Error {}

/** A lease that was won, and in what rhythm it wants to be renewed. */
export interface Admission {
  readonly lease: Lease;
  readonly renewEveryMs: number | undefined;
}

/** How long an invocation may wait for the lock, by now. */
export function patienceMs(
  { reserveMs }: Pick<Settings<never>, "reserveMs">,
  remainingMs: number | undefined,
): number {
  if (remainingMs === undefined) return renewedLeaseMs;
  return Math.max(0, Math.floor(remainingMs - (reserveMs ?? remainingMs / 4)));
}

/**
 * Wins the lock as `whenHeld` says: 1 request where it is free.
 *
 * Rejects with LeaseUnavailableError, SlotDoneError, {@link Superseded}, the signal's reason and whatever else the
 * client rejects with.
 */
export async function admit<TEvent>(
  settings: Settings<TEvent>,
  invocation: Invocation,
  waitMs: number,
  signal: AbortSignal,
): Promise<Admission> {
  const { client, order, lockAtLeastForMs, data, resume: reentrant } = settings;
  const { key, owner, slot, whenHeld } = invocation;
  const remainingMs = invocation.remainingMs();
  const heartbeat = settings.heartbeat ?? (whenHeld === "replace" || remainingMs === undefined);
  // The lease counts from the grant, so that after a wait it covers more than the rest of the invocation.
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
  settings: Settings<TEvent>,
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
  // Ends the wait where the asking fails, and the asking where the wait has ended.
  const over = new AbortController();
  askHolders(settings, invocation, over.signal).catch((error: unknown) => over.abort(error));
  try {
    return await client.acquire(key, {
      ...options,
      waitMs,
      signal: AbortSignal.any([signal, over.signal]),
    });
  } catch (error) {
    // What has ended the wait here is said by its own error.
    const { aborted, reason } = over.signal;
    throw aborted && error instanceof LeaseAbortedError && error.cause === reason ? reason : error;
  } finally {
    over.abort();
  }
}

/** Asks each holder that comes to stop, until the signal aborts. Rejects with {@link Superseded} at a newer one. */
async function askHolders<TEvent>(
  { client, clock }: Settings<TEvent>,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<never> {
  const { key, owner } = invocation;
  const reason = `replaced by ${owner}`;
  const asked = new Set<string>();
  for (;;) {
    await unlessPassing(async () => {
      const holder = await client.inspect(key);
      if (signal.aborted || holder === undefined || holder.inCooldown || asked.has(holder.token)) return;
      if (isNewer(holder.owner, invocation)) throw new Superseded();
      // It may have become ours in the meantime.
      if (holder.owner !== owner) await client.requestRevocation(key, { token: holder.token, reason });
      // Only now: a request that the service failed is made again.
      asked.add(holder.token);
    });
    await sleep(clock, askEveryMs, signal);
  }
}
