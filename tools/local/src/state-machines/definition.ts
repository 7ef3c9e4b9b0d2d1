// The part of Amazon States Language that the interpreter runs, as types, and Step Functions' limits.

import { InvalidDefinitionError } from "./errors.ts";

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
type NumberField = number | string;

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

interface ChoiceRule extends Exit {
  readonly Condition: string | boolean;
  readonly Next: string;
}

interface Recovering {
  readonly Retry?: readonly Retrier[];
  readonly Catch?: readonly Catcher[];
}

interface PassState extends Exit {
  readonly Type: "Pass";
}

export interface TaskState extends Exit, Recovering {
  readonly Type: "Task";
  readonly Resource: string;
  readonly Arguments?: unknown;
  readonly TimeoutSeconds?: NumberField;
}

interface ChoiceState extends Exit {
  readonly Type: "Choice";
  readonly Choices: readonly ChoiceRule[];
  readonly Default?: string;
}

interface WaitState extends Exit {
  readonly Type: "Wait";
  readonly Seconds?: NumberField;
}

interface SucceedState extends Exit {
  readonly Type: "Succeed";
}

interface FailState {
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
export const statesLimits: Readonly<Record<"payloadBytes" | "historyEvents" | "nameLength", number>> = {
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

type Fields = Readonly<Record<string, unknown>>;

interface AnyGraph {
  readonly States: Readonly<Record<string, AnyState>>;
}

type AnyState = Fields & {
  readonly Type: string;
  readonly QueryLanguage?: string;
  readonly Retry?: readonly Fields[];
  readonly Catch?: readonly Fields[];
  readonly Branches?: readonly AnyGraph[];
  readonly ItemProcessor?: AnyGraph & { readonly ProcessorConfig?: { readonly Mode?: string } };
};

const every = ["Type", "Comment", "QueryLanguage"];
const passing = [...every, "Next", "End", "Output", "Assign"];
const working = [...passing, "Retry", "Catch"];

/** The types of states that this interpreter runs, each with the fields that it reads. */
const stateFields: Readonly<Record<string, readonly string[]>> = {
  Pass: passing,
  Task: [...working, "Resource", "Arguments", "TimeoutSeconds"],
  Choice: [...every, "Output", "Assign", "Choices", "Default"],
  Wait: [...passing, "Seconds"],
  Succeed: [...every, "Output"],
  Fail: [...every, "Error", "Cause"],
  Parallel: [...working, "Arguments", "Branches"],
  Map: [...working, "Items", "ItemSelector", "ItemProcessor", "MaxConcurrency"],
};

/** Without a path, these mean the same in both query languages. */
const inBothLanguages: readonly string[] = ["Pass", "Wait", "Succeed", "Fail"];

// asl-validator takes any field in these two: a misspelt MaxAttempts would pass both it and the interpreter.
const retrierFields = [
  ...["ErrorEquals", "IntervalSeconds", "BackoffRate", "MaxAttempts"],
  ...["MaxDelaySeconds", "JitterStrategy", "Comment"],
];
const catcherFields = ["ErrorEquals", "Next", "Output", "Assign", "Comment"];

/**
 * Refuses a definition that asks for what this interpreter does not do, so that it does nothing else instead.
 *
 * Whether Step Functions would take the definition is another question, for `definitionProblems`.
 *
 * @param definition an object, or its JSON
 * @returns a copy: a later change to the object that was handed in must not reach executions
 * @throws InvalidDefinitionError with every problem and its path
 */
export function supportedDefinition(name: string, definition: unknown): StateMachineDefinition {
  const text = typeof definition === "string" ? definition : JSON.stringify(definition);
  const machine = JSON.parse(text) as AnyGraph & { readonly QueryLanguage?: string };
  const problems = unsupportedIn(machine, machine.QueryLanguage, "");
  if (problems.length > 0) throw new InvalidDefinitionError(name, problems);
  return machine as unknown as StateMachineDefinition;
}

/** @param language the machine's: nested states inherit it, not that of the state around them */
function unsupportedIn({ States }: AnyGraph, language: string | undefined, path: string): string[] {
  return Object.entries(States).flatMap(([name, state]) => {
    const at = `${path}/States/${name}`;
    const { Type: type, Retry = [], Catch = [], Branches = [], ItemProcessor: processor } = state;
    const fields = stateFields[type];
    if (fields === undefined) return [`${at}: the type ${type} is not supported`];
    if ((state.QueryLanguage ?? language) !== "JSONata" && !inBothLanguages.includes(type)) {
      return [`${at}: a ${type} state in JSONPath is not supported: give it "QueryLanguage": "JSONata"`];
    }
    const mode = processor?.ProcessorConfig?.Mode ?? "INLINE";
    return [
      ...unknownFields(state, fields, at),
      ...Retry.flatMap((retrier, index) => unknownFields(retrier, retrierFields, `${at}/Retry/${index}`)),
      ...Catch.flatMap((catcher, index) => unknownFields(catcher, catcherFields, `${at}/Catch/${index}`)),
      ...(mode === "INLINE" ? [] : [`${at}/ItemProcessor: only the mode INLINE is supported`]),
      ...Branches.flatMap((branch, index) => unsupportedIn(branch, language, `${at}/Branches/${index}`)),
      ...(processor === undefined ? [] : unsupportedIn(processor, language, `${at}/ItemProcessor`)),
    ];
  });
}

function unknownFields(value: Fields, known: readonly string[], path: string): string[] {
  const unknown = Object.keys(value).filter((field) => !known.includes(field));
  return unknown.map((field) => `${path}/${field}: is not supported; supported are ${known.join(", ")}`);
}
