import { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import type { FairTerms } from "../fair/options.ts";
import { paceMs } from "../fair/pace.ts";
import type { Lease } from "../lease.ts";
import type { AcquisitionTerms } from "../options/check-options.ts";
import { callBudgetMs, shortestBudgetMs } from "../protocol/context.ts";
import { WakeableSleep } from "../time/wakeable-sleep.ts";
import { PermitSearch, type Rest, type Scene } from "./permit-search.ts";
import type { Turnstile, TurnstileState } from "./turnstile.ts";

/** What the callers of one fair Semaphore object share. */
export interface FairScene extends Scene {
  readonly turnstile: Turnstile;
}

/**
 * One caller's way to a permit of a fair semaphore: straight to it while nobody waits, else through the turnstile.
 *
 * Its look at the turnstile is its arrival. One that has come between that look and the attempt has come later, so that
 * passing it breaks no order.
 */
export class FairSearch {
  readonly #scene: FairScene;
  readonly #terms: AcquisitionTerms;
  readonly #fair: FairTerms;
  readonly #search: PermitSearch;
  readonly #deadline: number;
  readonly #since: number;

  constructor(scene: FairScene, terms: AcquisitionTerms, fair: FairTerms) {
    this.#scene = scene;
    this.#terms = terms;
    this.#fair = fair;
    this.#search = new PermitSearch(scene, terms);
    const { clock } = scene.client.context;
    this.#deadline = clock.monotonic() + terms.waitMs;
    this.#since = clock.now();
  }

  /**
   * Gives the lease of a permit; `own` is the one that the same owner has, which is entered past all others.
   *
   * Rejects with LeaseUnavailableError, with QueueFullError, with the service's error if that is what the last round
   * ended with, with what `onPlace` throws, or with the signal's reason. Nothing stays held then.
   */
  async find(own?: number): Promise<Lease> {
    const resumed = own === undefined ? undefined : await this.#search.resume(own);
    if (resumed !== undefined) return resumed;
    const { turnstile } = this.#scene;
    const { before, arrived } = turnstile.arrive();
    let inTurn: Promise<Lease>;
    try {
      const lease = await this.#goStraight();
      if (lease !== undefined) return lease;
      await this.#behind(before);
      // Takes its place among those of this client before it first gives way.
      inTurn = turnstile.count(() => this.#goThroughTurnstile());
    } finally {
      arrived();
    }
    return await inTurn;
  }

  /** Gives a permit if nobody waits, or the owner's own; undefined where it has to be waited for. */
  async #goStraight(): Promise<Lease | undefined> {
    const { waitMs, reentrant } = this.#terms;
    const mayWait = waitMs > 0;
    const state = mayWait && this.#scene.turnstile.isUsedHere ? undefined : await this.#look(mayWait);
    if (state?.waiting.length === 0) {
      const lease = await this.#search.attempt();
      if (lease === undefined && !mayWait) throw this.#search.refusal();
      return lease;
    }
    const own = reentrant ? await this.#search.resume() : undefined;
    if (own !== undefined || state === undefined) return own;
    if (!mayWait) throw await this.#search.explain(state.refusal);
    this.#scene.turnstile.checkRoom(state.waiting.length, this.#fair);
    return undefined;
  }

  /** Looks who waits. One who may wait does so where the look fails, for somebody may be there. */
  async #look(mayWait: boolean): Promise<TurnstileState | undefined> {
    const { signal } = this.#terms;
    const leftMs = Math.max(this.#leftMs(), shortestBudgetMs);
    const budgetMs = mayWait ? Math.min(leftMs, callBudgetMs) : callBudgetMs;
    try {
      return await this.#scene.turnstile.look({ budgetMs, signal });
    } catch (error) {
      signal?.throwIfAborted();
      if (mayWait && error instanceof LeaseServiceError && error.retryable) return undefined;
      throw error;
    }
  }

  /** Waits until those who came before, here, have a permit, wait in turn or have given up. */
  async #behind(before: Promise<unknown>): Promise<void> {
    const nap = new WakeableSleep(this.#scene.client.context.clock);
    void before.then(() => nap.wake());
    await nap.sleep(Math.max(this.#leftMs(), 0), this.#terms.signal);
  }

  async #goThroughTurnstile(): Promise<Lease> {
    for (;;) {
      const turn = await this.#enter();
      try {
        return await this.#findInTurn(turn);
      } catch (error) {
        // Frozen, or cut off, for longer than its lease in the turnstile: somebody else may be in it. At the end again.
        if (!turn.signal.aborted || error !== turn.signal.reason) throw error;
      } finally {
        // Ignored: a turnstile that is not let go is open again when its lease ends, and the `error` event tells of a
        // mistake.
        void turn.release().catch(() => false);
      }
    }
  }

  async #enter(): Promise<Lease> {
    const { owner, signal } = this.#terms;
    const passer = { owner, since: this.#since, waitMs: this.#waitMs(), signal, fair: this.#fair };
    try {
      return await this.#scene.turnstile.enter(passer);
    } catch (error) {
      throw error instanceof LeaseUnavailableError ? await this.#search.explain(error) : error;
    }
  }

  /** Looks for a permit, alone, in the rhythm in which they become free; one that is released here is tried at once. */
  async #findInTurn(turn: Lease): Promise<Lease> {
    const { client, memory, turnstile } = this.#scene;
    this.#fair.onPlace?.({ place: 1, aboutMs: turnstile.typicalMs });
    const signal = this.#terms.signal ? AbortSignal.any([this.#terms.signal, turn.signal]) : turn.signal;
    const terms = { ...this.#terms, waitMs: this.#waitMs(), signal };
    const nap = new WakeableSleep(client.context.clock);
    let isReleased = false;
    const stopListening = memory.onReleased(() => {
      isReleased = true;
      nap.wake();
    });
    const rest: Rest = async ({ looks, claimableInMs, leftMs }) => {
      const lookMs = paceMs({ place: 1, typicalMs: turnstile.typicalMs, heldMs: undefined });
      const delayMs = claimableInMs > 0 ? Math.min(lookMs, claimableInMs) : lookMs;
      if (looks > 1 && !isReleased) await nap.sleep(Math.min(delayMs, leftMs), signal);
      // Reading it looks at the clock: a timer may fire late in a process that was frozen.
      turn.signal.throwIfAborted();
      const wasReleased = isReleased;
      isReleased = false;
      return wasReleased;
    };
    try {
      return await new PermitSearch(this.#scene, terms).persist(rest);
    } finally {
      stopListening();
    }
  }

  /** What is left of the patience, in whole milliseconds: enough for one look whenever the turn comes. */
  #waitMs(): number {
    return Math.max(1, Math.ceil(this.#leftMs()));
  }

  #leftMs(): number {
    return this.#deadline - this.#scene.client.context.clock.monotonic();
  }
}
