import { Fn, Lazy, Stack } from "aws-cdk-lib";
import jsonata from "jsonata";
import { describe, expect, it } from "vitest";
import type { Json, State } from "../../packages/cdk/src/workflow/asl.ts";
import { refusingRedrive, withRefusals } from "../../packages/cdk/src/workflow/redrive-refusal.ts";

const task: State = { Type: "Task", QueryLanguage: "JSONata", Resource: "r", Arguments: { A: 1 }, End: true };

/** The timeout of a task in an execution that was redriven so many times; undefined counts for "the context has none". */
async function timeoutOf(state: State, redriveCount?: number): Promise<unknown> {
  const source = /^\{%(.*)%\}$/s.exec(String(state.TimeoutSeconds))?.[1] ?? "";
  const execution = redriveCount === undefined ? {} : { RedriveCount: redriveCount };
  return jsonata(source).evaluate(undefined, { states: { context: { Execution: execution } }, patience: 7 });
}

describe("a task that refuses to be redriven", () => {
  it.each<[string, Json | undefined, number]>([
    ["none", undefined, 99_999_999],
    ["a number", 30, 30],
    ["an expression", "{% $patience * 2 %}", 14],
    ["an expression of several parts", "{% ($a := $patience; $a > 5 ? $a : 5) %}", 7],
  ])("keeps its timeout otherwise: %s", async (_, TimeoutSeconds, expected) => {
    const { TimeoutSeconds: _none, ...rest } = task;
    const guarded = refusingRedrive(TimeoutSeconds === undefined ? rest : { ...rest, TimeoutSeconds });
    expect(await timeoutOf(guarded, 0)).toBe(expected);
    expect(await timeoutOf(guarded)).toBe(expected);
    await expect(timeoutOf(guarded, 1)).rejects.toThrow(
      "the execution was redriven after its lease had ended",
    );
    const { TimeoutSeconds: _guard, ...others } = guarded;
    expect(others).toEqual(rest);
  });

  it.each([
    ["a lazy number", Lazy.number({ produce: () => 45 }), "45"],
    [
      "an attribute that only the deployment knows",
      Fn.importValue("Timeout") as unknown as number,
      "Fn::ImportValue",
    ],
  ])("keeps a timeout that is %s", (_, TimeoutSeconds, expected) => {
    const resolved = new Stack().resolve(refusingRedrive({ ...task, TimeoutSeconds }));
    const text = JSON.stringify(resolved.TimeoutSeconds);
    expect(text).toContain(expected);
    expect(text).not.toMatch(/Token|e\+289/);
  });
});

it("a map in JSONata refuses that begins after the redrive, with its own concurrency otherwise", async () => {
  for (const [more, expected] of [
    [{}, 0],
    [{ MaxConcurrency: 5 }, 5],
    [{ MaxConcurrency: "{% $patience %}" }, 7],
  ] as const) {
    const inner = { StartAt: "C", States: { C: task } };
    const Each = { Type: "Map", QueryLanguage: "JSONata", ItemProcessor: inner, End: true, ...more };
    const { States } = withRefusals({ StartAt: "Each", States: { Each } }) as {
      States: { Each: { MaxConcurrency: string } };
    };
    const field = { ...task, TimeoutSeconds: States.Each.MaxConcurrency };
    expect(await timeoutOf(field, 0)).toBe(expected);
    await expect(timeoutOf(field, 1)).rejects.toThrow("the execution was redriven");
  }
});

it("each task in JSONata refuses, in branches, item processors and iterators, and a task in JSONPath stays as it is", () => {
  const path: State = { Type: "Task", Resource: "r", Parameters: { "A.$": "$.a" }, End: true };
  const inner = { StartAt: "A", States: { A: task, Path: path } };
  const graphOf = (each: Json): Json => ({
    StartAt: "Both",
    States: {
      Both: { Type: "Parallel", Branches: [each], Next: "Each" },
      Each: { Type: "Map", ItemProcessor: each, Next: "Old" },
      Old: { Type: "Map", Iterator: each, End: true },
    },
  });
  const refusing = { ...inner, States: { A: refusingRedrive(task), Path: path } };
  expect(withRefusals(graphOf(inner))).toEqual(graphOf(refusing));
});
