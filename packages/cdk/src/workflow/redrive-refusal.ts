/**
 * A redriven workflow does no work, because its tasks refuse by themselves.
 *
 * A redrive continues at the task that was under way, with the earlier variables, and repeats no state that succeeded.
 * So no state of ours stands between it and the task
 * (https://docs.aws.amazon.com/step-functions/latest/dg/redrive-executions.html). But the task is scheduled again, so
 * its fields are evaluated again, and the context shows the redrive. So an expression gives the timeout of each task.
 * It fails once the execution was redriven, and the task fails before it is sent.
 *
 * A map in JSONata that begins after the redrive refuses too, by its concurrency: a distributed map starts separate
 * executions, which do not see the redrive. Tasks in JSONPath have no such field: redrive-guard.ts handles them.
 */
import { Token, Tokenization } from "aws-cdk-lib";
import { type Json, jsonata, literal, type State } from "./asl.ts";
import { assigning, graphsIn } from "./reserved-names.ts";

/** The error of a redriven execution. */
export const redrivenError = "LeaseLostError";
export const redrivenCause = "the execution was redriven after its lease had ended: start a new execution";

const isRedriven = "$states.context.Execution.RedriveCount > 0";
/** Step Functions' own default, in seconds. */
const defaultTimeout = 99_999_999;

/** JSONata for a value that fails in a redriven execution. */
export function unlessRedriven(value: string): string {
  return `${isRedriven} ? $error(${literal(redrivenCause)}) : (${value})`;
}

/** Assigns the failure that a Catch has caught; the execution reports it after its lease has ended. */
export const failure: Record<string, Json> = failureAs("$states.errorOutput");

/**
 * Assigns a failure as {@link failure} does; `error` is JSONata for the failure of an execution that was not redriven.
 */
export function failureAs(error: string): Record<string, Json> {
  const redriven = `{'Error': ${literal(redrivenError)}, 'Cause': ${literal(redrivenCause)}}`;
  return assigning({ failure: jsonata(`${isRedriven} ? ${redriven} : (${error})`) });
}

/** Returns a task in JSONata that fails, unsent, in a redriven execution. */
export function refusingRedrive(task: State): State {
  return { ...task, TimeoutSeconds: guardedNumber(task.TimeoutSeconds, defaultTimeout) };
}

/** Returns a graph whose tasks and maps in JSONata, at whatever depth, refuse a redrive. */
export function withRefusals(graph: Json): Json {
  const { States, ...rest } = graph as { readonly States: Readonly<Record<string, State>> };
  const guarded = Object.entries(States).map(([name, state]) => [name, withRefusalsInside(state)]);
  return { ...rest, States: Object.fromEntries(guarded) };
}

function withRefusalsInside(state: State): State {
  if (state.Type === "Task" && state.QueryLanguage === "JSONata") return refusingRedrive(state);
  if (graphsIn(state).length === 0) return state;
  const { Branches, ItemProcessor, Iterator } = state;
  return {
    ...state,
    ...(state.Type === "Map" && state.QueryLanguage === "JSONata"
      ? { MaxConcurrency: guardedNumber(state.MaxConcurrency, 0) }
      : {}),
    ...(Array.isArray(Branches) ? { Branches: (Branches as readonly Json[]).map(withRefusals) } : {}),
    ...(ItemProcessor === undefined ? {} : { ItemProcessor: withRefusals(ItemProcessor) }),
    ...(Iterator === undefined ? {} : { Iterator: withRefusals(Iterator) }),
  };
}

/** A number or an expression as an expression that fails in a redriven execution. */
function guardedNumber(value: Json | undefined, otherwise: number): string {
  // A number that only the deployment knows would be written as its placeholder.
  const known =
    typeof value === "number" && Token.isUnresolved(value)
      ? Token.asString(Tokenization.reverse(value))
      : String(value ?? otherwise);
  return jsonata(unlessRedriven(known.replace(/^\{%(.*)%\}$/s, "$1")));
}
