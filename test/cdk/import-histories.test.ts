import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, test } from "vitest";
import { chunksPerExecution } from "../../infra/systems/imports.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { machineArn, StepFunctions } from "../support/step-functions.ts";

const { template } = leaseholdTemplate();

interface Walk {
  readonly steps: StepFunctions;
  readonly clock: ManualClock;
  readonly workflow: string;
  readonly batch: string;
  /** Chunks that were transferred. */
  readonly chunks: () => number;
}

/** The app's state machines, on a clock of their own, with a function that transfers so many chunks. */
function walkOf(total: number): Walk {
  const clock = new ManualClock();
  const steps = new StepFunctions(clock);
  const named = steps.deploy(template);
  let chunks = 0;
  steps.resources.set("lambda:invoke", () => {
    if (chunks === total) return { Payload: { result: "nothingLeft" } };
    chunks += 1;
    return { Payload: { result: "transferred" } };
  });
  steps.resources.set(
    "states:startExecution.sync:2",
    async ({ StateMachineArn, Name, Input }: { StateMachineArn: string; Name: string; Input: unknown }) => {
      // The stand-in of the other machine's ARN is its logical id.
      const stateMachineArn = machineArn(StateMachineArn.split(":").at(-1) ?? "");
      const { executionArn } = steps.machines.start({ stateMachineArn, name: Name, input: Input });
      const { output } = await steps.machines.finished(executionArn);
      return { ExecutionArn: executionArn, Output: output };
    },
  );
  return {
    steps,
    clock,
    workflow: named("ImportsWorkflow"),
    batch: named("ImportsBatch"),
    chunks: () => chunks,
  };
}

/** Runs the import to its end. */
async function imported({ steps, clock, workflow }: Walk): Promise<string> {
  const { executionArn } = steps.machines.start({ stateMachineArn: workflow, input: { kind: "import" } });
  while (steps.machines.describe(executionArn).status === "RUNNING") await clock.advance(3_600_000);
  return executionArn;
}

describe("the histories of an import", () => {
  test("stay below the limit in each execution, with more chunks than one history has room for", async () => {
    const walk = walkOf(3_000);
    const { machines } = walk.steps;
    const execution = await imported(walk);
    expect(machines.describe(execution).status).toBe("SUCCEEDED");
    expect(walk.chunks()).toBe(3_000);
    const events = [walk.workflow, walk.batch].map((arn) =>
      machines.executions(arn).map(({ executionArn }) => machines.history(executionArn).events),
    );
    expect(events.map(({ length }) => length)).toEqual([1, 3]);
    // 9 a chunk, and what begins and ends an execution or hands it on.
    for (const count of events.flat()) expect(count).toBeLessThan(9 * chunksPerExecution + 100);
  });
});
