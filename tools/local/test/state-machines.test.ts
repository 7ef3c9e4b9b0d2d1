import { describe, expect, test } from "vitest";
import { bench, only } from "../../../test/support/state-machines.ts";
import type { ServiceCall } from "../src/state-machines/task.ts";

/** Runs a machine that needs no time to pass. */
async function outcome(definition: object, input: unknown = {}, call?: ServiceCall) {
  const { machines, start } = bench(definition, call);
  const arn = await start(input);
  const { status, output, error, cause } = machines.describe(arn);
  return { status, output, error, cause, history: machines.history(arn) };
}

describe("states", () => {
  test("Choice fails without a match, and with a condition that is no boolean", async () => {
    const choice = (condition: string) => ({
      StartAt: "S",
      States: {
        S: { Type: "Choice", Choices: [{ Condition: condition, Next: "Done" }] },
        Done: { Type: "Succeed" },
      },
    });
    expect(await outcome(choice("{% false %}"))).toMatchObject({ error: "States.NoChoiceMatched" });
    expect(await outcome(choice("{% 1 %}"))).toMatchObject({ error: "States.QueryEvaluationError" });
  });

  test("Parallel gives the outputs in the order of its branches, each fed with Arguments", async () => {
    const branch = (name: string, seconds: number) => ({
      StartAt: name,
      States: {
        [name]: { Type: "Wait", Seconds: seconds, Output: `{% '${name}' & $states.input %}`, End: true },
      },
    });
    const parallel = { Type: "Parallel", Arguments: "{% $states.input.x %}" };
    const { clock, machines, start } = bench(
      only({ ...parallel, Branches: [branch("A", 5), branch("B", 1)] }),
    );
    const arn = await start({ x: "!" });
    await clock.advance(5000);
    expect(machines.describe(arn).output).toEqual(["A!", "B!"]);
  });

  test("one failing branch aborts the others before the catcher goes on", async () => {
    const signals: AbortSignal[] = [];
    const { clock, machines, start } = bench(
      {
        StartAt: "P",
        States: {
          P: {
            Type: "Parallel",
            Branches: [
              {
                StartAt: "Soon",
                States: {
                  Soon: { Type: "Wait", Seconds: 1, Next: "Bad" },
                  Bad: { Type: "Fail", Error: "Own" },
                },
              },
              { StartAt: "Work", States: { Work: { Type: "Task", Resource: "r", End: true } } },
              { StartAt: "Long", States: { Long: { Type: "Wait", Seconds: 100, End: true } } },
            ],
            Catch: [{ ErrorEquals: ["Own"], Next: "Caught" }],
            End: true,
          },
          Caught: { Type: "Succeed" },
        },
      },
      async (_resource, _args, { signal }) => {
        signals.push(signal);
        return new Promise(() => {});
      },
    );
    const arn = await start();
    expect(signals[0]?.aborted).toBe(false);
    await clock.advance(1000);
    expect(signals[0]?.aborted).toBe(true);
    expect(machines.describe(arn)).toMatchObject({ status: "SUCCEEDED", output: { Error: "Own" } });
    expect(clock.pending).toBe(0);
    const { counts } = machines.history(arn);
    expect(counts).toMatchObject({ ParallelStateFailed: 1, TaskStateAborted: 1, WaitStateAborted: 1 });
  });

  test("Map runs every item with its index, at most MaxConcurrency at a time", async () => {
    let running = 0;
    let most = 0;
    const map = {
      Type: "Map",
      Items: "{% $states.input.list %}",
      ItemSelector: { i: "{% $states.context.Map.Item.Index %}", v: "{% $states.context.Map.Item.Value %}" },
      MaxConcurrency: 2,
      ItemProcessor: {
        ProcessorConfig: { Mode: "INLINE" },
        StartAt: "One",
        States: { One: { Type: "Task", Resource: "r", Arguments: "{% $states.input %}", End: true } },
      },
    };
    const result = await outcome(only(map), { list: ["a", "b", "c"] }, async (_resource, args) => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      return args;
    });
    expect(result.output).toEqual([
      { i: 0, v: "a" },
      { i: 1, v: "b" },
      { i: 2, v: "c" },
    ]);
    expect(most).toBe(2);
    expect(result.history.counts).toMatchObject({ MapIterationStarted: 3, MapIterationSucceeded: 3 });
  });
});

describe("variables", () => {
  test("Assign and Output see the values from before, the next state the new ones", async () => {
    const definition = {
      StartAt: "First",
      States: {
        First: { Type: "Pass", Assign: { a: 1, b: 2 }, Next: "Swap" },
        Swap: {
          Type: "Pass",
          Assign: { a: "{% $b %}", b: "{% $a %}" },
          Output: "{% [$a, $b] %}",
          Next: "Last",
        },
        Last: { Type: "Pass", Output: ["{% $states.input %}", "{% $a %}", "{% $b %}"], End: true },
      },
    };
    expect(await outcome(definition)).toMatchObject({ output: [[1, 2], 2, 1] });
  });

  test("a branch reads the outer variables, and what it assigns ends with it", async () => {
    const branch = (name: string) => ({
      StartAt: name,
      States: {
        [name]: { Type: "Pass", Assign: { own: name }, Next: `${name}2` },
        [`${name}2`]: { Type: "Pass", Output: "{% $outer & $own %}", End: true },
      },
    });
    const definition = {
      StartAt: "First",
      States: {
        First: { Type: "Pass", Assign: { outer: "o" }, Next: "Both" },
        Both: { Type: "Parallel", Branches: [branch("A"), branch("B")], Next: "Last" },
        Last: {
          Type: "Pass",
          Output: { both: "{% $states.input %}", own: "{% $exists($own) %}" },
          End: true,
        },
      },
    };
    expect(await outcome(definition)).toMatchObject({ output: { both: ["oA", "oB"], own: false } });
  });

  test("a task that fails assigns nothing but what its catcher assigns", async () => {
    const definition = {
      StartAt: "T",
      States: {
        T: {
          Type: "Task",
          Resource: "r",
          Assign: { a: "task" },
          Catch: [
            {
              ErrorEquals: ["States.ALL"],
              Next: "Last",
              Assign: { b: "{% $states.errorOutput.Error %}" },
              Output: "{% $states.input %}",
            },
          ],
          End: true,
        },
        Last: { Type: "Pass", Output: ["{% $exists($a) %}", "{% $b %}", "{% $states.input %}"], End: true },
      },
    };
    const failing = async () => Promise.reject(new Error("broken"));
    const result = await outcome(definition, 5, failing);
    expect(result).toMatchObject({ output: [false, "States.TaskFailed", 5] });
  });
});

describe("JSONata", () => {
  const evaluate = async (expression: string, input: unknown = {}) =>
    outcome(only({ Type: "Pass", Output: `{% ${expression} %}` }), input);

  test("an expression that gives nothing, or throws, fails the state and names the field", async () => {
    const nothing = await outcome(only({ Type: "Pass", Output: { v: "{% $states.input.missing %}" } }));
    expect(nothing.error).toBe("States.QueryEvaluationError");
    expect(nothing.cause).toBe(
      "An error occurred while executing the state 'S' (entered at the event id #2). The JSONata expression " +
        "'$states.input.missing' specified for the field 'Output/v' returned nothing (undefined).",
    );
    expect(await evaluate("1 + 'a'")).toMatchObject({ error: "States.QueryEvaluationError" });
    expect((await evaluate("$parse('{')")).error).toBe("States.QueryEvaluationError");
    expect(await evaluate("$sum")).toMatchObject({ error: "States.QueryEvaluationError" });
    expect(await evaluate("$states.result")).toMatchObject({ error: "States.QueryEvaluationError" });
    expect(nothing.history.counts).toMatchObject({ EvaluationFailed: 1 });
  });

  test("the context tells of execution, state and machine", async () => {
    const { machines, start } = bench(only({ Type: "Pass", Output: "{% $states.context %}" }));
    const arn = await start({ a: 1 }, "run-1");
    expect(machines.describe(arn).output).toEqual({
      Execution: {
        Id: "arn:aws:states:eu-central-1:123456789012:execution:test:run-1",
        Input: { a: 1 },
        Name: "run-1",
        RoleArn: "arn:aws:iam::123456789012:role/test",
        StartTime: "2026-01-01T00:00:00.000Z",
        RedriveCount: 0,
      },
      State: { Name: "S", EnteredTime: "2026-01-01T00:00:00.000Z", RetryCount: 0 },
      StateMachine: { Id: "arn:aws:states:eu-central-1:123456789012:stateMachine:test", Name: "test" },
    });
  });
});
