import type { CheckedFunction } from "./definition.ts";
import { Environment, type EnvironmentContext } from "./environment.ts";
import { RuntimeClosedError, TooManyRequestsException } from "./errors.ts";
import type { Outcome } from "./outcome.ts";

/** A function's environments: an idle one serves the next invocation, and without one another is started. */
export class FunctionPool {
  readonly definition: CheckedFunction;
  readonly #context: EnvironmentContext;
  readonly #environments = new Map<string, Environment>();
  /** Asynchronous events that were throttled, first come, first served. */
  #waiting: (() => void)[] = [];
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

  /** Calls back once when an invocation may have room, unless the function that it returns is called before. */
  onceFree(callback: () => void): () => void {
    this.#waiting.push(callback);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== callback);
    };
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
    const environment: Environment = new Environment(id, this.definition, this.#context, invocation, () => {
      if (environment.state === "gone") this.#environments.delete(id);
      this.#waiting.shift()?.();
    });
    this.#environments.set(id, environment);
  }
}
