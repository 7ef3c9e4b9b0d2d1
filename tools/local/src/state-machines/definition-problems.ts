/// <reference path="./asl-validator.d.ts" />
// Whether Step Functions would take a definition: asked of asl-validator and jsonata, and of the rules that
// they lack.

import validate from "asl-validator";
import jsonata from "jsonata";

type Fields = Readonly<Record<string, unknown>>;

interface Graph {
  readonly StartAt: string;
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
  const found = [...expressionProblems(definition, ""), ...stateProblems(definition as Graph, "", new Set())];
  // The last rule relies on expressions that can be parsed.
  return found.length > 0 ? found : unassignedVariables(definition as Graph, "", []);
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
    return [
      ...assignedBy(state)
        .filter((variable) => outerVariables.has(variable))
        .map((variable) => `${at}: assigns $${variable} of an outer scope`),
      ...["Retry", "Catch"]
        .filter((field) => !hasWildcardLast(listOf(state[field])))
        .map((field) => `${at}/${field}: States.ALL must stand alone and in the last entry`),
      ...innerGraphs(state).flatMap((graph) => stateProblems(graph, at, variables)),
    ];
  });
}

/**
 * The variables that a state reads, and that are not assigned on every way to it. To JSONata such a variable is nothing:
 * `$hash($name & '-1')` then is the same for all.
 */
function unassignedVariables({ StartAt, States }: Graph, path: string, outer: readonly string[]): string[] {
  const assigned = new Map<string, readonly string[]>();
  const reach = (name: string, variables: readonly string[]): void => {
    const before = assigned.get(name);
    const known = before?.filter((variable) => variables.includes(variable)) ?? variables;
    if (known.length === before?.length) return;
    assigned.set(name, known);
    for (const exit of exitsOf(States[name] ?? {})) {
      const next = exit.Next ?? exit.Default;
      if (typeof next === "string") reach(next, [...new Set([...known, ...assignedAt(exit)])]);
    }
  };
  reach(StartAt, outer);
  return [...assigned].flatMap(([name, known]) => {
    const at = `${path}/States/${name}`;
    const state = States[name] ?? {};
    const own = { ...state, Branches: [], ItemProcessor: undefined, Iterator: undefined };
    const missing = readIn(own).filter((variable) => !["states", ...known].includes(variable));
    return [
      ...[...new Set(missing)].map(
        (variable) => `${at}: reads $${variable}, which some way to it does not assign`,
      ),
      ...innerGraphs(state).flatMap((graph) => unassignedVariables(graph, at, known)),
    ];
  });
}

/** The variables that the expressions of a value read. */
function readIn(value: unknown): string[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(readIn);
  const source = /^\{%(.*)%\}$/s.exec(String(value))?.[1];
  return source === undefined ? [] : freeIn(jsonata(source).ast(), new Set());
}

/** The variables in a part of an expression, without those that the expression has bound before. */
function freeIn(part: unknown, bound: Set<string>): string[] {
  if (typeof part !== "object" || part === null) return [];
  const { type, value, lhs, procedure, ...others } = part as Fields & { readonly value?: string };
  if (type === "lambda") {
    const names = listOf(others.arguments).map((argument) => String(argument.value));
    return freeIn(others.body, new Set([...bound, ...names]));
  }
  // A function by its name is JSONata's own, or Step Functions'.
  const isNamed = (procedure as Fields | undefined)?.type === "variable";
  const parts = { lhs: type === "bind" ? [] : lhs, procedure: isNamed ? [] : procedure, ...others };
  const free = Object.values(parts).flatMap((one) => freeIn(one, bound));
  if (type === "bind") bound.add(String((lhs as Fields).value));
  const isRead = type === "variable" && value && value !== "$" && !bound.has(value);
  return isRead ? [value, ...free] : free;
}

/** The machines inside of a state. */
function innerGraphs({ Branches, ItemProcessor, Iterator }: Fields): Graph[] {
  const inner = [...listOf(Branches), ItemProcessor, Iterator] as (Graph | undefined)[];
  return inner.filter((graph) => graph !== undefined);
}

/** The variables that a state can assign, in whichever way it is left. */
function assignedBy(state: Fields): string[] {
  return exitsOf(state).flatMap(assignedAt);
}

/** The ways to leave a state. */
function exitsOf(state: Fields): readonly Fields[] {
  return [state, ...listOf(state.Choices), ...listOf(state.Catch)];
}

function assignedAt({ Assign }: Fields): string[] {
  return Object.keys(Assign ?? {}).map((name) => name.replace(/\.\$$/, ""));
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
