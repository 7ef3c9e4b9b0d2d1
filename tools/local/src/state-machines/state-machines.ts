// Step Functions on this machine: definitions, executions and task tokens, in memory.

import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@leasehold/client";
import { callListener } from "../program-errors.ts";
import { statesLimits, supportedDefinition } from "./definition.ts";
import { StatesError } from "./errors.ts";
import type { ExecutionDescription, Failure, StateMachineListener } from "./events.ts";
import { type DefinedMachine, Execution } from "./execution.ts";
import type { ExecutionHistory } from "./history.ts";
import { asPayload, Evaluator } from "./jsonata.ts";
import type { Interpreter } from "./state-run.ts";
import { type ServiceCall, TaskTokens } from "./task.ts";

export interface StateMachinesOptions {
  /** All waiting and all times, those of JSONata included, come from it. */
  readonly clock: Clock;
  /** Performs the service integrations of Task states. */
  readonly call: ServiceCall;
  readonly onEvent?: StateMachineListener;
  /** From 0 (included) to 1 (excluded), for jitter, and what JSONata's `$random()` gives. @default Math.random */
  readonly random?: () => number;
  /** How long it takes to enter a state. @default () => 0 */
  readonly transitionMs?: () => number;
  /** What JSONata's `$uuid()` gives. @default randomUUID */
  readonly uuid?: () => string;
}

/**
 * Runs state machines in Amazon States Language whose states are in JSONata, as standard workflows.
 *
 * A tool for development and tests: everything is in memory and gone at the end. It does Pass, Task (with task
 * tokens), Choice, Wait, Succeed, Fail, Parallel and inline Map, and refuses the rest when it is defined.
 */
export class StateMachines {
  readonly #interpreter: Interpreter;
  readonly #machines = new Map<string, DefinedMachine>();
  readonly #executions = new Map<string, Execution>();
  #closed = false;

  constructor(options: StateMachinesOptions) {
    const { clock, call, onEvent, random = Math.random, uuid = randomUUID, transitionMs = () => 0 } = options;
    this.#interpreter = {
      clock,
      call,
      random,
      transitionMs,
      evaluator: new Evaluator(clock, uuid, random),
      tokens: new TaskTokens(),
      publish: (event) => callListener(() => onEvent?.(event)),
    };
  }

  /**
   * Adds a state machine, or replaces the one with the same ARN; executions under way keep what they started with.
   *
   * @param machine.definition an object, or its JSON
   * @throws InvalidDefinitionError with everything in it that this interpreter does not do
   */
  define(machine: { readonly arn: string; readonly name: string; readonly definition: unknown }): void {
    const { arn, name } = machine;
    this.#machines.set(arn, { arn, name, definition: supportedDefinition(name, machine.definition) });
  }

  /**
   * Starts an execution, or gives the one that runs already under the same name with the same input.
   *
   * @param request.input a plain JSON value. @default {}
   * @param request.name at most 80 characters, without spaces, colons and other special ones. @default a UUID
   * @throws StatesError `StateMachineDoesNotExist`, `InvalidName`, `States.DataLimitExceeded`, or
   *   `ExecutionAlreadyExists` for a name that had another input, or whose execution has ended
   */
  start(request: {
    readonly stateMachineArn: string;
    readonly name?: string | undefined;
    readonly input?: unknown;
  }): { readonly executionArn: string; readonly startDate: string } {
    if (this.#closed) throw new StatesError("StateMachineDeleting", "the state machines were closed");
    const { stateMachineArn, name = randomUUID(), input = {} } = request;
    const machine = this.#machines.get(stateMachineArn);
    if (machine === undefined) throw new StatesError("StateMachineDoesNotExist", stateMachineArn);
    checkName(name);
    const execution = new Execution(this.#interpreter, machine, name, asPayload(input, "The input"));
    const { arn: executionArn, startDate } = this.#existing(execution) ?? this.#launch(execution);
    return { executionArn, startDate };
  }

  /** @throws StatesError `ExecutionDoesNotExist` */
  describe(executionArn: string): ExecutionDescription {
    return this.#execution(executionArn).describe();
  }

  /**
   * Stops an execution; its tasks' signals abort. One that has ended stays as it is.
   *
   * @throws StatesError `ExecutionDoesNotExist`
   */
  stop(executionArn: string, reason: Failure = {}): { readonly stopDate: string } {
    const execution = this.#execution(executionArn);
    execution.end({ status: "ABORTED", ...reason });
    return { stopDate: execution.describe().stopDate ?? "" };
  }

  /**
   * Lets an execution go on that failed, timed out or was stopped: from every state that was entered and not left, with
   * that state's input and variables. Retries and timeouts begin anew, and `RedriveCount` of the context grows.
   *
   * @throws StatesError `ExecutionDoesNotExist`, or `ExecutionNotRedrivable` with the reason as its cause
   */
  redrive(executionArn: string): { readonly redriveDate: string } {
    const execution = this.#execution(executionArn);
    execution.redrive();
    return { redriveDate: execution.redriveDate ?? "" };
  }

  /** @throws StatesError `TaskTimedOut` when the task is over, `TaskDoesNotExist` */
  sendTaskSuccess(token: string, output: unknown): void {
    const waiter = this.#interpreter.tokens.waiter(token);
    waiter.succeed(asPayload(output, "The output"));
  }

  /** @throws StatesError `TaskTimedOut` when the task is over, `TaskDoesNotExist` */
  sendTaskFailure(token: string, { error = "States.TaskFailed", cause }: Failure): void {
    this.#interpreter.tokens.waiter(token).fail(new StatesError(error, cause));
  }

  /** All executions, of one state machine or of all, in the order of their start. */
  executions(stateMachineArn?: string): ExecutionDescription[] {
    return [...this.#executions.values()]
      .filter(({ machine }) => stateMachineArn === undefined || machine.arn === stateMachineArn)
      .map((execution) => execution.describe());
  }

  /** Resolves when the execution has ended, in whichever way. @throws StatesError `ExecutionDoesNotExist` */
  async finished(executionArn: string): Promise<ExecutionDescription> {
    return this.#execution(executionArn).finished;
  }

  /** What the execution went through so far. @throws StatesError `ExecutionDoesNotExist` */
  history(executionArn: string): ExecutionHistory {
    return this.#execution(executionArn).history.snapshot();
  }

  /** Stops every execution, and with it every timer and task. Nothing can be started afterwards. */
  close(): void {
    this.#closed = true;
    for (const { arn } of this.#executions.values())
      this.stop(arn, { cause: "the state machines were closed" });
  }

  #launch(execution: Execution): Execution {
    this.#executions.set(execution.arn, execution);
    // Later, so that the caller has its ARN before the first event.
    queueMicrotask(() => void execution.run());
    return execution;
  }

  #existing({ arn, input, name }: Execution): Execution | undefined {
    const existing = this.#executions.get(arn);
    if (existing === undefined) return undefined;
    if (existing.describe().status !== "RUNNING" || !isDeepStrictEqual(existing.input, input)) {
      throw new StatesError("ExecutionAlreadyExists", `Execution Already Exists: '${name}'`);
    }
    return existing;
  }

  #execution(executionArn: string): Execution {
    const execution = this.#executions.get(executionArn);
    if (execution === undefined) throw new StatesError("ExecutionDoesNotExist", executionArn);
    return execution;
  }
}

function checkName(name: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Step Functions refuses them too.
  const refused = /[\s<>{}[\]?*"#%\\^|~`$&,;:/\u0000-\u001f\u007f-\u009f]/;
  if (name === "" || name.length > statesLimits.nameLength || refused.test(name)) {
    throw new StatesError("InvalidName", `Invalid Name: '${name}'`);
  }
}
