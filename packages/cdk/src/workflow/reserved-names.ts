/**
 * The names that a leased workflow reserves, and how they differ from the user's.
 *
 * A state's name is unique in the whole machine, and an inner scope may not assign a variable of an outer one
 * (https://docs.aws.amazon.com/step-functions/latest/dg/workflow-variables.html). The user's states run inside ours, so
 * our names have prefixes. Letters, digits and `_` only: other characters keep a name out of CloudWatch Logs.
 */
import type { Definition, Json, State } from "./asl.ts";

/** The prefix of our states. */
const statePrefix = "Leasehold_";
/** The prefix of our variables, except the lease. */
export const variablePrefix = "leasehold_";
/** The variable that the user's states read: the lease's handle. */
export const leaseVariable = "lease";

/** One of our variables, as JSONata reads it. */
export function own(name: string): string {
  return `$${variablePrefix}${name}`;
}

/** Our variables, as Assign writes them. */
export function assigning(values: Readonly<Record<string, Json>>): Record<string, Json> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [variablePrefix + name, value]));
}

type Fields = Readonly<Record<string, unknown>>;

/** Gives a definition's states our prefix; the states inside them stay unchanged. */
export function withStatePrefix({ Comment, StartAt, States }: Definition): Definition {
  const prefixed = Object.entries(States).map(([name, state]) => [statePrefix + name, redirected(state)]);
  return { Comment, StartAt: statePrefix + StartAt, States: Object.fromEntries(prefixed) };
}

function redirected(state: State): State {
  const next = (exit: Fields): Fields =>
    typeof exit.Next === "string" ? { ...exit, Next: statePrefix + exit.Next } : exit;
  const all = (exits: Json): Json => (exits as readonly Fields[]).map(next) as Json;
  return {
    ...next(state),
    ...(typeof state.Default === "string" ? { Default: statePrefix + state.Default } : {}),
    ...(state.Choices === undefined ? {} : { Choices: all(state.Choices) }),
    ...(state.Catch === undefined ? {} : { Catch: all(state.Catch) }),
  } as State;
}

/**
 * Refuses states that use one of our names, at whatever depth.
 *
 * @param work the user's states, with StartAt
 * @throws Error with every such name, and what to do
 */
export function checkNames(path: string, work: Json): void {
  const problems = eachState(work).flatMap(({ name, state }) => [
    ...(name.startsWith(statePrefix)
      ? [`the state ${JSON.stringify(name)} begins with ${statePrefix}: give it another name`]
      : []),
    ...assignedBy(state)
      .filter((variable) => variable === leaseVariable || variable.startsWith(variablePrefix))
      .map((variable) => `the state ${JSON.stringify(name)} assigns ${variableProblem(variable)}`),
  ]);
  if (problems.length === 0) return;
  throw new Error(`the work of ${path} uses names that its lease needs: ${problems.join("; ")}`);
}

function variableProblem(variable: string): string {
  return variable === leaseVariable
    ? `$${leaseVariable}, which is the lease's handle and only to be read: use another name`
    : `$${variable}, which begins with ${variablePrefix}: use another name`;
}

interface NamedState {
  readonly name: string;
  readonly state: Fields;
}

/** Every state of a graph, and of the graphs inside it. */
function eachState(graph: unknown): readonly NamedState[] {
  const states = Object.entries(fieldsOf(fieldsOf(graph).States));
  return states.flatMap(([name, value]) => {
    const state = fieldsOf(value);
    return [{ name, state }, ...graphsIn(state).flatMap(eachState)];
  });
}

/** The graphs inside a state: the branches of Parallel, and the processor of a Map. */
export function graphsIn(state: Fields): readonly unknown[] {
  const branches = Array.isArray(state.Branches) ? (state.Branches as readonly unknown[]) : [];
  return [...branches, state.ItemProcessor, state.Iterator].filter((graph) => graph !== undefined);
}

/** The variables that a state can assign, at any of its exits and in either language. */
function assignedBy(state: Fields): readonly string[] {
  const exits = [state, ...[state.Choices, state.Catch].filter(Array.isArray).flat()];
  const names = exits.flatMap((exit: unknown) => Object.keys(fieldsOf(fieldsOf(exit).Assign)));
  return names.map((name) => name.replace(/\.\$$/, ""));
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
