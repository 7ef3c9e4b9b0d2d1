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
import type { Progress } from "./progress.ts";
import { performTask } from "./task.ts";
import { type Branch, contextOf, evaluate, record, unexpected, type Visit, whole } from "./visit.ts";

/** Runs states from StartAt to an end. */
type RunGraph = (graph: StateGraph, input: unknown, branch: Branch) => Promise<unknown>;

/** Does the work of a state once, and gives its raw result. */
export function work(visit: Visit<WorkState>, runGraph: RunGraph): Promise<unknown> {
  switch (visit.state.Type) {
    case "Task":
      return workTask(visit as Visit<TaskState>);
    case "Parallel":
      return workParallel(visit as Visit<ParallelState>, runGraph);
    case "Map":
      return workMap(visit as Visit<MapState>, runGraph);
  }
}

async function workTask(visit: Visit<TaskState>): Promise<unknown> {
  const { state, branch, name } = visit;
  const { execution } = branch;
  const { clock, tokens, call } = execution.interpreter;
  const taskToken = waitsForToken(state.Resource) ? tokens.create() : undefined;
  const context = contextOf(visit, taskToken === undefined ? {} : { Task: { Token: taskToken } });
  const args = await evaluate(visit, state.Arguments ?? {}, "Arguments", { context });
  const seconds = (value: unknown, field: string): Promise<number> | undefined =>
    value === undefined ? undefined : whole(visit, value, field, 1);
  const timeoutSeconds = await seconds(state.TimeoutSeconds, "TimeoutSeconds");
  const heartbeatSeconds = await seconds(state.HeartbeatSeconds, "HeartbeatSeconds");
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
      heartbeatSeconds,
      signal: branch.signal,
      record: (type) => execution.history.add(type),
    },
    clock,
    tokens,
    call,
  );
}

async function workParallel(visit: Visit<ParallelState>, runGraph: RunGraph): Promise<unknown> {
  const { state } = visit;
  const input = visit.inner.length > 0 ? undefined : await argumentsOf(visit);
  const jobs = state.Branches.map((graph) => (child: Branch) => runGraph(graph, input, child));
  return asWhole(visit, jobs, jobs.length);
}

/** What the branches begin with; one that was begun before a redrive goes on with what it had. */
async function argumentsOf(visit: Visit<ParallelState>): Promise<unknown> {
  const { state, input, name } = visit;
  const args = state.Arguments === undefined ? input : await evaluate(visit, state.Arguments, "Arguments");
  return asPayload(args, `The arguments of the state '${name}'`);
}

async function workMap(visit: Visit<MapState>, runGraph: RunGraph): Promise<unknown> {
  const { state, branch } = visit;
  const { history } = branch.execution;
  const items = state.Items === undefined ? visit.input : await evaluate(visit, state.Items, "Items");
  if (!Array.isArray(items)) throw unexpected(visit, "Items", "a list", items);
  const limit = await whole(visit, state.MaxConcurrency ?? 0, "MaxConcurrency", 0);
  const jobs = items.map((Value: unknown, Index) => async (child: Branch) => {
    if (child.progress.done !== undefined) return child.progress.done.output;
    const item = { Index, Value };
    record(visit, "MapIterationStarted");
    try {
      const context = contextOf(visit, { Map: { Item: item } });
      const input =
        state.ItemSelector === undefined
          ? Value
          : await evaluate(visit, state.ItemSelector, "ItemSelector", { context });
      const output = await runGraph(state.ItemProcessor, input, { ...child, item });
      record(visit, "MapIterationSucceeded");
      return output;
    } catch (error) {
      history.add(child.signal.aborted ? "MapIterationAborted" : "MapIterationFailed");
      throw error;
    }
  });
  return asWhole(visit, jobs, limit === 0 ? jobs.length : limit);
}

type Job = (child: Branch) => Promise<unknown>;

async function asWhole(visit: Visit, jobs: readonly Job[], limit: number): Promise<unknown[]> {
  const { state, branch } = visit;
  record(visit, `${state.Type}StateStarted`);
  try {
    const results = await fork(branch, jobs, limit, visit.inner);
    record(visit, `${state.Type}StateSucceeded`);
    return results;
  } catch (error) {
    if (!branch.signal.aborted) branch.execution.history.add(`${state.Type}StateFailed`);
    throw error;
  }
}

/**
 * Runs jobs side by side, at most `limit` at a time, each with variables and progress of its own.
 *
 * The first failure aborts the others. It is thrown only when all of them have stopped, so that nothing of a
 * failed state runs on beside what follows it.
 */
async function fork(
  branch: Branch,
  jobs: readonly Job[],
  limit: number,
  inner: Progress[],
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
        results[index] = await job({ ...branch, signal: controller.signal, progress: inner[index] });
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
