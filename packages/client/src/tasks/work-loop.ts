import { LeaseServiceError } from "../errors.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { sleep } from "../time/clock.ts";
import type { WorkTerms } from "./options.ts";
import type { NothingFound } from "./scout.ts";
import type { Task } from "./task.ts";

/** After this many claims in a row that the service failed, the loop gives up. */
const mostFailures = 5;

/** Whoever waits for a place is woken by it; this only has to be long. */
const longestWaitMs = 60 * 60 * 1000;

/** Claims one task after the other, at a pace, while there is room for another. */
export class WorkLoop {
  readonly #context: ProtocolContext;
  readonly #terms: WorkTerms;
  readonly #find: () => Promise<Task | NothingFound>;
  readonly #busy = new Set<Promise<void>>();
  #claimedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #freed = 0;
  #wake: () => void = () => undefined;

  constructor(context: ProtocolContext, terms: WorkTerms, find: () => Promise<Task | NothingFound>) {
    this.#context = context;
    this.#terms = terms;
    this.#find = find;
  }

  /** Takes up a place until the promise settles. */
  occupy(until: Promise<void>): void {
    const place = until.then(
      () => undefined,
      () => undefined,
    );
    this.#busy.add(place);
    void place.then(() => {
      this.#busy.delete(place);
      this.#freed += 1;
      this.#wake();
    });
  }

  /** Resolves once no place is taken. */
  async idle(): Promise<void> {
    while (this.#busy.size > 0) await Promise.all(this.#busy);
  }

  /** Gives the next task; undefined when the loop is over. */
  async next(): Promise<Task | undefined> {
    const { signal, concurrency, pauseMs, pollMs, until } = this.#terms;
    const { clock, randomness } = this.#context;
    for (;;) {
      while (this.#busy.size >= concurrency && !signal?.aborted) await this.#wait(longestWaitMs);
      const pauseLeft = this.#claimedAt + pauseMs - clock.monotonic();
      if (pauseLeft > 0) await this.#sleep(pauseLeft);
      if (signal?.aborted) return undefined;
      const freedBefore = this.#freed;
      const found = await this.#tryFind();
      if (found !== undefined && "id" in found) {
        this.#claimedAt = clock.monotonic();
        return found;
      }
      if (until === "idle" && found !== undefined) return undefined;
      if (until === "drained" && found?.isDrained) return undefined;
      // What has ended meanwhile may have been the last that was seen running.
      if (this.#freed > freedBefore) continue;
      const soonest = Math.max(1, found?.claimableInMs ?? pollMs);
      await this.#wait(Math.min(pollMs * (0.75 + randomness.fraction() / 2), soonest));
    }
  }

  /** Gives undefined where the service failed in a way that may pass. */
  async #tryFind(): Promise<Task | NothingFound | undefined> {
    try {
      const found = await this.#find();
      this.#failures = 0;
      return found;
    } catch (error) {
      this.#failures += 1;
      const mayPass = error instanceof LeaseServiceError && error.retryable;
      if (!mayPass || this.#failures >= mostFailures) throw error;
      return undefined;
    }
  }

  /** Waits for a time, for a place to fall free, or for the loop's end, whichever comes first. */
  async #wait(ms: number): Promise<void> {
    const over = new AbortController();
    this.#wake = () => over.abort();
    const { signal } = this.#terms;
    const either = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
    await sleep(this.#context.clock, ms, either).catch(() => undefined);
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(this.#context.clock, ms, this.#terms.signal).catch(() => undefined);
  }
}
