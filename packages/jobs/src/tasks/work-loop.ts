import { LeaseServiceError, type ProtocolContext } from "@leasehold/client/internal";
import type { WorkTerms } from "./options.ts";
import { PollPace } from "./poll-pace.ts";
import type { LookTerms, NothingFound, Survey } from "./scout.ts";
import type { Task } from "./task.ts";

/** After this many claims in a row that the service failed, the loop gives up. */
const mostFailures = 5;

/** Whoever waits for a place is woken by it; this only has to be long. */
const longestWaitMs = 60 * 60 * 1000;

/** Workers that know of the same task wake at the same time; spread over this, they do not all look at once. */
const wakeSpreadMs = 50;

/** Where a loop's tasks come from. */
export interface TaskSource {
  /** The last look at all open tasks, unless something was found to claim since. */
  readonly survey: Survey | undefined;
  find(terms: LookTerms): Promise<Task | NothingFound>;
}

/** Claims one task after the other, at a pace, while there is room for another. */
export class WorkLoop {
  readonly #context: ProtocolContext;
  readonly #terms: WorkTerms;
  readonly #source: TaskSource;
  readonly #pace: PollPace;
  readonly #busy = new Set<Promise<void>>();
  /** Whether the next look has to see every earlier write: those that were made before this loop began, at first. */
  #mustBeSure = true;
  #claimedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #freed = 0;
  #wake: () => void = () => undefined;

  constructor(context: ProtocolContext, terms: WorkTerms, source: TaskSource) {
    this.#context = context;
    this.#terms = terms;
    this.#source = source;
    this.#pace = new PollPace(terms.pollMs, context.randomness);
  }

  /** Takes up a place until the promise settles. */
  occupy(until: Promise<void>): void {
    // Ignored: the caller that occupies it reports its error.
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
      if (until === "drained" && found?.survey.openTasks === 0) {
        if (found.survey.isConsistent) return undefined;
        this.#mustBeSure = true;
        continue;
      }
      // What has ended meanwhile may have been the last that was seen running.
      if (this.#freed > freedBefore) continue;
      await this.#wait(found === undefined ? pollMs : this.#restMs(found, randomness.fraction()));
    }
  }

  /** Gives undefined where the service failed in a way that may pass. */
  async #tryFind(): Promise<Task | NothingFound | undefined> {
    const isSure = this.#mustBeSure || this.#terms.until === "idle";
    const maxAgeMs = isSure ? 0 : this.#pace.restMs;
    try {
      const found = await this.#source.find({ maxAgeMs, consistent: isSure || !this.#pace.isIdle });
      this.#failures = 0;
      this.#mustBeSure = false;
      if (!("id" in found)) this.#pace.foundNothing(found.survey);
      else if (this.#source.survey === undefined) this.#pace.foundSome();
      return found;
    } catch (error) {
      this.#failures += 1;
      const mayPass = error instanceof LeaseServiceError && error.retryable;
      if (!mayPass || this.#failures >= mostFailures) throw error;
      return undefined;
    }
  }

  /** Until the next survey, or until a task that it has seen comes due. */
  #restMs({ survey, claimableInMs }: NothingFound, fraction: number): number {
    const nextSurveyInMs = survey.beganAt + this.#pace.restMs - this.#context.clock.monotonic();
    return Math.max(1, Math.min(nextSurveyInMs, claimableInMs + wakeSpreadMs * fraction));
  }

  /** Waits for a time, for a place to fall free, or for the loop's end, whichever comes first. */
  async #wait(ms: number): Promise<void> {
    const over = new AbortController();
    this.#wake = () => over.abort();
    const { signal } = this.#terms;
    const either = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
    await this.#sleep(ms, either);
  }

  /** Sleeps until the signal aborts at the latest; rejects when the client is closed. */
  async #sleep(ms: number, signal = this.#terms.signal): Promise<void> {
    await this.#context.lifecycle.pause(ms, signal);
  }
}
