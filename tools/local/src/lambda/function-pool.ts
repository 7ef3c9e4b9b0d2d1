import type { Clock } from "@leasehold/client";
import { Environment, type EnvironmentContext, type Outcome, payloadOf } from "./environment.ts";
import { RuntimeClosedError, TooManyRequestsException } from "./errors.ts";
import type { CheckedFunction } from "./types.ts";

/**
 * A function's asynchronous events: each is tried, tried again after errors, and given up in the end.
 *
 * All its attempts have its one request id. An event beyond the reserved concurrency waits on Lambda; here it is reported.
 */
export class AsyncEvents {
  readonly #pool: FunctionPool;
  readonly #clock: Clock;
  readonly #report: (error: unknown) => void;
  /** Cancel the waits for the next attempts. */
  readonly #pending = new Set<() => void>();
  #closed = false;

  /** @param report Takes what an `onAsyncFailure` callback throws, and a TooManyRequestsException. */
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
      const outcome = await this.#pool.invoke(requestId, payload);
      if (outcome.functionError === undefined || this.#closed) return;
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
      await this.#wait(retryDelayMs * 2 ** (attempt - 1));
    }
  }

  /** A close ends the wait for good: nothing comes after it. */
  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(() => {
        this.#pending.delete(cancel);
        resolve();
      }, delayMs);
      this.#pending.add(cancel);
    });
  }
}

/** A function's environments: an idle one serves the next invocation, and without one another is started. */
export class FunctionPool {
  readonly definition: CheckedFunction;
  readonly #context: EnvironmentContext;
  readonly #environments = new Map<string, Environment>();
  #started = 0;
  #closed = false;

  constructor(definition: CheckedFunction, context: EnvironmentContext) {
    this.definition = definition;
    this.#context = context;
  }

  get environments(): readonly Environment[] {
    return [...this.#environments.values()];
  }

  environment(id: string): Environment | undefined {
    return this.#environments.get(id);
  }

  /** Runs one invocation; throws a TooManyRequestsException at once where the reserved concurrency is in use. */
  invoke(requestId: string, payload: string): Promise<Outcome> {
    if (this.#closed) throw new RuntimeClosedError();
    const { promise, resolve: settle } = Promise.withResolvers<Outcome>();
    const invocation = { requestId, payload, settle };
    // The one used last: the others stay frozen, as they would be when the load fell.
    const idle = this.environments.findLast(({ state }) => state === "idle");
    if (idle) idle.invoke(invocation);
    else this.#add(invocation);
    return promise;
  }

  /** Ends all environments. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.environments.map((environment) => environment.shutdown()));
  }

  #add(invocation: { requestId: string; payload: string; settle: (outcome: Outcome) => void }): void {
    const { name, reservedConcurrency: limit } = this.definition;
    // One that is gone still counts: its process may not have ended.
    if (limit !== undefined && this.#environments.size >= limit) {
      throw new TooManyRequestsException(name, limit);
    }
    this.#started += 1;
    const id = `${name}#${this.#started}`;
    const forget = (): void => void this.#environments.delete(id);
    const environment = new Environment(id, this.definition, this.#context, invocation, forget);
    this.#environments.set(id, environment);
  }
}
