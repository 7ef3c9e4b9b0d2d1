/** The part of Amazon States Language that these definitions use. */
import { Aws } from "aws-cdk-lib";

/** A JSON value of a definition; text in `{% %}` is JSONata. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** One state, as Amazon States Language spells it. */
export type State = { readonly [field: string]: Json };

/** A state machine, as Amazon States Language spells it. */
export interface Definition {
  readonly Comment: string;
  readonly StartAt: string;
  readonly States: Readonly<Record<string, State>>;
  readonly TimeoutSeconds?: number;
}

/** Marks text as JSONata. */
export function jsonata(expression: string): string {
  return `{% ${expression} %}`;
}

/** Writes a text as a JSONata literal, which has JSON's own escapes. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

/** Returns one of two values by a condition; their common parts stay unchanged. */
export function chosen(condition: string, value: Json, otherwise: Json): Json {
  if (JSON.stringify(value) === JSON.stringify(otherwise)) return value;
  const [fields, others] = [objectFields(value), objectFields(otherwise)];
  if (
    fields === undefined ||
    others === undefined ||
    Object.keys(fields).join() !== Object.keys(others).join()
  )
    return jsonata(`${condition} ? ${source(value)} : ${source(otherwise)}`);
  const merged = Object.entries(fields).map(([name, field]) => [
    name,
    chosen(condition, field, others[name] as Json),
  ]);
  return Object.fromEntries(merged);
}

function objectFields(value: Json): { readonly [name: string]: Json } | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as { readonly [name: string]: Json }) : undefined;
}

/** A value as JSONata writes it. */
function source(value: Json): string {
  if (typeof value === "string") {
    const expression = /^\{%(.*)%\}$/s.exec(value)?.[1];
    return expression === undefined ? literal(value) : `(${expression.trim()})`;
  }
  const fields = objectFields(value);
  if (fields === undefined) return JSON.stringify(value);
  return objectOf(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, source(field)])));
}

/** An object as JSONata writes it, of JSONata for its members. */
export function objectOf(members: Readonly<Record<string, string>>): string {
  const written = Object.entries(members).map(([name, value]) => `${literal(name)}: ${value}`);
  return `{${written.join(", ")}}`;
}

/** One entry of a state's `Catch`. */
export function catching(
  errors: string,
  next: string,
  more: { readonly Assign?: Json; readonly Output?: Json } = {},
): Json {
  return { ErrorEquals: [errors], Next: next, ...more };
}

/** One rule of a Choice state. */
export function rule(condition: string, next: string, assign?: Json, output?: Json): Json {
  return {
    Condition: jsonata(condition),
    Next: next,
    ...(assign === undefined ? {} : { Assign: assign }),
    ...(output === undefined ? {} : { Output: output }),
  };
}

/** DynamoDB's error when a condition does not hold. */
export const refused = "DynamoDb.ConditionalCheckFailedException";
/** Step Functions' error when an execution does not exist (any more). */
export const noSuchExecution = "Sfn.ExecutionDoesNotExistException";
/** Step Functions' error when an execution of that name has been started before. */
export const startedBefore = "Sfn.ExecutionAlreadyExistsException";

/** Step Functions' error when an expression fails; it would fail again. */
export const evaluationFailed = "States.QueryEvaluationError";

/** The fields that a call needs; the rest is any field of a Task state. */
type Call = { readonly Arguments: Json; readonly [field: string]: Json };

/** A call of an AWS API, by the SDK integration, repeated after a failure. */
export function call(action: string, state: Call): State {
  return callOnce(action, { Retry: retryUnless(), ...state });
}

/** A call of an AWS API, by the SDK integration. */
export function callOnce(action: string, state: Call): State {
  const Resource = `arn:${Aws.PARTITION}:states:::aws-sdk:${action}`;
  return { Type: "Task", QueryLanguage: "JSONata", Resource, ...state };
}

/**
 * A refusal is an answer; every other error may pass. Jitter keeps many workflows from retrying together. Three retries
 * end within seconds, so that the machine gives up while most of the lease's time is left.
 *
 * @param answers more errors that are answers of this call
 */
export function retryUnless(...answers: readonly string[]): Json {
  return retryAlsoLate("States.Timeout", ...answers);
}

/** The same, also after a timeout: of a request that may hang, and has a time limit for each repetition. */
export function retryAlsoLate(...answers: readonly string[]): Json {
  const all = [refused, noSuchExecution, startedBefore, evaluationFailed, ...answers];
  return retry(all, { IntervalSeconds: 1, MaxAttempts: 3, MaxDelaySeconds: 4 });
}

/** Repeats after every error but answers, with jitter, after longer and longer times. */
export function retry(
  answers: readonly string[],
  times: Readonly<Record<"IntervalSeconds" | "MaxAttempts" | "MaxDelaySeconds", number>>,
): Json {
  const { IntervalSeconds, MaxAttempts, MaxDelaySeconds } = times;
  const rest = { BackoffRate: 2, MaxDelaySeconds, JitterStrategy: "FULL" };
  return [
    { ErrorEquals: answers, MaxAttempts: 0 },
    { ErrorEquals: ["States.ALL"], IntervalSeconds, MaxAttempts, ...rest },
  ];
}

/** A decision between states. */
export function choice(rules: readonly Json[], otherwise: string): State {
  return { Type: "Choice", QueryLanguage: "JSONata", Choices: rules, Default: otherwise };
}

/** A pause. */
export function wait(seconds: string, next: string): State {
  return { Type: "Wait", QueryLanguage: "JSONata", Seconds: jsonata(seconds), Next: next };
}

/** The end of an execution that succeeded. */
export function succeed(output?: Json): State {
  return { Type: "Succeed", QueryLanguage: "JSONata", ...(output === undefined ? {} : { Output: output }) };
}

/** The end of an execution that failed. */
export function fail(error: string, cause: string): State {
  return { Type: "Fail", QueryLanguage: "JSONata", Error: error, Cause: cause };
}

/**
 * A member of the input of an execution that another execution starts: the console of Step Functions links the two by
 * it.
 */
export const startedBy = "'AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID': $states.context.Execution.Id";
