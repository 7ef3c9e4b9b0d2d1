// Asynchronous invocations: attempts, retries and their end, under one request id for each event.

import type { Clock } from "@leasehold/client";
import { TooManyRequestsException } from "./errors.ts";
import type { FunctionPool } from "./function-pool.ts";
import { type Outcome, payloadOf } from "./outcome.ts";
import type { AsyncFailureRecord } from "./types.ts";

/** An event that Lambda has accepted and answers for from then on. */
interface AcceptedEvent {
  readonly requestId: string;
  readonly payload: string;
  /** On the monotonic clock. */
  readonly expiresAt: number;
}

/**
 * A function's asynchronous events: each is tried, tried again after errors, and given up in the end.
 *
 * A throttled event waits until there is room, which is no attempt. Lambda polls with growing delays instead; that
 * only makes it later. All attempts of an event have its one request id.
 */
export class AsyncEvents {
  readonly #pool: FunctionPool;
  readonly #clock: Clock;
  readonly #report: (error: unknown) => void;
  readonly #pending = new Set<() => void>();
  #closed = false;

  /** @param report Takes what an `onAsyncFailure` callback throws. */
  constructor(pool: FunctionPool, clock: Clock, report: (error: unknown) => void) {
    this.#pool = pool;
    this.#clock = clock;
    this.#report = report;
  }

  /** Takes an event in. */
  accept(requestId: string, payload: string): void {
    const { maxEventAgeMs } = this.#pool.definition;
    const event = { requestId, payload, expiresAt: this.#clock.monotonic() + maxEventAgeMs };
    this.#deliver(event).catch(this.#report);
  }

  /** Forgets every event; none is tried or reported any more. */
  close(): void {
    this.#closed = true;
    for (const cancel of this.#pending) cancel();
    this.#pending.clear();
  }

  async #deliver(event: AcceptedEvent): Promise<void> {
    const { retries, retryDelayMs, reservedConcurrency } = this.#pool.definition;
    if (reservedConcurrency === 0) {
      this.#giveUp(event, "ZeroReservedConcurrency", 0);
      return;
    }
    let last: Outcome | undefined;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(event);
      if (this.#closed) return;
      if (outcome === undefined) {
        this.#giveUp(event, "EventAgeExceeded", attempt - 1, last);
        return;
      }
      if (!outcome.functionError) return;
      last = outcome;
      if (attempt > retries) {
        this.#giveUp(event, "RetriesExhausted", attempt, last);
        return;
      }
      const delayMs = retryDelayMs * 2 ** (attempt - 1);
      if (this.#clock.monotonic() + delayMs > event.expiresAt) {
        this.#giveUp(event, "EventAgeExceeded", attempt, last);
        return;
      }
      await this.#wait((resume) => this.#clock.schedule(resume, delayMs));
    }
  }

  /** One attempt, as soon as there is room; undefined when the event became too old for it. */
  async #attempt(event: AcceptedEvent): Promise<Outcome | undefined> {
    while (!this.#closed) {
      try {
        return await this.#pool.invoke(event.requestId, event.payload);
      } catch (error) {
        if (!(error instanceof TooManyRequestsException)) throw error;
      }
      const leftMs = event.expiresAt - this.#clock.monotonic();
      if (leftMs <= 0) return undefined;
      await this.#wait((resume) => {
        const stopWaiting = this.#pool.onceFree(resume);
        const cancelTimer = this.#clock.schedule(resume, leftMs);
        return () => {
          stopWaiting();
          cancelTimer();
        };
      });
    }
    return undefined;
  }

  /** Waits until what it starts resumes it. A close ends the wait for good: nothing comes after it. */
  #wait(start: (resume: () => void) => () => void): Promise<void> {
    return new Promise((resolve) => {
      const cancel = start(() => {
        cancel();
        this.#pending.delete(cancel);
        resolve();
      });
      this.#pending.add(cancel);
    });
  }

  #giveUp(
    event: AcceptedEvent,
    condition: AsyncFailureRecord["requestContext"]["condition"],
    attempts: number,
    last?: Outcome,
  ): void {
    const { arn, onAsyncFailure } = this.#pool.definition;
    onAsyncFailure?.({
      version: "1.0",
      timestamp: new Date(this.#clock.now()).toISOString(),
      requestContext: {
        requestId: event.requestId,
        functionArn: `${arn}:$LATEST`,
        condition,
        approximateInvokeCount: attempts,
      },
      requestPayload: JSON.parse(event.payload),
      ...(last === undefined
        ? {}
        : {
            responseContext: { statusCode: 200, executedVersion: "$LATEST", functionError: "Unhandled" },
            responsePayload: payloadOf(last),
          }),
    });
  }
}
