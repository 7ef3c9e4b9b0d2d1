import { Environment, type EnvironmentContext, type Outcome } from "./environment.ts";
import { RuntimeClosedError, TooManyRequestsException } from "./errors.ts";
import type { FunctionDefinition } from "./types.ts";

/** A function's environments: an idle one serves the next invocation, and without one another is started. */
export class FunctionPool {
  readonly #definition: FunctionDefinition;
  readonly #context: EnvironmentContext;
  readonly #environments = new Map<string, Environment>();
  /** End the waits for the next attempts of asynchronous events. */
  readonly #retries = new Set<() => void>();
  #started = 0;
  #closed = false;

  constructor(definition: FunctionDefinition, context: EnvironmentContext) {
    this.#definition = definition;
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

  /**
   * Takes an asynchronous event in: it is tried, tried again after errors, and dropped in the end.
   *
   * All its attempts have its one request id. An event beyond the reserved concurrency waits on Lambda; here it is refused.
   */
  async accept(requestId: string, payload: string): Promise<void> {
    const { retries, retryDelayMs } = this.#definition;
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.invoke(requestId, payload);
      if (outcome.functionError === undefined || attempt >= retries || this.#closed) return;
      await this.#wait(retryDelayMs * 2 ** attempt);
    }
  }

  /** A close ends the wait for good: nothing comes after it. */
  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#context.clock.schedule(() => {
        this.#retries.delete(cancel);
        resolve();
      }, delayMs);
      this.#retries.add(cancel);
    });
  }

  /** Ends all environments, and forgets the events that wait. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const cancel of this.#retries) cancel();
    await Promise.all(this.environments.map((environment) => environment.shutdown()));
  }

  #add(invocation: { requestId: string; payload: string; settle: (outcome: Outcome) => void }): void {
    const { name, reservedConcurrency: limit } = this.#definition;
    // One that is gone still counts: its process may not have ended.
    if (limit !== undefined && this.#environments.size >= limit) {
      throw new TooManyRequestsException(name, limit);
    }
    this.#started += 1;
    const id = `${name}#${this.#started}`;
    const forget = (): void => void this.#environments.delete(id);
    const environment = new Environment(id, this.#definition, this.#context, invocation, forget);
    this.#environments.set(id, environment);
  }
}
