import { describe, expect, test } from "vitest";
import { bench, machineArn, only } from "../../../test/support/state-machines.ts";
import { StatesError } from "../src/state-machines/errors.ts";

const waiting = only({ Type: "Wait", Seconds: 3600 });

describe("starting", () => {
  test("the same name and input give the execution that runs already", async () => {
    const { machines, start } = bench(waiting);
    const first = await start({ a: 1, b: 2 }, "once");
    expect(await start({ b: 2, a: 1 }, "once")).toBe(first);
    expect(machines.executions(machineArn)).toHaveLength(1);
    expect(machines.executions("other")).toHaveLength(0);
  });

  test("another input, or an execution that has ended, is refused", async () => {
    const { machines, start } = bench(waiting);
    const arn = await start({ a: 1 }, "once");
    await expect(start({ a: 2 }, "once")).rejects.toThrow(/^ExecutionAlreadyExists/);
    machines.stop(arn);
    await expect(start({ a: 1 }, "once")).rejects.toThrow(/^ExecutionAlreadyExists/);
  });
});

describe("ending", () => {
  test("stop in mid-wait ends it at once, without timers left", async () => {
    const { clock, machines, start } = bench(waiting);
    const arn = await start();
    await clock.advance(1000);
    machines.stop(arn, { error: "Own", cause: "enough" });
    const stopped = {
      status: "ABORTED",
      error: "Own",
      cause: "enough",
      stopDate: "2026-01-01T00:00:01.000Z",
    };
    expect(machines.describe(arn)).toMatchObject(stopped);
    expect(await machines.finished(arn)).toMatchObject(stopped);
    expect(clock.pending).toBe(0);
    await clock.advance(3_600_000);
    expect(machines.describe(arn)).toMatchObject(stopped);
    machines.stop(arn, { error: "Again" });
    expect(machines.describe(arn)).toMatchObject(stopped);
    expect(machines.history(arn)).toMatchObject({ events: 3, counts: { ExecutionAborted: 1 } });
  });
});

describe("history", () => {
  /** Four transitions a beat: wait, renew, count, check. */
  const keeper = {
    StartAt: "Wait",
    States: {
      Wait: { Type: "Wait", Seconds: 10, Next: "Renew" },
      Renew: { Type: "Task", Resource: "arn:aws:states:::aws-sdk:dynamodb:updateItem", Next: "Count" },
      Count: {
        Type: "Pass",
        Assign: { beats: "{% ($exists($beats) ? $beats : 0) + 1 %}" },
        Next: "Check",
      },
      Check: {
        Type: "Choice",
        Choices: [{ Condition: "{% $beats >= $states.context.Execution.Input.beats %}", Next: "Done" }],
        Default: "Wait",
      },
      Done: { Type: "Succeed" },
    },
  };

  test("counts the events and transitions of a beat as Step Functions does", async () => {
    const { clock, machines, start } = bench(keeper);
    const arn = await start({ beats: 3 });
    await clock.advance(30_000);
    expect(machines.describe(arn).status).toBe("SUCCEEDED");
    const { events, counts, entered } = machines.history(arn);
    // Wait 2, Task 5, Pass 2, Choice 2 a beat; start, Succeed 2 and end.
    expect(events).toBe(3 * 11 + 4);
    expect(counts).toMatchObject({ TaskScheduled: 3, TaskStarted: 3, TaskSucceeded: 3, WaitStateExited: 3 });
    expect(entered).toHaveLength(3 * 4 + 1);
    expect(entered.slice(0, 2)).toEqual([
      { stateName: "Wait", type: "Wait", at: "2026-01-01T00:00:00.000Z", event: 2 },
      { stateName: "Renew", type: "Task", at: "2026-01-01T00:00:10.000Z", event: 4 },
    ]);
  });

  test("nothing is called after the 25,000th event", async () => {
    let calls = 0;
    const { clock, machines, start } = bench(keeper, async () => {
      calls += 1;
      return null;
    });
    const long = await start({ beats: 1e9 });
    for (let hour = 0; hour < 7; hour += 1) await clock.advance(3_600_000);
    expect(machines.describe(long)).toMatchObject({ status: "FAILED", error: "States.Runtime" });
    const { events, counts } = machines.history(long);
    expect(events).toBe(25_000);
    // The last call's TaskStarted is event 24,998: 2,272 beats, and 5 events of the next one.
    expect(calls).toBe(2273);
    expect(counts.TaskStarted).toBe(calls);
    expect(clock.pending).toBe(0);
  });
});

describe("a redrive", () => {
  /** A task that is called with its name, unless it says otherwise. */
  const task = (name: string, more: object = { End: true }) => ({
    ...{ Type: "Task", Resource: name, Arguments: name },
    ...more,
  });

  /** A machine whose tasks give their arguments, but for some resources that fail, or never end, until they are healed. */
  function faulty(definition: object, faults: Record<string, "fails" | "hangs">) {
    const calls: unknown[] = [];
    const made = bench(definition, async (resource, args) => {
      calls.push(args);
      if (faults[resource] === "hangs") return new Promise(() => {});
      if (faults[resource] === "fails") throw new StatesError("Oops");
      return args;
    });
    /** Redrives an execution whose faults are healed; gives what is called then. */
    const redriven = async (arn: string): Promise<unknown[]> => {
      for (const resource of Object.keys(faults)) delete faults[resource];
      calls.length = 0;
      made.machines.redrive(arn);
      await made.clock.advance(0);
      return calls;
    };
    return { ...made, redriven };
  }

  test("runs only the branches again that did not succeed, each where it stood, and none after a success", async () => {
    const branches = [
      { StartAt: "A1", States: { A1: task("a1") } },
      { StartAt: "B1", States: { B1: task("b1", { Next: "B2" }), B2: task("b2") } },
      { StartAt: "C1", States: { C1: task("c1") } },
    ];
    const parallel = only({ Type: "Parallel", Branches: branches, Output: "{% $count($states.result) %}" });
    const { machines, start, redriven } = faulty(parallel, { b2: "fails", c1: "hangs" });
    const arn = await start();
    expect(machines.describe(arn).status).toBe("FAILED");
    expect(await redriven(arn)).toEqual(["b2", "c1"]);
    expect(machines.describe(arn)).toMatchObject({ status: "SUCCEEDED", output: 3, redriveCount: 1 });
    expect(() => machines.redrive(arn)).toThrow(/SUCCEEDED and cannot be redriven/);
  });

  test("runs only the iterations again that did not succeed, and those that had not begun, and none while it runs", async () => {
    const input = { Arguments: "{% $states.input %}", End: true };
    const choose = { Condition: "{% $states.input = 2 %}", Next: "Slow" };
    const map = {
      Type: "Map",
      MaxConcurrency: 1,
      ItemProcessor: {
        StartAt: "Choose",
        States: {
          Choose: { Type: "Choice", Choices: [choose], Default: "Same" },
          Slow: task("slow", input),
          Same: task("same", input),
        },
      },
    };
    const { machines, start, redriven } = faulty(only(map), { slow: "hangs" });
    const arn = await start([1, 2, 3]);
    expect(() => machines.redrive(arn)).toThrow(/RUNNING and cannot be redriven/);
    machines.stop(arn);
    expect(await redriven(arn)).toEqual([2, 3]);
    expect(machines.describe(arn)).toMatchObject({ status: "SUCCEEDED", output: [1, 2, 3] });
  });
});
