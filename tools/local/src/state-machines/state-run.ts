// What a state works with while it runs: its fields evaluated, its context, its events.

import type { Clock } from "@leasehold/client";
import type { State } from "./definition.ts";
import { StatesError } from "./errors.ts";
import type { StateMachineEvent } from "./events.ts";
import type { History } from "./history.ts";
import { type Evaluator, evaluationError, type StatesVariable, type Variables } from "./jsonata.ts";
import type { ServiceCall, TaskTokens } from "./task.ts";

/** How far a sequence of states has come: where a redrive resumes. */
export interface BranchCheckpoint {
  /** The state that is next or that was entered; undefined before the first. */
  at?: StateCheckpoint;
  /** Set once the sequence has ended by itself. */
  done?: { readonly output: unknown };
}

/** A state that is next, or that was entered and not left. */
export interface StateCheckpoint {
  readonly name: string;
  readonly input: unknown;
  /** The variables of its scope, as they were at its entry. */
  readonly variables: Variables;
  /** When it was entered, and the number of that event; undefined while it is next. */
  entered?: { readonly time: string; readonly event: number };
  /** Of Parallel the branches, of Map the iterations, as far as they were begun in the present attempt. */
  readonly inner: BranchCheckpoint[];
}

/** What all executions share. */
export interface Interpreter {
  readonly clock: Clock;
  readonly random: () => number;
  readonly transitionMs: () => number;
  readonly evaluator: Evaluator;
  readonly tokens: TaskTokens;
  readonly call: ServiceCall;
  readonly publish: (event: StateMachineEvent) => void;
}

/** An execution, as its states see it. */
export interface RunningExecution {
  readonly arn: string;
  readonly name: string;
  readonly input: unknown;
  readonly machine: { readonly arn: string; readonly name: string };
  readonly startDate: string;
  readonly interpreter: Interpreter;
  readonly history: History;
  readonly redriveCount: number;
  readonly redriveDate: string | undefined;
}

/** A sequence of states with its own variables: the execution, a branch of Parallel or an iteration of Map. */
export interface Branch {
  readonly execution: RunningExecution;
  /** Aborts when the execution ends, or a sibling fails. */
  readonly signal: AbortSignal;
  /** Starts as what the outer scope can see, which stands still as long as the branch runs. */
  variables: Variables;
  readonly checkpoint: BranchCheckpoint;
  readonly item?: { readonly Index: number; readonly Value: unknown };
}

/** One run of a state, its retries included. */
export interface StateRun<S extends State = State> {
  readonly name: string;
  readonly state: S;
  readonly input: unknown;
  readonly branch: Branch;
  readonly enteredTime: string;
  readonly enteredEvent: number;
  retryCount: number;
  /** Of Parallel the branches, of Map the iterations; not empty where a redrive goes on with them. */
  readonly inner: BranchCheckpoint[];
}

/**
 * Evaluates a field of a state.
 *
 * @throws StatesError `States.QueryEvaluationError`, with the state in its cause
 */
export async function evaluate(
  run: StateRun,
  template: unknown,
  field: string,
  values: Partial<StatesVariable> = {},
): Promise<unknown> {
  const { branch, input } = run;
  const states = { input, context: contextOf(run), ...values };
  try {
    const { evaluator } = branch.execution.interpreter;
    return await evaluator.evaluate(template, field, { states, variables: branch.variables });
  } catch (error) {
    if (!(error instanceof StatesError)) throw error;
    throw evaluationFailed(run, error.cause ?? "");
  }
}

/** Evaluates a field that takes a whole number. */
export async function whole(run: StateRun, template: unknown, field: string, min: number): Promise<number> {
  const value = await evaluate(run, template, field);
  if (typeof value === "number" && Number.isInteger(value) && value >= min) return value;
  throw unexpected(run, field, `a whole number of at least ${min}`, value);
}

/** Evaluates a field that takes a text. */
export async function text(run: StateRun, template: string, field: string): Promise<string> {
  const value = await evaluate(run, template, field);
  if (typeof value === "string") return value;
  throw unexpected(run, field, "a text", value);
}

/** The error for a value that its field does not take. */
export function unexpected(run: StateRun, field: string, expected: string, value: unknown): StatesError {
  const found = JSON.stringify(value).slice(0, 100);
  return evaluationFailed(run, `The field '${field}' expects ${expected}, and not ${found}.`);
}

function evaluationFailed(run: StateRun, cause: string): StatesError {
  record(run, "EvaluationFailed");
  const where = `'${run.name}' (entered at the event id #${run.enteredEvent})`;
  return evaluationError(`An error occurred while executing the state ${where}. ${cause}`);
}

/** The context object; `extra` is what only some fields can see: the task's token, the item of Map. */
export function contextOf(run: StateRun, extra: Readonly<Record<string, unknown>> = {}): unknown {
  const { execution, item } = run.branch;
  const { machine } = execution;
  return {
    Execution: {
      Id: execution.arn,
      Input: execution.input,
      Name: execution.name,
      RoleArn: `arn:aws:iam::${machine.arn.split(":")[4]}:role/${machine.name}`,
      StartTime: execution.startDate,
      RedriveCount: execution.redriveCount,
      RedriveTime: execution.redriveDate,
    },
    State: { Name: run.name, EnteredTime: run.enteredTime, RetryCount: run.retryCount },
    StateMachine: { Id: machine.arn, Name: machine.name },
    ...(item === undefined ? {} : { Map: { Item: item } }),
    ...extra,
  };
}

/** Notes an event; throws Interrupted when the history had no room for it. */
export function record({ branch }: StateRun, type: string): void {
  branch.execution.history.add(type);
  branch.signal.throwIfAborted();
}

type Bare<Event> = Event extends unknown ? Omit<Event, "executionArn" | "stateMachineArn"> : never;

/** Tells the listener. */
export function publish({ branch: { execution } }: StateRun, event: Bare<StateMachineEvent>): void {
  const identity = { executionArn: execution.arn, stateMachineArn: execution.machine.arn };
  execution.interpreter.publish({ ...identity, ...event } as StateMachineEvent);
}

/** Tells the listener that an attempt failed. */
export function publishFailure(run: StateRun, { error, cause }: StatesError): void {
  const { name: stateName } = run;
  publish(run, { type: "failed", stateName, error, cause });
}
