import type { State } from "./definition.ts";
import { StatesError } from "./errors.ts";
import type { StateMachineEvent } from "./events.ts";
import type { Execution } from "./execution.ts";
import { evaluationError, type StatesVariable, type Variables } from "./jsonata.ts";
import type { Progress } from "./progress.ts";

/** A sequence of states with its own variables: the execution, a branch of Parallel or an iteration of Map. */
export interface Branch {
  readonly execution: Execution;
  /** Aborts when the execution ends, or a sibling fails. */
  readonly signal: AbortSignal;
  /** Starts as what the outer scope can see, which stands still as long as the branch runs. */
  variables: Variables;
  readonly progress: Progress;
  readonly item?: { readonly Index: number; readonly Value: unknown };
}

/** A state that is being run. */
export interface Visit<S extends State = State> {
  readonly name: string;
  readonly state: S;
  readonly input: unknown;
  readonly branch: Branch;
  readonly enteredTime: string;
  readonly enteredEvent: number;
  retryCount: number;
  /** Of Parallel the branches, of Map the iterations; not empty where a redrive goes on with them. */
  readonly inner: Progress[];
}

/**
 * Evaluates a field of a state.
 *
 * @throws StatesError `States.QueryEvaluationError`, with the state in its cause
 */
export async function evaluate(
  visit: Visit,
  template: unknown,
  field: string,
  values: Partial<StatesVariable> = {},
): Promise<unknown> {
  const { branch, input } = visit;
  const states = { input, context: contextOf(visit), ...values };
  try {
    const { evaluator } = branch.execution.interpreter;
    return await evaluator.evaluate(template, field, { states, variables: branch.variables });
  } catch (error) {
    if (!(error instanceof StatesError)) throw error;
    throw evaluationFailed(visit, error.cause ?? "");
  }
}

/** Evaluates a field that takes a whole number. */
export async function whole(visit: Visit, template: unknown, field: string, min: number): Promise<number> {
  const value = await evaluate(visit, template, field);
  if (typeof value === "number" && Number.isInteger(value) && value >= min) return value;
  throw unexpected(visit, field, `a whole number of at least ${min}`, value);
}

/** Evaluates a field that takes a text. */
export async function text(visit: Visit, template: string, field: string): Promise<string> {
  const value = await evaluate(visit, template, field);
  if (typeof value === "string") return value;
  throw unexpected(visit, field, "a text", value);
}

/** The error for a value that its field does not take. */
export function unexpected(visit: Visit, field: string, expected: string, value: unknown): StatesError {
  const found = JSON.stringify(value).slice(0, 100);
  return evaluationFailed(visit, `The field '${field}' expects ${expected}, and not ${found}.`);
}

function evaluationFailed(visit: Visit, cause: string): StatesError {
  record(visit, "EvaluationFailed");
  const where = `'${visit.name}' (entered at the event id #${visit.enteredEvent})`;
  return evaluationError(`An error occurred while executing the state ${where}. ${cause}`);
}

/** The context object; `extra` is what only some fields can see: the task's token, the item of Map. */
export function contextOf(visit: Visit, extra: Readonly<Record<string, unknown>> = {}): unknown {
  const { execution, item } = visit.branch;
  const { machine } = execution;
  return {
    Execution: {
      Id: execution.arn,
      Input: execution.input,
      Name: execution.name,
      RoleArn: `arn:aws:iam::${machine.arn.split(":")[4]}:role/${machine.name}`,
      StartTime: execution.startDate,
      RedriveCount: execution.redriveCount,
      ...(execution.redriveDate === undefined ? {} : { RedriveTime: execution.redriveDate }),
    },
    State: { Name: visit.name, EnteredTime: visit.enteredTime, RetryCount: visit.retryCount },
    StateMachine: { Id: machine.arn, Name: machine.name },
    ...(item === undefined ? {} : { Map: { Item: item } }),
    ...extra,
  };
}

/** Notes an event; throws Interrupted when the history had no room for it. */
export function record({ branch }: Visit, type: string): void {
  branch.execution.history.add(type);
  branch.signal.throwIfAborted();
}

type Bare<Event> = Event extends unknown ? Omit<Event, "executionArn" | "stateMachineArn"> : never;

/** Tells the listener. */
export function publish({ branch: { execution } }: Visit, event: Bare<StateMachineEvent>): void {
  const identity = { executionArn: execution.arn, stateMachineArn: execution.machine.arn };
  execution.interpreter.publish({ ...identity, ...event } as StateMachineEvent);
}

/** Tells the listener that an attempt failed. */
export function publishFailure(visit: Visit, { error, cause }: StatesError): void {
  const { name: stateName } = visit;
  publish(visit, { type: "failed", stateName, error, ...(cause === undefined ? {} : { cause }) });
}
