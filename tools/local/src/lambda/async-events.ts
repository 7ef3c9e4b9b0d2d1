// Asynchronous invocations: attempts, retries and their end, under one request id for each event.

import type { Clock } from "@leasehold/client";
import { TooManyRequestsException } from "./errors.ts";
import type { FunctionPool } from "./function-pool.ts";
import { type Outcome, payloadOf } from "./outcome.ts";

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
    this.#deliver(requestId, payload).catch(this.#report);
  }

  /** Forgets every event; none is tried or reported any more. */
  close(): void {
    this.#closed = true;
    for (const cancel of this.#pending) cancel();
    this.#pending.clear();
  }

  async #deliver(requestId: string, payload: string): Promise<void> {
    const { arn, retries, retryDelayMs, onAsyncFailure } = this.#pool.definition;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(requestId, payload);
      if (outcome?.functionError === undefined || this.#closed) return;
      if (attempt > retries) {
        onAsyncFailure?.({
          version: "1.0",
          timestamp: new Date(this.#clock.now()).toISOString(),
          requestContext: {
            requestId,
            functionArn: `${arn}:$LATEST`,
            condition: "RetriesExhausted",
            approximateInvokeCount: attempt,
          },
          requestPayload: JSON.parse(payload),
          responseContext: { statusCode: 200, executedVersion: "$LATEST", functionError: "Unhandled" },
          responsePayload: payloadOf(outcome),
        });
        return;
      }
      await this.#wait((resume) => this.#clock.schedule(resume, retryDelayMs * 2 ** (attempt - 1)));
    }
  }

  /** One attempt, as soon as there is room; undefined after a close. */
  async #attempt(requestId: string, payload: string): Promise<Outcome | undefined> {
    while (!this.#closed) {
      try {
        return await this.#pool.invoke(requestId, payload);
      } catch (error) {
        if (!(error instanceof TooManyRequestsException)) throw error;
      }
      await this.#wait((resume) => this.#pool.onceFree(resume));
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
}
