import type { Exit, State, StateGraph, WorkState } from "./definition.ts";
import { Interrupted, StatesError, toStatesError } from "./errors.ts";
import type { StatesVariable, Variables } from "./jsonata.ts";
import { asPayload } from "./payload.ts";
import type { StateProgress } from "./progress.ts";
import { catcherFor, Retries } from "./retry.ts";
import { isoTime, pause } from "./timers.ts";
import {
  type Branch,
  evaluate,
  publish,
  publishFailure,
  record,
  text,
  unexpected,
  type Visit,
  whole,
} from "./visit.ts";
import { work } from "./work.ts";

/** How a state was left. */
export interface Departure {
  readonly next: string | undefined;
  readonly output: unknown;
  readonly assigned: Variables;
}

/** These can fail for reasons of their own, and so have Retry and Catch. */
const working: readonly string[] = ["Task", "Parallel", "Map"];

/**
 * Runs states from StartAt, or from where the branch's progress stands, to an end, and gives the last one's output.
 *
 * A state that was entered and not left is run again, with the input and the variables of its entry, and is not entered
 * a second time.
 */
export async function runGraph(graph: StateGraph, input: unknown, branch: Branch): Promise<unknown> {
  const { progress } = branch;
  if (progress.done !== undefined) return progress.done.output;
  progress.at ??= { name: graph.StartAt, input, variables: branch.variables, inner: [] };
  branch.variables = progress.at.variables;
  for (;;) {
    const { at } = progress;
    const state: State | undefined = graph.States[at.name];
    if (state === undefined) throw new StatesError("States.Runtime", `no state ${at.name}`);
    const { next, output } = await runState(state, at, branch);
    if (next === undefined) {
      progress.done = { output };
      return output;
    }
    progress.at = { name: next, input: output, variables: branch.variables, inner: [] };
  }
}

async function runState(state: State, at: StateProgress, branch: Branch): Promise<Departure> {
  const { execution } = branch;
  const { name, input, inner } = at;
  branch.signal.throwIfAborted();
  const isEntered = at.entered !== undefined;
  if (at.entered === undefined) {
    const time = isoTime(execution.interpreter.clock);
    at.entered = { time, event: execution.history.enter(name, state.Type, time) };
  }
  branch.signal.throwIfAborted();
  const { time: enteredTime, event: enteredEvent } = at.entered;
  const visit: Visit = { name, state, input, branch, enteredTime, enteredEvent, retryCount: 0, inner };
  if (!isEntered) publish(visit, { type: "entered", stateName: name });
  try {
    const departure = await step(visit);
    branch.signal.throwIfAborted();
    branch.variables = { ...branch.variables, ...departure.assigned };
    record(visit, `${state.Type}StateExited`);
    publish(visit, { type: "exited", stateName: name });
    return departure;
  } catch (error) {
    if (error instanceof Interrupted) {
      if (working.includes(state.Type) || state.Type === "Wait")
        execution.history.add(`${state.Type}StateAborted`);
    } else if (!working.includes(state.Type) && error instanceof StatesError) {
      publishFailure(visit, error);
    }
    throw error;
  }
}

async function step(visit: Visit): Promise<Departure> {
  const { state, input } = visit;
  switch (state.Type) {
    case "Pass":
    case "Succeed":
      return leave(visit, state, "", {}, input);
    case "Wait":
      await wait(visit, state.Seconds, state.Timestamp);
      return leave(visit, state, "", {}, input);
    case "Choice":
      for (const [index, rule] of state.Choices.entries()) {
        const chosen = await evaluate(visit, rule.Condition, `Choices[${index}]/Condition`);
        if (typeof chosen !== "boolean") {
          throw unexpected(visit, `Choices[${index}]/Condition`, "a boolean", chosen);
        }
        if (chosen) return leave(visit, rule, `Choices[${index}]/`, {}, input);
      }
      if (state.Default === undefined) {
        throw new StatesError("States.NoChoiceMatched", `No rule of the state '${visit.name}' matched.`);
      }
      return leave(visit, { ...state, Next: state.Default }, "", {}, input);
    case "Fail": {
      const error = state.Error === undefined ? undefined : await text(visit, state.Error, "Error");
      const cause = state.Cause === undefined ? undefined : await text(visit, state.Cause, "Cause");
      throw new StatesError(error ?? "", cause);
    }
    default:
      return attempts(visit as Visit<WorkState>);
  }
}

/** Does the work of a state, again as Retry says, and leaves it by the state itself or by a catcher. */
async function attempts(visit: Visit<WorkState>): Promise<Departure> {
  const { state, branch, name } = visit;
  const { clock, random } = branch.execution.interpreter;
  const retries = new Retries(state.Retry, random);
  for (;;) {
    try {
      const result = asPayload(await work(visit, runGraph), `The result of the state '${name}'`);
      return await leave(visit, state, "", { result }, result);
    } catch (thrown) {
      if (thrown instanceof Interrupted) throw thrown;
      branch.signal.throwIfAborted();
      const error = toStatesError(thrown);
      publishFailure(visit, error);
      // Then nothing of what succeeded inside is kept, not even for a redrive.
      if (error.error === "States.DataLimitExceeded") visit.inner.length = 0;
      const delayMs = retries.next(error);
      if (delayMs === undefined) return recover(visit, error);
      publish(visit, { type: "retried", stateName: name, error: error.error, delayMs });
      await pause(clock, delayMs, branch.signal);
      visit.retryCount += 1;
      visit.inner.length = 0;
    }
  }
}

async function recover(visit: Visit<WorkState>, error: StatesError): Promise<Departure> {
  const found = catcherFor(visit.state.Catch, error);
  if (found === undefined) throw error;
  const errorOutput = {
    Error: error.error,
    ...(error.cause === undefined ? {} : { Cause: error.cause }),
  };
  return leave(visit, found.catcher, `Catch[${found.index}]/`, { errorOutput }, errorOutput);
}

/** Evaluates Output and Assign, both with the variables as they were at entry. */
async function leave(
  visit: Visit,
  exit: Exit,
  field: string,
  values: Pick<StatesVariable, "result" | "errorOutput">,
  fallback: unknown,
): Promise<Departure> {
  const output =
    exit.Output === undefined ? fallback : await evaluate(visit, exit.Output, `${field}Output`, values);
  const assigned: Record<string, unknown> = {};
  for (const [name, template] of Object.entries(exit.Assign ?? {})) {
    const value = await evaluate(visit, template, `${field}Assign/${name}`, values);
    assigned[name] = asPayload(value, `The variable '${name}'`);
  }
  return {
    next: exit.Next,
    output: asPayload(output, `The output of the state '${visit.name}'`),
    assigned,
  };
}

async function wait(visit: Visit, seconds: unknown, timestamp: unknown): Promise<void> {
  const { branch } = visit;
  const { clock } = branch.execution.interpreter;
  if (timestamp === undefined) {
    // After a redrive it waits anew: AWS tells of timestamps only.
    await pause(clock, (await whole(visit, seconds, "Seconds", 0)) * 1000, branch.signal);
    return;
  }
  const until = await evaluate(visit, timestamp, "Timestamp");
  if (!isTimestamp(until)) throw unexpected(visit, "Timestamp", "a time with its zone", until);
  await pause(clock, Math.max(0, Date.parse(until) - clock.now()), branch.signal);
}

/** RFC 3339 with capital T and Z, as Step Functions wants it. */
function isTimestamp(value: unknown): value is string {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
  return typeof value === "string" && form.test(value) && Number.isFinite(Date.parse(value));
}
