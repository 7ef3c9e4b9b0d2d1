// The work of Task, Parallel and Map, which Retry may repeat.

import type { BranchCheckpoint } from "./checkpoint.ts";
import {
  type MapState,
  type ParallelState,
  type StateGraph,
  type TaskState,
  type WorkState,
  waitsForToken,
} from "./definition.ts";
import { Interrupted } from "./errors.ts";
import { asPayload } from "./payload.ts";
import { type Branch, contextOf, evaluate, record, type StateRun, unexpected, whole } from "./state-run.ts";
import { performTask } from "./task.ts";

/** Runs states from StartAt to an end. */
type RunGraph = (graph: StateGraph, input: unknown, branch: Branch) => Promise<unknown>;

/** Does the work of a state once, and gives its raw result. */
export function work(run: StateRun<WorkState>, runGraph: RunGraph): Promise<unknown> {
  switch (run.state.Type) {
    case "Task":
      return workTask(run as StateRun<TaskState>);
    case "Parallel":
      return workParallel(run as StateRun<ParallelState>, runGraph);
    case "Map":
      return workMap(run as StateRun<MapState>, runGraph);
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

async function workParallel(run: StateRun<ParallelState>, runGraph: RunGraph): Promise<unknown> {
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

async function workMap(run: StateRun<MapState>, runGraph: RunGraph): Promise<unknown> {
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
