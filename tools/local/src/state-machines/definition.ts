// The part of Amazon States Language that the interpreter runs, as types, and Step Functions' limits.

/** The states of a machine, of a branch of Parallel or of the iterations of Map. */
export interface StateGraph {
  readonly StartAt: string;
  readonly States: Readonly<Record<string, State>>;
}

/** A whole state machine, after validation. */
export interface StateMachineDefinition extends StateGraph {
  readonly TimeoutSeconds?: number;
}

/** What decides the way out of a state: the state itself, a rule of Choice, or a catcher. */
export interface Exit {
  readonly Output?: unknown;
  readonly Assign?: Readonly<Record<string, unknown>>;
  readonly Next?: string;
}

/** A number, or a JSONata expression that gives one. */
export type NumberField = number | string;

export interface Retrier {
  readonly ErrorEquals: readonly string[];
  readonly IntervalSeconds?: number;
  readonly BackoffRate?: number;
  readonly MaxAttempts?: number;
  readonly MaxDelaySeconds?: number;
  readonly JitterStrategy?: "FULL" | "NONE";
}

export interface Catcher extends Exit {
  readonly ErrorEquals: readonly string[];
  readonly Next: string;
}

export interface ChoiceRule extends Exit {
  readonly Condition: string | boolean;
  readonly Next: string;
}

interface Recovering {
  readonly Retry?: readonly Retrier[];
  readonly Catch?: readonly Catcher[];
}

export interface PassState extends Exit {
  readonly Type: "Pass";
}

export interface TaskState extends Exit, Recovering {
  readonly Type: "Task";
  readonly Resource: string;
  readonly Arguments?: unknown;
  readonly TimeoutSeconds?: NumberField;
}

export interface ChoiceState extends Exit {
  readonly Type: "Choice";
  readonly Choices: readonly ChoiceRule[];
  readonly Default?: string;
}

export interface WaitState extends Exit {
  readonly Type: "Wait";
  readonly Seconds?: NumberField;
}

export interface SucceedState extends Exit {
  readonly Type: "Succeed";
}

export interface FailState {
  readonly Type: "Fail";
  readonly Error?: string;
  readonly Cause?: string;
}

export interface ParallelState extends Exit, Recovering {
  readonly Type: "Parallel";
  readonly Branches: readonly StateGraph[];
  readonly Arguments?: unknown;
}

export interface MapState extends Exit, Recovering {
  readonly Type: "Map";
  readonly Items?: unknown;
  readonly ItemSelector?: unknown;
  readonly ItemProcessor: StateGraph;
  readonly MaxConcurrency?: NumberField;
}

/** The states that can fail for reasons of their own, and so have Retry and Catch. */
export type WorkState = TaskState | ParallelState | MapState;

export type State = PassState | ChoiceState | WaitState | SucceedState | FailState | WorkState;

/** Numbers that Step Functions sets. */
export const statesLimits: {
  readonly seconds: number;
  readonly payloadBytes: number;
  readonly historyEvents: number;
  readonly nameLength: number;
} = {
  /** The longest wait or timeout, in seconds. */
  seconds: 99_999_999,
  /** Any input, output, result or variable, in bytes of JSON in UTF-8. */
  payloadBytes: 256 * 1024,
  /** The event with this number is the one that fails the execution. */
  historyEvents: 25_000,
  /** Names of states, of executions and of variables, in characters. */
  nameLength: 80,
};

/** The JSONata between `{%` and `%}`, or undefined for any other value. */
export function expressionIn(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length < 4) return undefined;
  return value.startsWith("{%") && value.endsWith("%}") ? value.slice(2, -2).trim() : undefined;
}

/** Whether a task ends when its token is answered, and not when its call returns. */
export function waitsForToken(resource: string): boolean {
  return resource.endsWith(".waitForTaskToken");
}
