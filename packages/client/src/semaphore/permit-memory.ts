import { LeaseLostError } from "../errors/errors.ts";
import type { Lease } from "../lease.ts";

/** What one Semaphore object knows without asking: which permits are its own, and which to try first. Hints all. */
export class PermitMemory {
  /**
   * Whether a caller has to look before it takes: somebody may hold a permit beyond this object's own number.
   */
  mustLook: boolean;
  readonly #permits: number;
  readonly #tried = new Set<number>();
  /** By permit, the signal of the lease that holds it. */
  readonly #held = new Map<number, AbortSignal>();
  readonly #listeners = new Set<() => void>();
  #releasedLast: number | undefined;

  constructor(permits: number, mustLook: boolean) {
    this.#permits = permits;
    this.mustLook = mustLook;
  }

  /**
   * Gives the permit to try without a look: the one that was released here last, for it is likely to be free still,
   * or a random one, so that callers spread. Undefined where this object has all of them itself.
   */
  firstChoice(fraction: number): number | undefined {
    const released = this.takeReleased();
    if (released !== undefined) return released;
    const start = Math.floor(fraction * this.#permits);
    for (let step = 0; step < this.#permits; step += 1) {
      const permit = (start + step) % this.#permits;
      if (!this.isBusy(permit)) return permit;
    }
    return undefined;
  }

  /** Gives the permit that was released here last, once, if nobody here has it again. */
  takeReleased(): number | undefined {
    const released = this.#releasedLast;
    this.#releasedLast = undefined;
    return released !== undefined && !this.isBusy(released) ? released : undefined;
  }

  /** Calls back when a permit has been released here and the table has it. Gives what ends that. */
  onReleased(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Gives one of several permits at random, but none that a sibling has or tries where there is another. */
  choose(permits: readonly number[], fraction: number): number | undefined {
    const idle = permits.filter((permit) => !this.isBusy(permit));
    const choice = idle.length > 0 ? idle : permits;
    return choice[Math.floor(fraction * choice.length)];
  }

  isBusy(permit: number): boolean {
    return this.#tried.has(permit) || this.#held.has(permit);
  }

  /** A caller starts to try a permit. */
  tries(permit: number): void {
    this.#tried.add(permit);
  }

  /** The attempt is over; with a lease, the permit is held until that ends. */
  tried(permit: number, lease: Lease | undefined): void {
    this.#tried.delete(permit);
    if (lease === undefined) return;
    const { signal } = lease;
    // Handles of a reentrant lease have one signal.
    if (signal.aborted || this.#held.get(permit) === signal) return;
    this.#held.set(permit, signal);
    const onEnd = (): void => {
      if (this.#held.get(permit) === signal) this.#held.delete(permit);
      const { reason } = signal;
      if (!(reason instanceof LeaseLostError && reason.reason === "released")) return;
      this.#releasedLast = permit;
      if (this.#listeners.size > 0) void this.#tellOnceReleased(lease);
    };
    signal.addEventListener("abort", onEnd, { once: true });
  }

  /** The signal aborts when the release begins; its answer tells when somebody else can have the permit. */
  async #tellOnceReleased(lease: Lease): Promise<void> {
    // After this turn of the caller's, which is what makes the second call below share the first one's answer.
    await Promise.resolve();
    const isOwnRelease = lease.loss === undefined;
    // Ignored: the caller that releases it has the error.
    if (isOwnRelease && !(await lease.release().catch(() => false))) return;
    for (const listener of this.#listeners) listener();
  }
}
