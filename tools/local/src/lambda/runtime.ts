// Lambda on this machine: functions, their processes, invocations, freezes and kills.

import { randomUUID } from "node:crypto";
import { systemClock } from "@leasehold/client";
import { callListener, throwUncaught } from "../program-errors.ts";
import { type Environment, type EnvironmentContext, payloadOf } from "./environment.ts";
import { LambdaServiceError, ResourceNotFoundException, RuntimeClosedError } from "./errors.ts";
import { FunctionPool } from "./function-pool.ts";
import { OrphanGuard } from "./sandbox.ts";
import type {
  EnvironmentInfo,
  FunctionDefinition,
  InvokeOptions,
  InvokeResult,
  LambdaRuntimeOptions,
} from "./types.ts";

/**
 * Lambda on this machine: each function's bundle in processes of its own, over the Runtime API.
 *
 * Processes are reused, stopped between invocations, killed at the timeout, and bounded by the reserved concurrency,
 * as on Lambda. They have the machine's network and files, and no memory limit but the heap's. Needs a POSIX system,
 * and Node 24 where it runs from its sources.
 */
export class LambdaRuntime {
  readonly #context: EnvironmentContext;
  readonly #functions = new Map<string, FunctionPool>();
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

  /**
   * Adds a function. Nothing is started until it is invoked.
   *
   * @throws LambdaServiceError for a name that is taken.
   */
  define(definition: FunctionDefinition): void {
    if (this.#closing !== undefined) throw new RuntimeClosedError();
    const { name } = definition;
    if (this.#functions.has(name)) throw new LambdaServiceError(`there is a function ${name} already`);
    this.#functions.set(name, new FunctionPool(definition, this.#context));
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
    const pool = this.#function(name);
    const text = requestText(payload);
    signal?.throwIfAborted();
    const outcome = await abortable(pool.invoke(requestId, text), signal);
    return {
      payload: payloadOf(outcome),
      ...(outcome.functionError ? { functionError: outcome.functionError } : {}),
      requestId,
    };
  }

  /**
   * Hands an event over and returns its request id, which all its attempts have.
   *
   * A failed one is tried again, `retries` times, as long as the runtime is open, and is dropped then. One beyond the
   * reserved concurrency is an uncaught error.
   *
   * @throws ResourceNotFoundException, RuntimeClosedError
   */
  invokeAsync(name: string, payload?: unknown): string {
    const requestId = randomUUID();
    this.#function(name).accept(requestId, requestText(payload)).catch(throwUncaught);
    return requestId;
  }

  /** The environments that have a process, or are about to: one function's, or all. */
  environments(name?: string): EnvironmentInfo[] {
    const functions = name === undefined ? [...this.#functions.values()] : [this.#function(name, false)];
    return functions.flatMap((pool) => pool.environments.map(({ info }) => info));
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
    await Promise.all([...this.#functions.values()].map((pool) => pool.close()));
    await this.#context.guard.close();
  }

  #function(name: string, running = true): FunctionPool {
    if (running && this.#closing !== undefined) throw new RuntimeClosedError();
    const pool = this.#functions.get(name);
    if (pool === undefined) throw new ResourceNotFoundException(`Function not found: ${String(name)}`);
    return pool;
  }

  #environment(id: string): Environment {
    for (const pool of this.#functions.values()) {
      const environment = pool.environment(id);
      if (environment) return environment;
    }
    throw new ResourceNotFoundException(`Environment not found: ${String(id)}`);
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
