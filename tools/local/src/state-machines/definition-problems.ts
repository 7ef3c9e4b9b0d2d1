/// <reference path="./asl-validator.d.ts" />
// Whether Step Functions would take a definition: asked of asl-validator and jsonata, and of the rules that
// they lack.

import validate from "asl-validator";
import jsonata from "jsonata";

type Fields = Readonly<Record<string, unknown>>;

interface Graph {
  readonly States: Readonly<Record<string, Fields>>;
}

/**
 * What Step Functions would refuse in a definition, in either query language: the findings of asl-validator, those of
 * jsonata's parser, and a few rules that neither of them knows.
 *
 * Takes about a tenth of a second, most of it for asl-validator to compile its schemas.
 */
export function definitionProblems(definition: unknown): string[] {
  // asl-validator changes the object that it is given.
  const { errors } = validate(structuredClone(definition));
  const problems = errors.map((error) => `${error["Error code"]}: ${error.Message}`);
  // The other rules rely on the form, which asl-validator checks.
  if (problems.length > 0) return problems;
  return [...expressionProblems(definition, ""), ...stateProblems(definition as Graph, "", new Set())];
}

/** Every expression is parsed: asl-validator does not look into catchers, nor for what Step Functions leaves out. */
function expressionProblems(value: unknown, path: string): string[] {
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, member]) => expressionProblems(member, `${path}/${key}`));
  }
  if (typeof value !== "string") return [];
  const source = /^\{%(.*)%\}$/s.exec(value)?.[1];
  if (source === undefined) return value.includes("{%") ? [`${path}: an expression inside of text`] : [];
  try {
    jsonata(source);
  } catch (error) {
    return [`${path}: ${(error as { readonly message: string }).message}`];
  }
  // Step Functions runs JSONata 2.0: the operators came in 2.1. In texts and patterns they are refused here, too.
  return ["??", "?:", "$eval("]
    .filter((refused) => source.includes(refused))
    .map((refused) => `${path}: Step Functions has no ${refused}`);
}

/**
 * Two rules of states that asl-validator does not know. A leased workflow wraps the states of its user, whose variables
 * may have the names of its own. And the constructs put lists of retriers and catchers together from several parts.
 */
function stateProblems({ States }: Graph, path: string, outerVariables: ReadonlySet<string>): string[] {
  const states = Object.entries(States);
  const variables = new Set([...outerVariables, ...states.flatMap(([, state]) => assignedBy(state))]);
  return states.flatMap(([name, state]) => {
    const at = `${path}/States/${name}`;
    const inner = [...listOf(state.Branches), state.ItemProcessor, state.Iterator] as (Graph | undefined)[];
    return [
      ...assignedBy(state)
        .filter((variable) => outerVariables.has(variable))
        .map((variable) => `${at}: assigns $${variable} of an outer scope`),
      ...["Retry", "Catch"]
        .filter((field) => !hasWildcardLast(listOf(state[field])))
        .map((field) => `${at}/${field}: States.ALL must stand alone and in the last entry`),
      ...inner.flatMap((graph) => (graph === undefined ? [] : stateProblems(graph, at, variables))),
    ];
  });
}

/** The variables that a state can assign, in whichever way it is left. */
function assignedBy(state: Fields): string[] {
  const exits = [state, ...listOf(state.Choices), ...listOf(state.Catch)];
  return exits.flatMap(({ Assign }) => Object.keys(Assign ?? {}).map((name) => name.replace(/\.\$$/, "")));
}

function hasWildcardLast(entries: readonly Fields[]): boolean {
  return entries.every(({ ErrorEquals }, index) => {
    const names = ErrorEquals as readonly string[];
    return !names.includes("States.ALL") || (names.length === 1 && index === entries.length - 1);
  });
}

function listOf(value: unknown): readonly Fields[] {
  return (value ?? []) as readonly Fields[];
}
