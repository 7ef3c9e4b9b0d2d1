import { settled } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { bench, machineArn, only } from "../../../test/support/state-machines.ts";

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

  test("stop reaches a task's signal and closes its token", async () => {
    let seen: { signal: AbortSignal; taskToken?: string } | undefined;
    const task = {
      Type: "Task",
      Resource: "r.waitForTaskToken",
      Catch: [{ ErrorEquals: ["States.ALL"], Next: "S" }],
    };
    const { machines, start } = bench(only(task), (_resource, _args, context) => {
      seen = context;
      return new Promise(() => {});
    });
    const arn = await start();
    expect(seen?.signal.aborted).toBe(false);
    machines.stop(arn);
    expect(seen?.signal.aborted).toBe(true);
    expect(machines.describe(arn)).not.toHaveProperty("error");
    expect(() => machines.sendTaskSuccess(seen?.taskToken ?? "", 1)).toThrow(/^TaskTimedOut/);
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

  test("the 25,000th event is the failure of the execution, past every catcher", async () => {
    const beat = {
      StartAt: "Loop",
      States: {
        Loop: { Type: "Choice", Choices: [{ Condition: true, Next: "Loop" }], Default: "End" },
        End: { Type: "Succeed" },
      },
    };
    const { machines } = bench({
      StartAt: "P",
      States: {
        P: {
          Type: "Parallel",
          Branches: [beat],
          Catch: [{ ErrorEquals: ["States.ALL"], Next: "Done" }],
          Next: "Done",
        },
        Done: { Type: "Succeed" },
      },
    });
    const { executionArn: arn } = machines.start({ stateMachineArn: machineArn });
    expect(await machines.finished(arn)).toMatchObject({
      status: "FAILED",
      error: "States.Runtime",
      cause: "The execution reached the maximum number of history events (25000).",
    });
    await settled();
    const { events, counts } = machines.history(arn);
    expect(events).toBe(25_000);
    expect(counts).toMatchObject({ ExecutionStarted: 1, ExecutionFailed: 1 });
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
