import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { StatesError } from "../src/state-machines/errors.ts";
import { StateMachines } from "../src/state-machines/state-machines.ts";

const arn = "arn:aws:states:us-east-1:123456789012:stateMachine:m";

let clock: ManualClock;
let machines: StateMachines;
/** The resources that were called, with what they were given. */
let calls: { resource: string; args: unknown }[];
/** How a resource ends: with an error, never, or, without an entry, with its arguments. */
let endings: Map<string, "hangs" | StatesError>;
let events: string[];

beforeEach(() => {
  clock = new ManualClock();
  calls = [];
  endings = new Map();
  events = [];
  machines = new StateMachines({
    clock,
    call: async (resource, args) => {
      calls.push({ resource, args });
      const ending = endings.get(resource);
      if (ending === "hangs") return new Promise(() => {});
      if (ending !== undefined) throw ending;
      return args;
    },
    onEvent: (event) => {
      events.push(event.type === "redriven" ? `redriven ${event.redriveCount}` : event.type);
    },
  });
});

function task(resource: string, more: Record<string, unknown> = { End: true }): Record<string, unknown> {
  return { Type: "Task", Resource: resource, ...more };
}

async function started(definition: object, input: unknown = {}): Promise<string> {
  machines.define({ arn, name: "m", definition: { QueryLanguage: "JSONata", ...definition } });
  const { executionArn } = machines.start({ stateMachineArn: arn, input });
  await clock.advance(0);
  return executionArn;
}

async function redriven(executionArn: string): Promise<void> {
  machines.redrive(executionArn);
  await clock.advance(0);
}

const called = (): string[] => calls.map(({ resource }) => resource);

describe("an execution that is redriven", () => {
  it("goes on at the state that failed, with its input and variables, and repeats none that succeeded", async () => {
    endings.set("second", new StatesError("Oops"));
    const execution = await started(
      {
        StartAt: "First",
        States: {
          First: task("first", {
            Arguments: { n: 1 },
            Assign: { seen: "{% $states.input.x %}" },
            Next: "Second",
          }),
          Second: task("second", {
            Arguments: "{% {'seen': $seen, 'input': $states.input.n} %}",
            Assign: { later: 2 },
            Next: "Third",
          }),
          Third: { Type: "Pass", Output: "{% [$states.input.seen, $later] %}", End: true },
        },
      },
      { x: 7 },
    );
    expect(machines.describe(execution)).toMatchObject({ status: "FAILED", error: "Oops", redriveCount: 0 });
    endings.clear();
    await redriven(execution);
    expect(called()).toEqual(["first", "second", "second"]);
    expect(calls[2]?.args).toEqual({ seen: 7, input: 1 });
    expect(machines.describe(execution)).toMatchObject({
      status: "SUCCEEDED",
      output: [7, 2],
      redriveCount: 1,
    });
  });

  it("tells its states how often it was redriven, and when", async () => {
    endings.set("r", new StatesError("Oops"));
    const context = "{% $states.context.Execution.[RedriveCount, RedriveTime] %}";
    const execution = await started({
      StartAt: "T",
      States: { T: task("r", { Arguments: context, End: true }) },
    });
    await clock.advance(5_000);
    await redriven(execution);
    const second = new Date(clock.now()).toISOString();
    await clock.advance(5_000);
    endings.clear();
    await redriven(execution);
    const third = new Date(clock.now()).toISOString();
    expect(calls.map(({ args }) => args)).toEqual([[0], [1, second], [2, third]]);
    expect(machines.describe(execution)).toMatchObject({ redriveCount: 2, redriveDate: third });
  });

  it("runs only the branches again that did not succeed, each where it stood", async () => {
    endings.set("b2", new StatesError("Oops"));
    endings.set("c1", "hangs");
    const execution = await started({
      StartAt: "P",
      States: {
        P: {
          Type: "Parallel",
          Branches: [
            { StartAt: "A1", States: { A1: task("a1") } },
            { StartAt: "B1", States: { B1: task("b1", { Next: "B2" }), B2: task("b2") } },
            { StartAt: "C1", States: { C1: task("c1") } },
          ],
          Arguments: { n: 1 },
          Output: "{% $count($states.result) %}",
          End: true,
        },
      },
    });
    expect(machines.describe(execution).status).toBe("FAILED");
    calls.length = 0;
    endings.clear();
    await redriven(execution);
    expect(called()).toEqual(["b2", "c1"]);
    expect(machines.describe(execution)).toMatchObject({ status: "SUCCEEDED", output: 3 });
  });

  it("runs only the iterations again that did not succeed, and those that had not begun", async () => {
    endings.set("hang", "hangs");
    const execution = await started(
      {
        StartAt: "M",
        States: {
          M: {
            Type: "Map",
            MaxConcurrency: 1,
            ItemProcessor: {
              StartAt: "Choose",
              States: {
                Choose: {
                  Type: "Choice",
                  Choices: [{ Condition: "{% $states.input = 2 %}", Next: "Slow" }],
                  Default: "Quick",
                },
                Slow: task("hang", { Arguments: "{% $states.input %}", End: true }),
                Quick: task("quick", { Arguments: "{% $states.input %}", End: true }),
              },
            },
            End: true,
          },
        },
      },
      [1, 2, 3],
    );
    machines.stop(execution);
    expect(calls.map(({ args }) => args)).toEqual([1, 2]);
    calls.length = 0;
    endings.clear();
    await redriven(execution);
    expect(calls.map(({ args }) => args)).toEqual([2, 3]);
    expect(machines.describe(execution)).toMatchObject({ status: "SUCCEEDED", output: [1, 2, 3] });
  });

  it("takes no answer for the token of the attempt that was aborted", async () => {
    const tokens: string[] = [];
    const execution = await started({
      StartAt: "T",
      States: { T: task("r.waitForTaskToken", { Arguments: "{% $states.context.Task.Token %}", End: true }) },
    });
    machines.stop(execution);
    await redriven(execution);
    tokens.push(...calls.map(({ args }) => String(args)));
    expect(new Set(tokens).size).toBe(2);
    expect(() => machines.sendTaskSuccess(String(tokens[0]), {})).toThrow(/TaskTimedOut/);
    machines.sendTaskSuccess(String(tokens[1]), { ok: true });
    await clock.advance(0);
    expect(machines.describe(execution)).toMatchObject({ status: "SUCCEEDED", output: { ok: true } });
  });
});

describe("an execution cannot be redriven", () => {
  it("that does not exist", () => {
    expect(() => machines.redrive(`${arn}:nobody`)).toThrow(/^ExecutionDoesNotExist/);
  });

  it("while it runs", async () => {
    const execution = await started({ StartAt: "W", States: { W: { Type: "Wait", Seconds: 9, End: true } } });
    expect(() => machines.redrive(execution)).toThrow(
      "ExecutionNotRedrivable: Execution is RUNNING and cannot be redriven",
    );
    machines.stop(execution);
    machines.redrive(execution);
    expect(() => machines.redrive(execution)).toThrow(/RUNNING/);
  });

  it("that succeeded", async () => {
    const execution = await started({ StartAt: "S", States: { S: { Type: "Succeed" } } });
    expect(() => machines.redrive(execution)).toThrow(/SUCCEEDED and cannot be redriven/);
  });
});
