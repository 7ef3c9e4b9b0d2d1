import { setTimeout as sleep } from "node:timers/promises";

/** What came together while hand-overs were counted. */
export interface RelayTimes {
  /** From the call of each release to the next holder's grant, in milliseconds. */
  readonly gaps: readonly number[];
  /** From the first waiter on; also of callers that still waited at the end. */
  readonly longestWaitMs: number;
}

/** What a relay is made of. */
export interface RelayPlan {
  /** How many callers wait at any time. */
  readonly waiters: number;
  /** How long each holder keeps the lock. */
  readonly holdMs: number;
  /** Before hand-overs are counted. */
  readonly warmUpMs: number;
  /** For how long they are counted. */
  readonly measureMs: number;
  /** Lets one more caller wait. */
  readonly acquire: (signal: AbortSignal) => Promise<{ release(): Promise<unknown> }>;
  /** Hand-overs are counted from now on, and until the end. */
  readonly onBegin: () => void;
  /** A rejection from now on is no failure. */
  readonly onEnd: () => void;
}

/** One lock that changes hands. When a caller gets it, another one starts to wait. */
export class Relay {
  readonly #plan: RelayPlan;
  readonly #end = new AbortController();
  readonly #runners = new Set<Promise<void>>();
  readonly #waitingSince = new Set<number>();
  #releasedAt: number | undefined;
  #gaps: number[] = [];
  #longestWaitMs = 0;
  #failure: unknown;

  constructor(plan: RelayPlan) {
    this.#plan = plan;
  }

  /** Measures; then the callers that still wait are told to end, and it waits for them. */
  async run(): Promise<RelayTimes> {
    const { waiters, warmUpMs, measureMs, onBegin, onEnd } = this.#plan;
    for (let index = 0; index < waiters + 1; index += 1) this.#join();
    await sleep(warmUpMs);
    onBegin();
    this.#gaps = [];
    await sleep(measureMs);
    onEnd();
    const gaps = this.#gaps;
    this.#gaps = [];
    const now = performance.now();
    const waits = [...this.#waitingSince].map((since) => now - since);
    const longestWaitMs = Math.max(this.#longestWaitMs, ...waits);

    this.#end.abort();
    await Promise.all(this.#runners);
    if (this.#failure !== undefined) throw this.#failure;
    return { gaps, longestWaitMs };
  }

  #join(): void {
    const runner = this.#once()
      .catch((error: unknown) => {
        if (!this.#end.signal.aborted) this.#failure ??= error;
      })
      .finally(() => this.#runners.delete(runner));
    this.#runners.add(runner);
  }

  async #once(): Promise<void> {
    const { signal } = this.#end;
    const since = performance.now();
    this.#waitingSince.add(since);
    const lock = await this.#plan.acquire(signal);
    const grantedAt = performance.now();
    this.#waitingSince.delete(since);
    this.#longestWaitMs = Math.max(this.#longestWaitMs, grantedAt - since);
    if (this.#releasedAt !== undefined) this.#gaps.push(grantedAt - this.#releasedAt);
    if (!signal.aborted) {
      this.#join();
      await sleep(this.#plan.holdMs);
    }
    this.#releasedAt = performance.now();
    await lock.release();
  }
}
