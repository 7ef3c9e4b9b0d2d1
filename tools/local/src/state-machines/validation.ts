import { type StateMachineDefinition, statesLimits } from "./definition.ts";
import { InvalidDefinitionError } from "./errors.ts";
import { type ExpressionCheck, Place } from "./place.ts";
import { stateRules } from "./state-rules.ts";

/**
 * Reads a definition, and refuses what this interpreter does not do or Step Functions would not take.
 *
 * @param definition an object, or its JSON
 * @throws InvalidDefinitionError with every problem and its place
 */
export function parseDefinition(
  name: string,
  definition: unknown,
  checkExpression: ExpressionCheck,
): StateMachineDefinition {
  const root = new Place("", [], checkExpression);
  const parsed = typeof definition === "string" ? parseJson(definition, root) : definition;
  const machine = root.object(parsed);
  if (machine !== undefined) {
    root.known(machine, ["Comment", "Version", "QueryLanguage", "StartAt", "States", "TimeoutSeconds"]);
    const language = machine.QueryLanguage ?? "JSONPath";
    if (language !== "JSONata" && language !== "JSONPath") {
      root.at("QueryLanguage").problem("must be JSONata or JSONPath");
    }
    root.at("TimeoutSeconds").whole(machine.TimeoutSeconds, 1, statesLimits.seconds);
    checkGraph(machine, root, { language, variables: new Set(), names: new Set() });
  }
  if (root.problems.length > 0) throw new InvalidDefinitionError(name, root.problems);
  // A later change to the object that was handed in must not reach executions.
  return JSON.parse(JSON.stringify(parsed)) as StateMachineDefinition;
}

/** What a graph inherits from what is around it. */
export interface Surroundings {
  /** The machine's query language: nested states inherit it, not that of the state around them. */
  readonly language: unknown;
  /** The variables of outer scopes: readable, and not to be assigned. */
  readonly variables: ReadonlySet<string>;
  /** The names of all states so far: Step Functions wants them unique in the whole machine. */
  readonly names: Set<string>;
}

function checkGraph(graph: Record<string, unknown>, place: Place, around: Surroundings): void {
  const states = place.at("States").object(graph.States);
  if (states === undefined) return;
  if (!Object.hasOwn(states, String(graph.StartAt))) {
    place.at("StartAt").problem(`names no state here: ${JSON.stringify(graph.StartAt)}`);
  }
  const entries = Object.entries(states).map(([name, state]) => {
    const at = place.at("States").at(name);
    if (name.length > statesLimits.nameLength) {
      at.problem(`a state's name has at most ${statesLimits.nameLength} characters`);
    }
    if (around.names.has(name)) at.problem("another state of this machine has the same name");
    around.names.add(name);
    return { at, state: at.object(state) };
  });
  const variables = new Set(around.variables);
  for (const { state } of entries) for (const name of assignedBy(state)) variables.add(name);
  for (const { at, state } of entries) {
    if (state === undefined) continue;
    stateRules(state, at, {
      ...around,
      states: Object.keys(states),
      nested: (inner, innerPlace) => checkGraph(inner, innerPlace, { ...around, variables }),
    });
  }
  const ends = entries.some(
    ({ state }) => state?.End === true || state?.Type === "Succeed" || state?.Type === "Fail",
  );
  if (!ends) place.at("States").problem("no state ends it: one needs End, or the type Succeed or Fail");
}

/** The variables that a state can assign, in whichever way it is left. */
function assignedBy(state: Record<string, unknown> | undefined): string[] {
  const exits = [state, ...[state?.Choices, state?.Catch].filter(Array.isArray).flat()];
  return exits.flatMap((exit: unknown) => {
    const assign = (exit as { Assign?: unknown } | undefined)?.Assign;
    return typeof assign === "object" && assign !== null ? Object.keys(assign) : [];
  });
}

function parseJson(text: string, place: Place): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    place.problem(`is not JSON: ${String(error)}`);
    return undefined;
  }
}
