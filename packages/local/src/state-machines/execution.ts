import type { Clock } from "@leasehold/client";
import type { StateMachineDefinition } from "./definition.ts";
import { Interrupted, toStatesError } from "./errors.ts";
import type { StateMachineEvent } from "./events.ts";
import { History } from "./history.ts";
import type { Evaluator } from "./jsonata.ts";
import { runGraph } from "./run.ts";
import type { ServiceCall, TaskTokens } from "./task.ts";
import { after, isoTime } from "./timers.ts";

export type ExecutionStatus = "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED" | "TIMED_OUT";

/** What is known of an execution. Input and output are plain JSON values, times ISO texts. */
export interface ExecutionDescription {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly name: string;
  readonly status: ExecutionStatus;
  readonly startDate: string;
  readonly stopDate?: string;
  readonly input: unknown;
  /** Only when it succeeded. */
  readonly output?: unknown;
  /** Only when it failed, or was stopped with one. */
  readonly error?: string;
  readonly cause?: string;
}

/** What all executions share. */
export interface Interpreter {
  readonly clock: Clock;
  readonly random: () => number;
  readonly evaluator: Evaluator;
  readonly tokens: TaskTokens;
  readonly call: ServiceCall;
  readonly publish: (event: StateMachineEvent) => void;
}

/** The machine that an execution runs, as it was defined at the start. */
export interface DefinedMachine {
  readonly arn: string;
  readonly name: string;
  readonly definition: StateMachineDefinition;
}

type Ending = Pick<ExecutionDescription, "output" | "error" | "cause"> & {
  readonly status: Exclude<ExecutionStatus, "RUNNING">;
};

const lastEvent: Readonly<Record<Ending["status"], string>> = {
  SUCCEEDED: "ExecutionSucceeded",
  FAILED: "ExecutionFailed",
  ABORTED: "ExecutionAborted",
  TIMED_OUT: "ExecutionTimedOut",
};

/** One run of a state machine. Its first ending counts; what comes later changes nothing. */
export class Execution {
  readonly arn: string;
  readonly name: string;
  readonly input: unknown;
  readonly machine: DefinedMachine;
  readonly startDate: string;
  readonly interpreter: Interpreter;
  readonly history: History;
  readonly finished: Promise<ExecutionDescription>;
  readonly #stop = new AbortController();
  readonly #announce: (description: ExecutionDescription) => void;
  #ending: (Ending & { readonly stopDate: string }) | undefined;
  #cancelTimeout = (): void => {};

  constructor(interpreter: Interpreter, machine: DefinedMachine, name: string, input: unknown) {
    this.arn = `${machine.arn.replace(":stateMachine:", ":execution:")}:${name}`;
    this.name = name;
    this.input = input;
    this.machine = machine;
    this.interpreter = interpreter;
    this.startDate = isoTime(interpreter.clock);
    this.history = new History(() =>
      this.end({
        status: "FAILED",
        error: "States.Runtime",
        cause: "The execution reached the maximum number of history events (25000).",
      }),
    );
    const { promise, resolve } = Promise.withResolvers<ExecutionDescription>();
    this.finished = promise;
    this.#announce = resolve;
  }

  /** Aborts when the execution ends in any way but by itself. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Runs to the end. Never rejects. */
  async run(): Promise<void> {
    if (this.#ending !== undefined) return;
    const { definition } = this.machine;
    const { clock } = this.interpreter;
    if (definition.TimeoutSeconds !== undefined) {
      const timeoutMs = definition.TimeoutSeconds * 1000;
      this.#cancelTimeout = after(clock, timeoutMs, () => this.end({ status: "TIMED_OUT" }));
    }
    this.history.add("ExecutionStarted");
    this.interpreter.publish({ type: "started", ...this.#identity() });
    try {
      const branch = { execution: this, signal: this.signal, variables: {} };
      const output = await runGraph(definition, this.input, branch);
      this.end({ status: "SUCCEEDED", output });
    } catch (thrown) {
      if (thrown instanceof Interrupted) return;
      const { error, cause } = toStatesError(thrown);
      // Fail need not name its error.
      this.end({
        status: "FAILED",
        ...(error === "" ? {} : { error }),
        ...(cause === undefined ? {} : { cause }),
      });
    }
  }

  /** Ends the execution, unless it has ended. */
  end(ending: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = { ...ending, stopDate: isoTime(this.interpreter.clock) };
    this.#cancelTimeout();
    this.history.close(lastEvent[ending.status]);
    this.#stop.abort(new Interrupted(`the execution ${this.arn} has ended: ${ending.status}`));
    const { output: _, ...shown } = ending;
    this.interpreter.publish({ type: "finished", ...this.#identity(), ...shown });
    this.#announce(this.describe());
  }

  describe(): ExecutionDescription {
    return {
      ...this.#identity(),
      name: this.name,
      startDate: this.startDate,
      input: this.input,
      status: "RUNNING",
      ...this.#ending,
    };
  }

  #identity(): { executionArn: string; stateMachineArn: string } {
    return { executionArn: this.arn, stateMachineArn: this.machine.arn };
  }
}
