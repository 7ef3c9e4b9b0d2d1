import { settled } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { bench, only } from "../../../test/support/state-machines.ts";
import { StatesError } from "../src/state-machines/errors.ts";
import type { ServiceCall, TaskContext } from "../src/state-machines/task.ts";

const never: ServiceCall = () => new Promise(() => {});
const task = { Type: "Task", Resource: "arn:aws:states:::aws-sdk:dynamodb:updateItem" };
const waitResource = "arn:aws:states:::aws-sdk:dynamodb:transactWriteItems.waitForTaskToken";

/** Fails as often as there are errors, then succeeds. */
function failing(...errors: string[]): { call: ServiceCall; calls: number[] } {
  const calls: number[] = [];
  return {
    calls,
    call: async () => {
      const error = errors[calls.push(0) - 1];
      if (error !== undefined) throw new StatesError(error, "cause");
      return "done";
    },
  };
}

describe("retry", () => {
  test("waits IntervalSeconds, grown by BackoffRate up to MaxDelaySeconds, at most MaxAttempts times", async () => {
    const { call, calls } = failing("E", "E", "E", "E");
    const retry = {
      ErrorEquals: ["E"],
      IntervalSeconds: 2,
      BackoffRate: 3,
      MaxAttempts: 3,
      MaxDelaySeconds: 10,
    };
    const { clock, machines, start } = bench(only({ ...task, Retry: [retry] }), call);
    const arn = await start();
    expect(calls).toHaveLength(1);
    await clock.advance(1999);
    expect(calls).toHaveLength(1);
    await clock.advance(1);
    expect(calls).toHaveLength(2);
    await clock.advance(6000);
    expect(calls).toHaveLength(3);
    await clock.advance(9999);
    expect(calls).toHaveLength(3);
    await clock.advance(1);
    expect(calls).toHaveLength(4);
    expect(machines.describe(arn)).toMatchObject({ status: "FAILED", error: "E", cause: "cause" });
    const { counts, entered } = machines.history(arn);
    expect(counts).toMatchObject({ TaskScheduled: 4, TaskFailed: 4, TaskStateEntered: 1 });
    expect(entered).toHaveLength(1);
  });

  test("by default three times after 1, 2 and 4 seconds; the context counts them", async () => {
    const seen: unknown[] = [];
    const state = {
      ...task,
      Arguments: "{% $states.context.State.RetryCount %}",
      Retry: [{ ErrorEquals: ["States.TaskFailed"] }],
    };
    const { clock, machines, start } = bench(only(state), async (_resource, args) => {
      seen.push([args, clock.monotonic()]);
      if (seen.length < 4) throw new StatesError("Any");
      return null;
    });
    const arn = await start();
    await clock.advance(7000);
    expect(seen).toEqual([
      [0, 0],
      [1, 1000],
      [2, 3000],
      [3, 7000],
    ]);
    expect(machines.describe(arn).status).toBe("SUCCEEDED");
  });
});

describe("catch", () => {
  const catching = (...errors: string[]) => ({
    StartAt: "T",
    States: {
      T: {
        ...task,
        TimeoutSeconds: 10,
        Catch: errors.map((error, index) => ({
          ErrorEquals: [error],
          Next: "Caught",
          Assign: { which: index },
        })),
        End: true,
      },
      Caught: { Type: "Pass", Output: ["{% $which %}", "{% $states.input %}"], End: true },
    },
  });

  test("States.TaskFailed takes everything but timeouts, States.ALL these too", async () => {
    const failed = bench(catching("States.TaskFailed"), failing("E").call);
    expect(failed.machines.describe(await failed.start()).output).toMatchObject([0, { Error: "E" }]);
    const timeout = bench(catching("States.TaskFailed", "States.ALL"), never);
    const arn = await timeout.start();
    await timeout.clock.advance(10_000);
    expect(timeout.machines.describe(arn).output).toEqual([1, { Error: "States.Timeout" }]);
  });

  test("an expression that fails in a task is caught as well", async () => {
    const definition = catching("States.QueryEvaluationError");
    Object.assign(definition.States.T, { Output: "{% $states.result.missing %}" });
    const { machines, start } = bench(definition, async () => ({}));
    const { output } = machines.describe(await start());
    expect(output).toMatchObject([0, { Error: "States.QueryEvaluationError" }]);
  });
});

describe("timeouts", () => {
  test("a task that takes too long fails, its signal aborts, and what it answers later changes nothing", async () => {
    for (const seconds of [30, "{% $states.input.s %}"]) {
      let context: TaskContext | undefined;
      const late = Promise.withResolvers<unknown>();
      const { clock, machines, start } = bench(
        only({ ...task, TimeoutSeconds: seconds }),
        (_r, _a, given) => {
          context = given;
          return late.promise;
        },
      );
      const arn = await start({ s: 30 });
      await clock.advance(29_999);
      expect(context?.signal.aborted).toBe(false);
      await clock.advance(1);
      expect(context?.signal.aborted).toBe(true);
      expect(machines.describe(arn)).toMatchObject({ status: "FAILED", error: "States.Timeout" });
      late.reject(new Error("late"));
      await settled();
      expect(machines.describe(arn).error).toBe("States.Timeout");
      expect(machines.history(arn).counts).toMatchObject({ TaskTimedOut: 1 });
    }
  });

  test("a machine's timeout ends it as TIMED_OUT, past every catcher", async () => {
    const definition = {
      TimeoutSeconds: 60,
      StartAt: "T",
      States: {
        T: { ...task, Catch: [{ ErrorEquals: ["States.ALL"], Next: "Done" }], Next: "Done" },
        Done: { Type: "Succeed" },
      },
    };
    const { clock, machines, start } = bench(definition, never);
    const arn = await start();
    await clock.advance(60_000);
    const description = machines.describe(arn);
    expect(description).toMatchObject({ status: "TIMED_OUT", stopDate: "2026-01-01T00:01:00.000Z" });
    expect(description).not.toHaveProperty("error");
    expect(clock.pending).toBe(0);
  });
});

describe("task tokens", () => {
  const waiting = {
    Type: "Task",
    Resource: waitResource,
    Arguments: { token: "{% $states.context.Task.Token %}" },
    TimeoutSeconds: 100,
  };

  /** A machine of one task that waits for its token; the call returns at once. */
  async function parked(state: object = waiting) {
    const tokens: string[] = [];
    const made = bench(only({ ...state }), async (_resource, args, { taskToken }) => {
      expect((args as { token: string }).token).toBe(taskToken);
      tokens.push(String(taskToken));
      return "the call's own result";
    });
    const arn = await made.start();
    return { ...made, arn, tokens, token: tokens[0] ?? "" };
  }

  test("the answer to the token is the result", async () => {
    const { machines, clock, arn, token } = await parked();
    expect(machines.describe(arn).status).toBe("RUNNING");
    machines.sendTaskSuccess(token, { a: 1 });
    expect(await machines.finished(arn)).toMatchObject({ status: "SUCCEEDED", output: { a: 1 } });
    expect(machines.history(arn)).toMatchObject({ events: 8, counts: { TaskSubmitted: 1 } });
    expect(clock.pending).toBe(0);
  });

  test("a failure sent to the token is the task's error", async () => {
    const { machines, arn, token } = await parked();
    machines.sendTaskFailure(token, { error: "Own", cause: "why" });
    expect(await machines.finished(arn)).toMatchObject({ status: "FAILED", error: "Own", cause: "why" });
  });

  test("a timeout ends the wait, and a retry waits for another token", async () => {
    const { machines, clock, arn, tokens } = await parked({
      ...waiting,
      Retry: [{ ErrorEquals: ["States.Timeout"], MaxAttempts: 1 }],
    });
    await clock.advance(101_000);
    expect(tokens).toHaveLength(2);
    expect(tokens[0]).not.toBe(tokens[1]);
    expect(() => machines.sendTaskSuccess(tokens[0] ?? "", 1)).toThrow("TaskTimedOut");
    machines.sendTaskSuccess(tokens[1] ?? "", 2);
    expect(await machines.finished(arn)).toMatchObject({ output: 2 });
  });

  test("late answers and wrong tokens are refused by name", async () => {
    const { machines, token } = await parked();
    machines.sendTaskSuccess(token, 1);
    expect(() => machines.sendTaskSuccess(token, 2)).toThrow(/^TaskTimedOut/);
    expect(() => machines.sendTaskFailure(token, {})).toThrow(/^TaskTimedOut/);
    expect(() => machines.sendTaskSuccess("nonsense", 3)).toThrow(/^TaskDoesNotExist/);
  });

  test("a token can be answered before the call that hands it out returns", async () => {
    const { machines, start } = bench(only({ ...waiting }), async (_resource, _args, { taskToken = "" }) => {
      machines.sendTaskSuccess(taskToken, "early");
      throw new StatesError("Lost", "the answer to the call got lost");
    });
    const arn = await start();
    expect(machines.describe(arn)).toMatchObject({ status: "SUCCEEDED", output: "early" });
    expect(machines.history(arn).events).toBe(8);
  });
});
