import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { InvalidDefinitionError } from "../../tools/local/src/state-machines/errors.ts";
import { StateMachines } from "../../tools/local/src/state-machines/state-machines.ts";
import { machineArn, only } from "../support/state-machines.ts";

/** The problems that a definition is refused with. */
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

/** The problems of a machine of one state in JSONata. */
function problemsOf(state: Record<string, unknown>): readonly string[] {
  return problems({ QueryLanguage: "JSONata", ...only(state) });
}

const task = { Type: "Task", Resource: "r" };
const done = { Type: "Succeed" };

describe("a definition is refused", () => {
  test.each<[string, Record<string, unknown>, string]>([
    [
      "an unknown type",
      { Type: "Jump" },
      '/States/S/Type: must be one of Pass, Task, Choice, Wait, Succeed, Fail, Parallel, Map, not "Jump"',
    ],
    ["an unknown field", { Type: "Pass", Foo: 1 }, "/States/S/Foo: is not supported here"],
    ["a field of JSONPath", { ...task, Parameters: {} }, "/States/S/Parameters: is not supported here"],
    [
      "a timeout on Parallel",
      { Type: "Parallel", TimeoutSeconds: 1, Branches: [{ StartAt: "A", States: { A: done } }] },
      "/States/S/TimeoutSeconds: is not supported here",
    ],
    ["a catcher on Pass", { Type: "Pass", Catch: [] }, "/States/S/Catch: is not supported here"],
    [
      "a target that does not exist",
      { Type: "Pass", Next: "Gone" },
      '/States/S/Next: names no state here: "Gone"',
    ],
    ["Next and End at once", { Type: "Pass", Next: "S", End: true }, "/States/S: needs either Next or End"],
    [
      "a catcher's target",
      { ...task, Catch: [{ ErrorEquals: ["E"], Next: "Gone" }] },
      "/States/S/Catch/0/Next: names no state",
    ],
    ["a Choice without rules", { Type: "Choice", Choices: [] }, "/States/S/Choices: must be a list"],
    [
      "a rule of JSONPath",
      { Type: "Choice", Choices: [{ Variable: "$.a", NumericEquals: 1, Next: "S" }] },
      "/States/S/Choices/0/Variable: is not supported",
    ],
    [
      "a condition that is no expression",
      { Type: "Choice", Choices: [{ Condition: "$a", Next: "S" }] },
      "/States/S/Choices/0/Condition: must be a {% %} expression",
    ],
    [
      "a Wait for two things",
      { Type: "Wait", Seconds: 1, Timestamp: "2026-01-01T00:00:00Z" },
      "/States/S: needs either Seconds or Timestamp",
    ],
    [
      "a timestamp without zone",
      { Type: "Wait", Timestamp: "2026-01-01T00:00:00" },
      "/States/S/Timestamp: must be a time",
    ],
    ["a part of a second", { Type: "Wait", Seconds: 0.5 }, "/States/S/Seconds: must be a whole number"],
    [
      "a heartbeat as long as the timeout",
      { ...task, TimeoutSeconds: 5, HeartbeatSeconds: 5 },
      "/States/S/HeartbeatSeconds: must be smaller",
    ],
    [
      "an activity",
      { Type: "Task", Resource: "arn:aws:states:eu-central-1:1:activity:a" },
      "/States/S/Resource: activities are not supported",
    ],
    [
      "States.ALL in company",
      { ...task, Retry: [{ ErrorEquals: ["States.ALL", "E"] }] },
      "/States/S/Retry/0/ErrorEquals: States.ALL must stand alone",
    ],
    [
      "States.ALL before others",
      {
        ...task,
        Catch: [
          { ErrorEquals: ["States.ALL"], Next: "S" },
          { ErrorEquals: ["E"], Next: "S" },
        ],
      },
      "/States/S/Catch/0/ErrorEquals: States.ALL",
    ],
    [
      "a retrier's typing error",
      { ...task, Retry: [{ ErrorEquals: ["E"], MaxAttempt: 1 }] },
      "/States/S/Retry/0/MaxAttempt: is not supported",
    ],
    [
      "a shrinking backoff",
      { ...task, Retry: [{ ErrorEquals: ["E"], BackoffRate: 0.5 }] },
      "/States/S/Retry/0/BackoffRate: must be a number of at least 1",
    ],
    [
      "a distributed Map",
      {
        Type: "Map",
        ItemProcessor: { ProcessorConfig: { Mode: "DISTRIBUTED" }, StartAt: "A", States: { A: done } },
      },
      "/States/S/ItemProcessor/ProcessorConfig: only the mode INLINE",
    ],
    [
      "a Map that reads items",
      { Type: "Map", ItemReader: {}, ItemProcessor: { StartAt: "A", States: { A: done } } },
      "/States/S/ItemReader: is not supported",
    ],
    ["a reserved variable", { Type: "Pass", Assign: { states: 1 } }, "/States/S/Assign/states: is reserved"],
    [
      "no variable name",
      { Type: "Pass", Assign: { "a-b": 1 } },
      "/States/S/Assign/a-b: is not a variable name",
    ],
  ])("for %s", (_name, state, problem) => {
    expect(problemsOf(state).join("\n")).toContain(problem);
  });

  test.each<[string, string]>([
    ["$states.input.(", "S0203"],
    ["$states.input.a ?? 1", "the operator ?? does not exist there"],
    ["$states.input.a ?: 1", "the operator ?: does not exist there"],
    ["$eval('1')", "$eval is not available"],
    ["phone", 'a reference to "phone" at the top level is not supported'],
    ["$count(items.a)", 'a reference to "items" at the top level'],
    ["$map([1], function($v) { $v + other })", 'a reference to "other" at the top level'],
    ["$$.a", "there is no document for $$"],
    ["$", "there is no document for $ "],
    ["$states.errorOutput.Error", "$states.errorOutput exists only in a catcher"],
  ])("for the expression %s", (expression, problem) => {
    const found = problemsOf({ Type: "Pass", Output: { deep: [`{% ${expression} %}`] } });
    expect(found.join("\n")).toContain("/States/S/Output/deep/0: ");
    expect(found.join("\n")).toContain(problem);
  });

  test("for an expression that is not closed", () => {
    const found = problemsOf({ Type: "Pass", Output: "{% 1 " });
    expect(found).toEqual(["/States/S/Output: an expression must start with {% and end with %}"]);
  });

  test("for expressions in every field that takes them", () => {
    const bad = "{% ( %}";
    const states = [
      {
        ...task,
        Arguments: bad,
        TimeoutSeconds: bad,
        HeartbeatSeconds: bad,
        Output: bad,
        Assign: { a: bad },
      },
      { ...task, Catch: [{ ErrorEquals: ["E"], Next: "S", Output: bad, Assign: { a: bad } }] },
      {
        Type: "Choice",
        Choices: [{ Condition: bad, Next: "S", Output: bad, Assign: { a: bad } }],
        Output: bad,
      },
      { Type: "Wait", Seconds: bad },
      { Type: "Wait", Timestamp: bad },
      { Type: "Fail", Error: bad, Cause: bad },
      {
        Type: "Map",
        Items: bad,
        ItemSelector: bad,
        MaxConcurrency: bad,
        ItemProcessor: { StartAt: "A", States: { A: done } },
      },
    ];
    const counts = states.map(
      (state) => problemsOf(state).filter((problem) => problem.includes("S0203")).length,
    );
    expect(counts).toEqual([5, 2, 4, 1, 1, 2, 3]);
  });

  test("for states in JSONPath that need a path, by name", () => {
    const machine = (state: Record<string, unknown>) => only(state);
    expect(problems(machine(task))).toEqual([
      '/States/S: a Task state in JSONPath is not supported: give it "QueryLanguage": "JSONata"',
    ]);
    expect(problems(machine({ Type: "Pass", InputPath: "$" }))[0]).toContain(
      "/States/S/InputPath: is not supported",
    );
    expect(problemsOf({ Type: "Pass", QueryLanguage: "JSONPath" })).toEqual([
      "/States/S/QueryLanguage: a machine in JSONata has no states in JSONPath",
    ]);
  });

  test("for a branch's states in JSONata when only the state around them says so", () => {
    const parallel = {
      Type: "Parallel",
      QueryLanguage: "JSONata",
      Branches: [{ StartAt: "A", States: { A: { ...task, End: true } } }],
    };
    expect(problems(only(parallel))[0]).toContain("/States/S/Branches/0/States/A: a Task state in JSONPath");
  });

  test("for graphs that cannot run", () => {
    const graph = (fields: object) => problems({ QueryLanguage: "JSONata", ...fields });
    expect(graph({ StartAt: "Gone", States: { S: done } })).toEqual([
      '/StartAt: names no state here: "Gone"',
    ]);
    expect(graph({ StartAt: "S", States: { S: { Type: "Pass", Next: "S" } } })).toEqual([
      "/States: no state ends it: one needs End, or the type Succeed or Fail",
    ]);
    expect(graph({ StartAt: "S" })).toContain("/States: must be an object");
    expect(graph({ StartAt: "S", States: { S: done }, Timeout: 1 })[0]).toContain(
      "/Timeout: is not supported",
    );
    expect(problems("not JSON")[0]).toContain("/: is not JSON");
    expect(problems(null)).toEqual(["/: must be an object"]);
  });

  test("for a name that two states share, and a variable of the outer scope assigned within", () => {
    const found = problems({
      QueryLanguage: "JSONata",
      StartAt: "P",
      States: {
        P: {
          Type: "Parallel",
          Branches: [{ StartAt: "P", States: { P: { Type: "Pass", Assign: { x: 1 }, End: true } } }],
          Catch: [{ ErrorEquals: ["States.ALL"], Assign: { x: 2 }, Next: "Done" }],
          Next: "Done",
        },
        Done: done,
      },
    });
    expect(found).toEqual([
      "/States/P/Branches/0/States/P: another state of this machine has the same name",
      "/States/P/Branches/0/States/P/Assign/x: is a variable of an outer scope, which only that scope assigns",
    ]);
  });

  test("with all its problems at once", () => {
    expect(problemsOf({ Type: "Pass", Foo: 1, Output: "{% ( %}", Next: "Gone" })).toHaveLength(4);
  });
});

describe("a definition is taken", () => {
  test.each([
    "$states.input.items[price > 10].(name & '?:')^(name)",
    "$states.input{kind: $count(price)}",
    "$map($states.input.list, function($v, $i) { $v.a + $i })",
    "$replace($states.input.text, /(?:a|b)/, '??')",
    "($x := $states.input; $exists($x.a) ? $x.a : 'none')",
    "$states.input ~> |list|{'a': b}|",
    "$filter($states.input.list, function($v) { $v in ['a'] })",
    "$states.input.list.$string($)",
    "/* ?? */ $merge([$states.input, {'time': $millis()}])",
  ])("with the expression %s", (expression) => {
    expect(problemsOf({ Type: "Pass", Output: `{% ${expression} %}` })).toEqual([]);
  });

  test("as JSON, with states that nothing leads to", () => {
    const definition = { QueryLanguage: "JSONata", StartAt: "S", States: { S: done, Lonely: done } };
    expect(problems(JSON.stringify(definition))).toEqual([]);
  });
});
