import { ManualClock } from "@leasehold/client/testing";
import { definitionProblems } from "@leasehold/local/definitions";
import { describe, expect, test } from "vitest";
import { machineArn, only } from "../../../test/support/state-machines.ts";
import { InvalidDefinitionError } from "../src/state-machines/errors.ts";
import { StateMachines } from "../src/state-machines/state-machines.ts";

const task = { Type: "Task", Resource: "arn:aws:states:::lambda:invoke" };
const done = { Type: "Succeed" };
const inner = { StartAt: "A", States: { A: done } };

/** A machine of one state in JSONata. */
const machineOf = (state: Record<string, unknown>) => ({ QueryLanguage: "JSONata", ...only(state) });

describe("the interpreter refuses", () => {
  function problems(definition: unknown): readonly string[] {
    const machines = new StateMachines({ clock: new ManualClock(), call: async () => null });
    try {
      machines.define({ arn: machineArn, name: "test", definition });
    } catch (error) {
      if (error instanceof InvalidDefinitionError) return error.problems;
      throw error;
    }
    return [];
  }

  test.each<[string, Record<string, unknown>, string]>([
    ["an unknown type", { Type: "Jump" }, "/States/S: the type Jump is not supported"],
    [
      "a field of JSONPath",
      { ...task, Parameters: {} },
      "/States/S/Parameters: is not supported; supported are",
    ],
    [
      "a misspelt field of a retrier",
      { ...task, Retry: [{ ErrorEquals: ["E"], MaxAttempt: 1 }] },
      "/States/S/Retry/0/MaxAttempt: is not supported",
    ],
    [
      "a field of JSONPath in a catcher",
      { ...task, Catch: [{ ErrorEquals: ["E"], Next: "S", ResultPath: "$.e" }] },
      "/States/S/Catch/0/ResultPath: is not supported",
    ],
    [
      "a distributed Map",
      { Type: "Map", ItemProcessor: { ProcessorConfig: { Mode: "DISTRIBUTED" }, ...inner } },
      "/States/S/ItemProcessor: only the mode INLINE is supported",
    ],
  ])("%s", (_name, state, problem) => {
    expect(problems(machineOf(state))).toEqual([expect.stringContaining(problem)]);
  });

  test("states in JSONPath that need a path", () => {
    expect(problems(only(task))).toEqual([
      '/States/S: a Task state in JSONPath is not supported: give it "QueryLanguage": "JSONata"',
    ]);
    expect(problems(only({ Type: "Pass", InputPath: "$" }))[0]).toContain("/States/S/InputPath");
  });
});

describe("the check of a definition finds", () => {
  test.each<[string, object, string]>([
    ["what asl-validator finds", machineOf({ Type: "Wait" }), "WAIT_DURATION"],
    [
      "what jsonata finds, in catchers too",
      machineOf({ ...task, Catch: [{ ErrorEquals: ["E"], Next: "S", Output: "{% ( %}" }], End: true }),
      "/States/S/Catch/0/Output: ",
    ],
    [
      "an operator that is newer than the JSONata of Step Functions",
      machineOf({ Type: "Pass", Output: { deep: ["{% $states.input.a ?? 1 %}"] } }),
      "/States/S/Output/deep/0: Step Functions has no ??",
    ],
    [
      "$eval",
      machineOf({ Type: "Pass", Output: "{% $eval('1') %}" }),
      "/States/S/Output: Step Functions has no $eval(",
    ],
    [
      "an expression inside of text",
      machineOf({ ...task, Arguments: { text: "now: {% $now() %}" } }),
      "/States/S/Arguments/text: an expression inside of text",
    ],
    [
      "States.ALL in company",
      machineOf({ ...task, Retry: [{ ErrorEquals: ["States.ALL", "E"] }] }),
      "/States/S/Retry: States.ALL must stand alone and in the last entry",
    ],
    [
      "States.ALL before others",
      machineOf({ ...task, Retry: [{ ErrorEquals: ["States.ALL"] }, { ErrorEquals: ["E"] }] }),
      "/States/S/Retry: States.ALL must stand alone and in the last entry",
    ],
    [
      "a variable of the outer scope that an inner one assigns",
      {
        QueryLanguage: "JSONata",
        StartAt: "P",
        States: {
          P: {
            Type: "Parallel",
            Branches: [{ StartAt: "A", States: { A: { Type: "Pass", Assign: { x: 1 }, End: true } } }],
            Catch: [{ ErrorEquals: ["States.ALL"], Assign: { x: 2 }, Next: "Done" }],
            Next: "Done",
          },
          Done: done,
        },
      },
      "/States/P/States/A: assigns $x of an outer scope",
    ],
    [
      "a variable that one way to its reader does not assign",
      {
        QueryLanguage: "JSONata",
        StartAt: "A",
        States: {
          A: { ...task, Assign: { x: 1 }, Next: "B", Catch: [{ ErrorEquals: ["E"], Next: "B" }] },
          B: {
            Type: "Pass",
            Output: "{% ($y := 1; $map([$y], function($z) { $x + $y + $z })) %}",
            End: true,
          },
        },
      },
      "/States/B: reads $x, which some way to it does not assign",
    ],
    [
      "a variable that is read inside of a state, and assigned later",
      {
        QueryLanguage: "JSONata",
        StartAt: "M",
        States: {
          M: {
            Type: "Map",
            ItemProcessor: { StartAt: "A", States: { A: { Type: "Pass", Output: "{% $x %}", End: true } } },
            Assign: { x: 1 },
            Next: "Done",
          },
          Done: done,
        },
      },
      "/States/M/States/A: reads $x, which some way to it does not assign",
    ],
  ])("%s", (_name, definition, problem) => {
    expect(definitionProblems(definition)).toEqual([expect.stringContaining(problem)]);
  });

  test("nothing in a definition that is right, and leaves it as it is", () => {
    const definition = only({
      ...task,
      QueryLanguage: "JSONata",
      Catch: [{ ErrorEquals: ["E"], Next: "S" }],
    });
    const before = structuredClone(definition);
    expect(definitionProblems(definition)).toEqual([]);
    expect(definition).toEqual(before);
  });
});
