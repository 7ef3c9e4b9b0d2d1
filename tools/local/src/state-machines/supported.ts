// What the interpreter runs of Amazon States Language. All else is refused when a machine is defined.

import type { StateMachineDefinition } from "./definition.ts";
import { InvalidDefinitionError } from "./errors.ts";

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
