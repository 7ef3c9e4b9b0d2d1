// Runs states one after the other, with their retries, catchers and ways out.

import type { StateCheckpoint } from "./checkpoint.ts";
import type { Exit, State, StateGraph, WorkState } from "./definition.ts";
import { Interrupted, StatesError, toStatesError } from "./errors.ts";
import type { StatesVariable, Variables } from "./jsonata.ts";
import { asPayload } from "./payload.ts";
import { catcherFor, Retries } from "./retry.ts";
import {
  type Branch,
  evaluate,
  publish,
  publishFailure,
  record,
  type StateRun,
  text,
  unexpected,
  whole,
} from "./state-run.ts";
import { isoTime, pause } from "./timers.ts";
import { work } from "./work.ts";

/** How a state was left. */
export interface StateResult {
  readonly next: string | undefined;
  readonly output: unknown;
  readonly assigned: Variables;
}

/** These can fail for reasons of their own, and so have Retry and Catch. */
const working: readonly string[] = ["Task", "Parallel", "Map"];

/**
 * Runs states from StartAt, or from the branch's checkpoint, to an end, and gives the last one's output.
 *
 * A state that was entered and not left runs again, with the input and the variables of its entry. It is not entered a
 * second time.
 */
export async function runGraph(graph: StateGraph, input: unknown, branch: Branch): Promise<unknown> {
  const { checkpoint } = branch;
  if (checkpoint.done !== undefined) return checkpoint.done.output;
  checkpoint.at ??= { name: graph.StartAt, input, variables: branch.variables, inner: [] };
  branch.variables = checkpoint.at.variables;
  for (;;) {
    const { at } = checkpoint;
    const state: State | undefined = graph.States[at.name];
    if (state === undefined) throw new StatesError("States.Runtime", `no state ${at.name}`);
    const { next, output } = await runState(state, at, branch);
    if (next === undefined) {
      checkpoint.done = { output };
      return output;
    }
    checkpoint.at = { name: next, input: output, variables: branch.variables, inner: [] };
  }
}

async function runState(state: State, at: StateCheckpoint, branch: Branch): Promise<StateResult> {
  const { execution } = branch;
  const { name, input, inner } = at;
  branch.signal.throwIfAborted();
  const slowMs = execution.interpreter.transitionMs();
  if (slowMs > 0) await pause(execution.interpreter.clock, slowMs, branch.signal);
  const isEntered = at.entered !== undefined;
  if (at.entered === undefined) {
    const time = isoTime(execution.interpreter.clock);
    at.entered = { time, event: execution.history.enter(name, state.Type, time) };
  }
  branch.signal.throwIfAborted();
  const { time: enteredTime, event: enteredEvent } = at.entered;
  const run: StateRun = { name, state, input, branch, enteredTime, enteredEvent, retryCount: 0, inner };
  if (!isEntered) publish(run, { type: "entered", stateName: name });
  try {
    const result = await step(run);
    branch.signal.throwIfAborted();
    branch.variables = { ...branch.variables, ...result.assigned };
    record(run, `${state.Type}StateExited`);
    publish(run, { type: "exited", stateName: name });
    return result;
  } catch (error) {
    if (error instanceof Interrupted) {
      if (working.includes(state.Type) || state.Type === "Wait")
        execution.history.add(`${state.Type}StateAborted`);
    } else if (!working.includes(state.Type) && error instanceof StatesError) {
      publishFailure(run, error);
    }
    throw error;
  }
}

async function step(run: StateRun): Promise<StateResult> {
  const { state, input } = run;
  switch (state.Type) {
    case "Pass":
    case "Succeed":
      return leave(run, state, "", {}, input);
    case "Wait":
      await wait(run, state.Seconds);
      return leave(run, state, "", {}, input);
    case "Choice":
      for (const [index, rule] of state.Choices.entries()) {
        const chosen = await evaluate(run, rule.Condition, `Choices[${index}]/Condition`);
        if (typeof chosen !== "boolean") {
          throw unexpected(run, `Choices[${index}]/Condition`, "a boolean", chosen);
        }
        if (chosen) return leave(run, rule, `Choices[${index}]/`, {}, input);
      }
      if (state.Default === undefined) {
        throw new StatesError("States.NoChoiceMatched", `No rule of the state '${run.name}' matched.`);
      }
      return leave(run, { ...state, Next: state.Default }, "", {}, input);
    case "Fail": {
      const error = state.Error === undefined ? undefined : await text(run, state.Error, "Error");
      const cause = state.Cause === undefined ? undefined : await text(run, state.Cause, "Cause");
      throw new StatesError(error ?? "", cause);
    }
    default:
      return runWithRetries(run as StateRun<WorkState>);
  }
}

/** Does the work of a state, again as Retry says, and leaves it by the state itself or by a catcher. */
async function runWithRetries(run: StateRun<WorkState>): Promise<StateResult> {
  const { state, branch, name } = run;
  const { clock, random } = branch.execution.interpreter;
  const retries = new Retries(state.Retry, random);
  for (;;) {
    try {
      const result = asPayload(await work(run, runGraph), `The result of the state '${name}'`);
      return await leave(run, state, "", { result }, result);
    } catch (thrown) {
      if (thrown instanceof Interrupted) throw thrown;
      branch.signal.throwIfAborted();
      const error = toStatesError(thrown);
      publishFailure(run, error);
      // Then nothing of what succeeded inside is kept, not even for a redrive.
      if (error.error === "States.DataLimitExceeded") run.inner.length = 0;
      const delayMs = retries.next(error);
      if (delayMs === undefined) return recover(run, error);
      publish(run, { type: "retried", stateName: name, error: error.error, delayMs });
      await pause(clock, delayMs, branch.signal);
      run.retryCount += 1;
      run.inner.length = 0;
    }
  }
}

async function recover(run: StateRun<WorkState>, error: StatesError): Promise<StateResult> {
  const found = catcherFor(run.state.Catch, error);
  if (found === undefined) throw error;
  const errorOutput = {
    Error: error.error,
    ...(error.cause === undefined ? {} : { Cause: error.cause }),
  };
  return leave(run, found.catcher, `Catch[${found.index}]/`, { errorOutput }, errorOutput);
}

/** Evaluates Output and Assign, both with the variables as they were at entry. */
async function leave(
  run: StateRun,
  exit: Exit,
  field: string,
  values: Pick<StatesVariable, "result" | "errorOutput">,
  fallback: unknown,
): Promise<StateResult> {
  const output =
    exit.Output === undefined ? fallback : await evaluate(run, exit.Output, `${field}Output`, values);
  const assigned: Record<string, unknown> = {};
  for (const [name, template] of Object.entries(exit.Assign ?? {})) {
    const value = await evaluate(run, template, `${field}Assign/${name}`, values);
    assigned[name] = asPayload(value, `The variable '${name}'`);
  }
  return {
    next: exit.Next,
    output: asPayload(output, `The output of the state '${run.name}'`),
    assigned,
  };
}

/** After a redrive it waits anew. */
async function wait(run: StateRun, seconds: unknown): Promise<void> {
  const { branch } = run;
  const waitMs = (await whole(run, seconds, "Seconds", 0)) * 1000;
  await pause(branch.execution.interpreter.clock, waitMs, branch.signal);
}
