// Lambda on this machine: functions, their processes, invocations, freezes and kills.

import { randomUUID } from "node:crypto";
import { systemClock } from "@leasehold/client";
import { callListener, throwUncaught } from "../program-errors.ts";
import { Environment, type EnvironmentContext, type Invocation } from "./environment.ts";
import { ResourceNotFoundException, RuntimeClosedError, TooManyRequestsException } from "./errors.ts";
import { OrphanGuard, type Outcome } from "./sandbox.ts";
import type {
  EnvironmentInfo,
  FunctionDefinition,
  InvokeOptions,
  InvokeResult,
  LambdaRuntimeOptions,
} from "./types.ts";

/** A function, and its environments by their ids: an idle one serves the next invocation, and without one another is started. */
interface Pool {
  readonly definition: FunctionDefinition;
  readonly environments: Map<string, Environment>;
  started: number;
}

/**
 * Lambda on this machine: each function's bundle in processes of its own.
 *
 * Processes are reused, stopped between invocations, killed at the timeout, and bounded by the reserved concurrency,
 * as on Lambda. They have the machine's network and files, and no memory limit but the heap's. Needs a POSIX system,
 * and Node 24 where it runs from its sources.
 */
export class LambdaRuntime {
  readonly #context: EnvironmentContext;
  readonly #functions = new Map<string, Pool>();
  /** End the waits for the next attempts of asynchronous events. */
  readonly #retries = new Set<() => void>();
  #closing: Promise<void> | undefined;

  private constructor(context: EnvironmentContext) {
    this.#context = context;
  }

  /**
   * Starts a runtime without any function.
   *
   * An error that `onLog` or `onEvent` throws disturbs nothing here and is thrown again on the next tick.
   */
  static async start(options: LambdaRuntimeOptions = {}): Promise<LambdaRuntime> {
    const { onLog, onEvent, clock = systemClock, baseEnvironment = {} } = options;
    checkPlatform();
    return new LambdaRuntime({
      clock,
      guard: new OrphanGuard(),
      baseEnvironment: { ...baseEnvironment },
      log: (line) => callListener(() => onLog?.(line)),
      publish: (event) => callListener(() => onEvent?.(event)),
    });
  }

  /** Adds a function. Nothing is started until it is invoked. */
  define(definition: FunctionDefinition): void {
    this.#functions.set(definition.name, { definition, environments: new Map(), started: 0 });
  }

  /**
   * Invokes a function and waits for its end. A function's own failure is a result with `functionError`.
   *
   * An undefined payload is `{}` to the handler, and an undefined result is null to the caller.
   *
   * @throws TooManyRequestsException where the reserved concurrency is in use.
   * @throws ResourceNotFoundException for a name that was never defined.
   * @throws RuntimeClosedError once `close` was called.
   */
  async invoke(name: string, payload?: unknown, options: InvokeOptions = {}): Promise<InvokeResult> {
    const { signal, requestId = randomUUID() } = options;
    signal?.throwIfAborted();
    const invoked = this.#invoke(this.#function(name), requestId, requestText(payload));
    const outcome = await abortable(invoked, signal);
    return {
      payload: JSON.parse(outcome.payload),
      ...(outcome.functionError ? { functionError: outcome.functionError } : {}),
      requestId,
    };
  }

  /**
   * Hands an event over and returns its request id, which all its attempts have.
   *
   * A failed one is tried again, `retries` times, as long as the runtime is open, and is dropped then. One beyond the
   * reserved concurrency waits on Lambda; here it is an uncaught error.
   *
   * @throws ResourceNotFoundException, RuntimeClosedError
   */
  invokeAsync(name: string, payload?: unknown): string {
    const requestId = randomUUID();
    const pool = this.#function(name);
    const { retries, retryDelayMs } = pool.definition;
    const accept = async (): Promise<void> => {
      for (let attempt = 0; ; attempt++) {
        const { functionError } = await this.#invoke(pool, requestId, requestText(payload));
        if (functionError === undefined || attempt >= retries || this.#closing !== undefined) return;
        await this.#wait(retryDelayMs * 2 ** attempt);
      }
    };
    accept().catch(throwUncaught);
    return requestId;
  }

  /** The environments that have a process, or are about to: one function's, or all. */
  environments(name?: string): EnvironmentInfo[] {
    return [...this.#functions.values()]
      .filter(({ definition }) => name === undefined || definition.name === name)
      .flatMap(({ environments }) => [...environments.values()].map(({ info }) => info));
  }

  /**
   * Kills an environment as a crash would: the invocation under way fails with Runtime.ExitError.
   *
   * Resolves when the process is gone.
   *
   * @throws ResourceNotFoundException for an environment that is gone.
   */
  async kill(id: string): Promise<void> {
    const environment = this.#environment(id);
    environment.kill();
    await environment.gone;
  }

  /**
   * Stops a process in the middle of whatever it does. Its timeout runs on, and kills it when it is over.
   *
   * @throws ResourceNotFoundException for an environment that is gone.
   */
  freeze(id: string): void {
    this.#environment(id).freeze();
  }

  /**
   * Continues a process that `freeze` stopped. An idle one stays stopped until its next invocation.
   *
   * @throws ResourceNotFoundException for an environment that is gone.
   */
  thaw(id: string): void {
    this.#environment(id).thaw();
  }

  /**
   * Ends every process: idle ones with SIGTERM and 400 ms to react, the others at once. What they were doing fails
   * with Runtime.ExitError. Resolves when all are gone; further calls give the same promise.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    for (const cancel of this.#retries) cancel();
    const environments = [...this.#functions.values()].flatMap((pool) => [...pool.environments.values()]);
    await Promise.all(environments.map((environment) => environment.shutdown()));
    await this.#context.guard.close();
  }

  #invoke(pool: Pool, requestId: string, payload: string): Promise<Outcome> {
    if (this.#closing !== undefined) throw new RuntimeClosedError();
    const { promise, resolve: settle } = Promise.withResolvers<Outcome>();
    const invocation = { requestId, payload, settle };
    // The one used last: the others stay frozen, as they would be when the load fell.
    const idle = [...pool.environments.values()].findLast(({ state }) => state === "idle");
    if (idle) idle.invoke(invocation);
    else this.#add(pool, invocation);
    return promise;
  }

  #add(pool: Pool, invocation: Invocation): void {
    const { definition, environments } = pool;
    const { name, reservedConcurrency: limit } = definition;
    // One that is gone still counts: its process may not have ended.
    if (limit !== undefined && environments.size >= limit) throw new TooManyRequestsException(name, limit);
    pool.started += 1;
    const id = `${name}#${pool.started}`;
    const forget = (): void => void environments.delete(id);
    environments.set(id, new Environment(id, definition, this.#context, invocation, forget));
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

  #function(name: string): Pool {
    if (this.#closing !== undefined) throw new RuntimeClosedError();
    const pool = this.#functions.get(name);
    if (pool === undefined) throw new ResourceNotFoundException(`Function not found: ${name}`);
    return pool;
  }

  #environment(id: string): Environment {
    for (const { environments } of this.#functions.values()) {
      const environment = environments.get(id);
      if (environment) return environment;
    }
    throw new ResourceNotFoundException(`Environment not found: ${id}`);
  }
}

/** Lambda gives the handler an empty event where the caller gave none. */
function requestText(payload: unknown): string {
  return payload === undefined ? "{}" : JSON.stringify(payload);
}

function checkPlatform(): void {
  if (process.platform === "win32") {
    throw new Error("functions cannot be frozen on Windows: run the local app in WSL or in a container");
  }
  if (!process.features.typescript) {
    throw new Error(
      `functions run from the sources need Node 24, and this is ${process.version}: start it by an npm script`,
    );
  }
}

/** The promise, or the signal's reason if that comes first. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
