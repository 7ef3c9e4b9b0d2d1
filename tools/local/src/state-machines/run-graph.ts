// Runs states one after the other: their work, their retries, their catchers and their ways out.

import {
  type Catcher,
  type Exit,
  type MapState,
  type ParallelState,
  type Retrier,
  type State,
  type StateGraph,
  type TaskState,
  type WorkState,
  waitsForToken,
} from "./definition.ts";
import { Interrupted, StatesError, toStatesError } from "./errors.ts";
import { asPayload, type StatesVariable, type Variables } from "./jsonata.ts";
import {
  type Branch,
  type BranchCheckpoint,
  contextOf,
  evaluate,
  publish,
  publishFailure,
  record,
  type StateCheckpoint,
  type StateRun,
  text,
  unexpected,
  whole,
} from "./state-run.ts";
import { performTask } from "./task.ts";
import { isoTime, pause } from "./timers.ts";

/** How a state was left. */
interface StateResult {
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
      const result = asPayload(await work(run), `The result of the state '${name}'`);
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

/** Does the work of a state once, and gives its raw result. */
function work(run: StateRun<WorkState>): Promise<unknown> {
  switch (run.state.Type) {
    case "Task":
      return workTask(run as StateRun<TaskState>);
    case "Parallel":
      return workParallel(run as StateRun<ParallelState>);
    case "Map":
      return workMap(run as StateRun<MapState>);
  }
}

async function workTask(run: StateRun<TaskState>): Promise<unknown> {
  const { state, branch, name } = run;
  const { execution } = branch;
  const { clock, tokens, call } = execution.interpreter;
  const taskToken = waitsForToken(state.Resource) ? tokens.create() : undefined;
  const context = contextOf(run, taskToken === undefined ? {} : { Task: { Token: taskToken } });
  const args = await evaluate(run, state.Arguments ?? {}, "Arguments", { context });
  const { TimeoutSeconds } = state;
  const timeoutSeconds =
    TimeoutSeconds === undefined ? undefined : await whole(run, TimeoutSeconds, "TimeoutSeconds", 1);
  return performTask(
    {
      resource: state.Resource,
      args: asPayload(args, `The arguments of the state '${name}'`),
      context: {
        executionArn: execution.arn,
        stateMachineArn: execution.machine.arn,
        stateName: name,
        ...(taskToken === undefined ? {} : { taskToken }),
      },
      timeoutSeconds,
      signal: branch.signal,
      record: (type) => execution.history.add(type),
    },
    clock,
    tokens,
    call,
  );
}

async function workParallel(run: StateRun<ParallelState>): Promise<unknown> {
  const { state } = run;
  const input = run.inner.length > 0 ? undefined : await argumentsOf(run);
  const jobs = state.Branches.map((graph) => (child: Branch) => runGraph(graph, input, child));
  return runChildren(run, jobs, jobs.length);
}

/** What the branches begin with; one that was begun before a redrive goes on with what it had. */
async function argumentsOf(run: StateRun<ParallelState>): Promise<unknown> {
  const { state, input, name } = run;
  const args = state.Arguments === undefined ? input : await evaluate(run, state.Arguments, "Arguments");
  return asPayload(args, `The arguments of the state '${name}'`);
}

async function workMap(run: StateRun<MapState>): Promise<unknown> {
  const { state, branch } = run;
  const { history } = branch.execution;
  const items = state.Items === undefined ? run.input : await evaluate(run, state.Items, "Items");
  if (!Array.isArray(items)) throw unexpected(run, "Items", "a list", items);
  const limit = await whole(run, state.MaxConcurrency ?? 0, "MaxConcurrency", 0);
  const jobs = items.map((Value: unknown, Index) => async (child: Branch) => {
    if (child.checkpoint.done !== undefined) return child.checkpoint.done.output;
    const item = { Index, Value };
    record(run, "MapIterationStarted");
    try {
      const context = contextOf(run, { Map: { Item: item } });
      const input =
        state.ItemSelector === undefined
          ? Value
          : await evaluate(run, state.ItemSelector, "ItemSelector", { context });
      const output = await runGraph(state.ItemProcessor, input, { ...child, item });
      record(run, "MapIterationSucceeded");
      return output;
    } catch (error) {
      history.add(child.signal.aborted ? "MapIterationAborted" : "MapIterationFailed");
      throw error;
    }
  });
  return runChildren(run, jobs, limit === 0 ? jobs.length : limit);
}

type Job = (child: Branch) => Promise<unknown>;

async function runChildren(run: StateRun, jobs: readonly Job[], limit: number): Promise<unknown[]> {
  const { state, branch } = run;
  record(run, `${state.Type}StateStarted`);
  try {
    const results = await runConcurrently(branch, jobs, limit, run.inner);
    record(run, `${state.Type}StateSucceeded`);
    return results;
  } catch (error) {
    if (!branch.signal.aborted) branch.execution.history.add(`${state.Type}StateFailed`);
    throw error;
  }
}

/**
 * Runs jobs side by side, at most `limit` at a time, each with variables and checkpoint of its own.
 *
 * The first failure aborts the others. It is thrown only when all of them have stopped, so that nothing of a
 * failed state runs on beside what follows it.
 */
async function runConcurrently(
  branch: Branch,
  jobs: readonly Job[],
  limit: number,
  inner: BranchCheckpoint[],
): Promise<unknown[]> {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(branch.signal.reason);
  branch.signal.addEventListener("abort", onAbort, { once: true });
  const results: unknown[] = [];
  const waiting = jobs.entries();
  let failure: { readonly error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (const [index, job] of waiting) {
      try {
        controller.signal.throwIfAborted();
        inner[index] ??= {};
        results[index] = await job({ ...branch, signal: controller.signal, checkpoint: inner[index] });
      } catch (error) {
        failure ??= { error };
        controller.abort(new Interrupted("a sibling failed"));
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, jobs.length) }, worker));
  branch.signal.removeEventListener("abort", onAbort);
  branch.signal.throwIfAborted();
  if (failure !== undefined) throw failure.error;
  return results;
}

/** Errors that the wildcards leave alone. */
const terminal: readonly string[] = ["States.DataLimitExceeded", "States.Runtime"];

/** Whether a retrier or catcher names an error. */
function matches(errorEquals: readonly string[], error: string): boolean {
  if (error === "States.Runtime") return false;
  return errorEquals.some((name) => {
    if (name === error) return true;
    if (name === "States.ALL") return !terminal.includes(error);
    return name === "States.TaskFailed" && !terminal.includes(error) && error !== "States.Timeout";
  });
}

/** The first catcher that takes an error. */
function catcherFor(
  catchers: readonly Catcher[] | undefined,
  error: StatesError,
): { readonly catcher: Catcher; readonly index: number } | undefined {
  const index = catchers?.findIndex(({ ErrorEquals }) => matches(ErrorEquals, error.error)) ?? -1;
  const catcher = catchers?.[index];
  return catcher === undefined ? undefined : { catcher, index };
}

/** Counts the retries of one run of a state; each retrier has a count of its own. */
class Retries {
  readonly #retriers: readonly Retrier[];
  readonly #random: () => number;
  readonly #used = new Map<Retrier, number>();

  constructor(retriers: readonly Retrier[] | undefined, random: () => number) {
    this.#retriers = retriers ?? [];
    this.#random = random;
  }

  /** How long to wait before the next attempt, in milliseconds; undefined when there is none. */
  next(error: StatesError): number | undefined {
    // The first retrier that matches decides, even when it has no attempts left.
    const retrier = this.#retriers.find(({ ErrorEquals }) => matches(ErrorEquals, error.error));
    if (retrier === undefined) return undefined;
    const used = this.#used.get(retrier) ?? 0;
    if (used >= (retrier.MaxAttempts ?? 3)) return undefined;
    this.#used.set(retrier, used + 1);
    const backedOff = (retrier.IntervalSeconds ?? 1) * (retrier.BackoffRate ?? 2) ** used;
    const seconds = Math.min(backedOff, retrier.MaxDelaySeconds ?? Number.POSITIVE_INFINITY);
    return seconds * 1000 * (retrier.JitterStrategy === "FULL" ? this.#random() : 1);
  }
}
