import { type AppParts, assemble } from "./app/assemble.ts";
import type { LocalAppOptions, QueueMessage } from "./app/options.ts";
import type { AppSpec, Json, ResourceName, TableSpec } from "./assembly/types.ts";
import type { EnvironmentInfo, InvokeOptions, InvokeResult } from "./lambda/types.ts";
import type { BusEvent } from "./services/event-bus.ts";
import { type Fired, firingOf } from "./services/schedules.ts";
import type { ExecutionDescription, Failure } from "./state-machines/events.ts";
import type { ExecutionHistory } from "./state-machines/history.ts";

/**
 * Runs a synthesized app on this machine: its tables on the engine, its functions' own bundles in processes, its
 * streams and state machines. Its schedules fire at will.
 *
 * It takes seconds at most; nothing is compiled. Everything ends with `close()`. Where the start fails, what had begun
 * is ended first.
 *
 * Rejects with AssemblyError for an assembly that cannot be read or run here; with InvalidDefinitionError
 * for a state machine, and UnsupportedFilterError for a stream's filter that is not known here; and with the engine's error
 * where a table cannot be created.
 *
 * @example
 * await using engine = await startEngine();
 * await using app = await startApp({ assemblyDir: "cdk.out", engine });
 * const { payload } = await app.invoke("Acquire", { key: "orders" });
 */
export async function startApp(options: LocalAppOptions): Promise<LocalApp> {
  const cleanups = new AsyncDisposableStack();
  try {
    return new LocalApp(await assemble(options, cleanups), cleanups);
  } catch (error) {
    // Ignored: the first error tells why; what goes wrong on the way out would hide it.
    await cleanups.disposeAsync().catch(() => {});
    throw error;
  }
}

/**
 * A synthesized app that runs here; made by {@link startApp}.
 *
 * Wherever an `id` is asked for, the logical id, the physical name, the ARN or the end of the construct path will do;
 * UnknownResourceError is thrown for one that nothing, or more than one thing, is called by.
 */
export class LocalApp implements AsyncDisposable {
  readonly #parts: AppParts;
  readonly #cleanups: AsyncDisposableStack;
  #closing: Promise<void> | undefined;

  /** Use {@link startApp}. */
  constructor(parts: AppParts, cleanups: AsyncDisposableStack) {
    this.#parts = parts;
    this.#cleanups = cleanups;
  }

  /** What the assembly amounts to: every resource with its names. */
  get spec(): AppSpec {
    return this.#parts.spec;
  }

  /** The stacks' outputs, as `<stack>.<output>`. */
  get outputs(): Readonly<Record<string, Json>> {
    return this.spec.outputs;
  }

  /**
   * Where Step Functions, Lambda and EventBridge answer for this app, in the same words as on AWS: for an SDK client
   * whose `endpoint` it is. Signatures are not checked.
   */
  get servicesEndpoint(): string {
    return this.#parts.servicesEndpoint;
  }

  /** The tables, with their physical names. */
  get tables(): readonly TableSpec[] {
    return this.spec.tables;
  }

  /** The physical name of a table. */
  tableName(id: string): string {
    return findResource("table", this.spec.tables, id).name;
  }

  /** Invokes a function and waits for its end; a function's own failure is a result with `functionError`. */
  invoke(id: string, payload?: unknown, options: InvokeOptions = {}): Promise<InvokeResult> {
    return this.#parts.lambda.invoke(this.#functionName(id), payload, options);
  }

  /** The processes of a function, or of all. */
  environments(id?: string): EnvironmentInfo[] {
    return this.#parts.lambda.environments(id === undefined ? undefined : this.#functionName(id));
  }

  /** Kills a process as a crash would. Resolves when it is gone. */
  kill(environmentId: string): Promise<void> {
    return this.#parts.lambda.kill(environmentId);
  }

  /** Stops a process in the middle of whatever it does, until `thaw`. */
  freeze(environmentId: string): void {
    this.#parts.lambda.freeze(environmentId);
  }

  /** Lets a process go on that `freeze` stopped. */
  thaw(environmentId: string): void {
    this.#parts.lambda.thaw(environmentId);
  }

  /** Starts an execution of a state machine. Throws StatesError with the names of the Step Functions API. */
  startExecution(id: string, input: unknown = {}, name?: string): { readonly executionArn: string } {
    const { arn } = findResource("state machine", this.spec.stateMachines, id);
    return this.#parts.machines.start({ stateMachineArn: arn, input, name });
  }

  /** The executions of a state machine, or of all, in the order of their start. */
  executions(id?: string): ExecutionDescription[] {
    const { machines } = this.#parts;
    if (id === undefined) return machines.executions();
    return machines.executions(findResource("state machine", this.spec.stateMachines, id).arn);
  }

  /** Resolves when an execution has ended, in whichever way. */
  finished(executionArn: string): Promise<ExecutionDescription> {
    return this.#parts.machines.finished(executionArn);
  }

  /** What an execution went through so far. */
  history(executionArn: string): ExecutionHistory {
    return this.#parts.machines.history(executionArn);
  }

  /** Stops an execution; one that has ended stays as it is. */
  stopExecution(executionArn: string, reason: Failure = {}): void {
    this.#parts.machines.stop(executionArn, reason);
  }

  /**
   * Fires a schedule now, whatever its state and its times: none fires by itself. Rejects with what its target refuses.
   *
   * @param options.scheduledTime The time that the target is told. @default - now, in whole seconds
   */
  async fire(id: string, options: { readonly scheduledTime?: Date } = {}): Promise<Fired> {
    const schedule = findResource("schedule", this.spec.schedules, id);
    const { scheduledTime = new Date(Math.floor(Date.now() / 1000) * 1000) } = options;
    const fired = firingOf(schedule, scheduledTime);
    this.#parts.send(schedule.targetArn, fired.input);
    return fired;
  }

  /** Every event that was put on a bus, the oldest first. */
  get events(): readonly BusEvent[] {
    return this.#parts.events;
  }

  /** The messages of a queue, the oldest first. Nothing takes them out. */
  messages(id: string): readonly QueueMessage[] {
    return this.#parts.queues.get(findResource("queue", this.spec.queues, id).arn) ?? [];
  }

  /** Ends everything that the app began, and deletes its tables if they have a suffix. The engine goes on. */
  close(): Promise<void> {
    this.#closing ??= this.#cleanups.disposeAsync();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #functionName(id: string): string {
    return findResource("function", this.spec.functions, id).name;
  }
}

/** Nothing in the app, or more than one thing, is called like this; the message lists what there is. */
class UnknownResourceError extends Error {
  constructor(kind: string, id: string, known: readonly ResourceName[], isAmbiguous: boolean) {
    const names = known.map(({ path, logicalId }) => path ?? logicalId).join(", ");
    const problem = isAmbiguous ? `more than one ${kind} is` : `no ${kind} is`;
    super(`${problem} called ${JSON.stringify(id)}; there are: ${names === "" ? "none" : names}`);
    this.name = "UnknownResourceError";
  }
}

/**
 * Finds a resource by its logical id, physical name, ARN, or the end of its construct path (`Orders/Close`).
 *
 * @throws UnknownResourceError
 */
function findResource<Resource extends ResourceName>(
  kind: string,
  resources: readonly Resource[],
  id: string,
): Resource {
  const exact = resources.filter(({ logicalId, name, arn, path }) =>
    [logicalId, name, arn, path].includes(id),
  );
  const matches = exact.length > 0 ? exact : resources.filter(({ path }) => path?.endsWith(`/${id}`));
  const [match, ...others] = matches;
  if (match !== undefined && others.length === 0) return match;
  throw new UnknownResourceError(kind, id, resources, others.length > 0);
}
