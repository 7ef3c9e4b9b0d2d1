import type { Clock } from "../base/clock.ts";
import { isOperational } from "../base/operational.ts";
import type { RequestGate } from "./request-gate.ts";

/** A lease with a heartbeat. */
export interface Beating {
  /** The interval of its renewals; the shortest that a handle has asked for. */
  readonly renewEveryMs: number;
  readonly leaseDurationMs: number;
  readonly lost: string | undefined;
  remainingMs(): number;
  renew(): Promise<void>;
  /** Ends the holder's belief, because a renewal met a mistake in the program. */
  fail(error: unknown): void;
  onEnd(listener: () => void): void;
}

/** Keeps a client's leases alive. Its timers do not keep the process alive. */
export interface Keeper {
  /**
   * Renews a lease until it ends, or until the returned function is called. It repeats a failed renewal after a pause,
   * until the lease's own deadline.
   */
  keep(lease: Beating): () => void;
}

/** What a keeper needs of its client. */
export interface KeeperParts {
  readonly clock: Clock;
  readonly gate: RequestGate;
  readonly randomness: { fraction(): number };
}

/** Intervals are shortened by up to this share, so that many processes do not beat in step. */
const jitterShare = 0.1;
/** A failed renewal is repeated after this share of the time that is left... */
const retryShare = 0.2;
/** ...but no sooner than this, which bounds the number of retries. */
const shortestRetryMs = 50;

/** Milliseconds until the first renewal of a lease: sooner than its interval if little time is left. */
export function firstBeatMs(lease: Beating, fraction: number): number {
  return Math.min(nextBeatMs(lease, fraction), lease.remainingMs() / 2);
}

/** Milliseconds until the renewal after one that was confirmed. `fraction`, from 0 to 1, keeps leases out of step. */
export function nextBeatMs({ renewEveryMs }: Beating, fraction: number): number {
  return renewEveryMs - renewEveryMs * jitterShare * fraction;
}

/** Milliseconds until the renewal after one that failed: any failure may pass, even expired credentials. */
export function retryBeatMs(lease: Beating, fraction: number): number {
  // A lease that no renewal has confirmed yet has no deadline.
  const leftMs = lease.remainingMs() || lease.leaseDurationMs;
  return Math.max(leftMs * retryShare * (1 - jitterShare * fraction), shortestRetryMs);
}

/** Renews each lease by itself: a timer for each, and 1 request each time. `together()` shares both. */
export function keepEach(parts: KeeperParts): Keeper {
  return { keep: (lease) => new Heart(parts, lease).stop };
}

/** The heartbeat of one lease. */
class Heart {
  readonly #parts: KeeperParts;
  readonly #lease: Beating;
  /** Undefined once it is stopped. */
  #cancel: (() => void) | undefined = () => undefined;

  constructor(parts: KeeperParts, lease: Beating) {
    this.#parts = parts;
    this.#lease = lease;
    lease.onEnd(this.stop);
    this.#arm(firstBeatMs(lease, parts.randomness.fraction()));
  }

  readonly stop = (): void => {
    this.#cancel?.();
    this.#cancel = undefined;
  };

  #arm(delayMs: number): void {
    if (this.#cancel === undefined) return;
    const beat = (): void => void this.#renew().catch((error: unknown) => this.#lease.fail(error));
    // In whole milliseconds: a clock cannot resolve a time that is nearer than its own steps.
    this.#cancel = this.#parts.clock.schedule(beat, Math.ceil(delayMs), { background: true });
  }

  /** Rejects with every error that is no failure of the service. */
  async #renew(): Promise<void> {
    const { clock, gate, randomness } = this.#parts;
    const lease = this.#lease;
    const deadline = clock.monotonic() + lease.remainingMs();
    // Reading the time that is left can end the lease.
    if (this.#cancel === undefined) return;
    try {
      await gate.renew(deadline, undefined, () => lease.renew());
      this.#arm(nextBeatMs(lease, randomness.fraction()));
    } catch (error) {
      if (!isOperational(error)) throw error;
      this.#arm(retryBeatMs(lease, randomness.fraction()));
    }
  }
}
