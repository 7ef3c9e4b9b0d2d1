// One execution of a machine. Its first ending counts.

import { callAfter } from "@leasehold/client/internal";
import type { StateMachineDefinition } from "./definition.ts";
import { Interrupted, StatesError, toStatesError } from "./errors.ts";
import type { ExecutionDescription, ExecutionStatus, Failure } from "./events.ts";
import { History } from "./history.ts";
import { runGraph } from "./run-graph.ts";
import type { BranchCheckpoint, Interpreter, RunningExecution } from "./state-run.ts";
import { isoTime } from "./timers.ts";

/** The machine that an execution runs, as it was defined at the start. */
export interface DefinedMachine {
  readonly arn: string;
  readonly name: string;
  readonly definition: StateMachineDefinition;
}

type Ending = Failure & {
  readonly status: Exclude<ExecutionStatus, "RUNNING">;
  readonly output?: unknown;
};

const lastEvent: Readonly<Record<Ending["status"], string>> = {
  SUCCEEDED: "ExecutionSucceeded",
  FAILED: "ExecutionFailed",
  ABORTED: "ExecutionAborted",
  TIMED_OUT: "ExecutionTimedOut",
};

/** One execution of a state machine. Its first ending counts until it is redriven; what comes later changes nothing. */
export class Execution implements RunningExecution {
  readonly arn: string;
  readonly name: string;
  readonly input: unknown;
  readonly machine: DefinedMachine;
  readonly startDate: string;
  readonly interpreter: Interpreter;
  readonly history: History;
  redriveCount = 0;
  redriveDate: string | undefined;
  readonly #checkpoint: BranchCheckpoint = {};
  #stop = new AbortController();
  #end = Promise.withResolvers<ExecutionDescription>();
  #unwound: Promise<void> = Promise.resolve();
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
  }

  /** Resolves when the execution has ended, in whichever way; after a redrive, when it has ended again. */
  get finished(): Promise<ExecutionDescription> {
    return this.#end.promise;
  }

  /** Runs to the end. Never rejects. */
  run(): Promise<void> {
    this.#unwound = this.#run(() => {
      this.history.add("ExecutionStarted");
      this.interpreter.publish({ type: "started", ...this.#identity() });
    });
    return this.#unwound;
  }

  /**
   * Goes on from every state that was entered and not left.
   *
   * @throws StatesError `ExecutionNotRedrivable` while it runs, and after a success
   */
  redrive(): void {
    const { status } = this.describe();
    if (status === "RUNNING" || status === "SUCCEEDED")
      throw new StatesError("ExecutionNotRedrivable", `Execution is ${status} and cannot be redriven`);
    this.#ending = undefined;
    this.#stop = new AbortController();
    this.#end = Promise.withResolvers();
    this.redriveCount += 1;
    this.redriveDate = isoTime(this.interpreter.clock);
    const { redriveCount } = this;
    // What was aborted has to be out of the way, or its last events would count for the redriven execution.
    this.#unwound = this.#unwound.then(() =>
      this.#run(() => {
        this.history.reopen("ExecutionRedriven");
        this.interpreter.publish({ type: "redriven", redriveCount, ...this.#identity() });
      }),
    );
  }

  async #run(begin: () => void): Promise<void> {
    if (this.#ending !== undefined) return;
    const { signal } = this.#stop;
    const { definition } = this.machine;
    const { clock } = this.interpreter;
    if (definition.TimeoutSeconds !== undefined) {
      const timeoutMs = definition.TimeoutSeconds * 1000;
      this.#cancelTimeout = callAfter(clock, timeoutMs, () => this.end({ status: "TIMED_OUT" }));
    }
    begin();
    try {
      const branch = { execution: this, signal, variables: {}, checkpoint: this.#checkpoint };
      const output = await runGraph(definition, this.input, branch);
      this.end({ status: "SUCCEEDED", output });
    } catch (thrown) {
      if (thrown instanceof Interrupted) return;
      const { error, cause } = toStatesError(thrown);
      // Fail need not name its error.
      this.end({ status: "FAILED", error: error || undefined, cause });
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
    this.#end.resolve(this.describe());
  }

  describe(): ExecutionDescription {
    return {
      ...this.#identity(),
      name: this.name,
      startDate: this.startDate,
      redriveCount: this.redriveCount,
      redriveDate: this.redriveDate,
      input: this.input,
      status: "RUNNING",
      ...this.#ending,
    };
  }

  #identity(): { executionArn: string; stateMachineArn: string } {
    return { executionArn: this.arn, stateMachineArn: this.machine.arn };
  }
}
