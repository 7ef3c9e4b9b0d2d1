import { ManualClock } from "@leasehold/client/testing";
import { expect, test } from "vitest";
import { chunksPerExecution } from "../../infra/systems/imports.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { StepFunctions } from "../support/step-functions.ts";

test("the histories of an import stay below the limit of each execution, with more chunks than one history has room for", async () => {
  const clock = new ManualClock();
  const steps = new StepFunctions(clock);
  const { machines } = steps;
  const named = steps.deploy(leaseholdTemplate().template);
  const total = 3_000;
  let chunks = 0;
  steps.resources.set("lambda:invoke", () => {
    if (chunks === total) return { Payload: { result: "nothingLeft" } };
    chunks += 1;
    return { Payload: { result: "transferred" } };
  });
  const input = { kind: "import" };
  const { executionArn } = machines.start({ stateMachineArn: named("ImportsWorkflow"), input });
  while (machines.describe(executionArn).status === "RUNNING") await clock.advance(3_600_000);
  expect(machines.describe(executionArn).status).toBe("SUCCEEDED");
  expect(chunks).toBe(total);
  const events = [named("ImportsWorkflow"), named("ImportsBatch")].map((machine) =>
    machines.executions(machine).map((one) => machines.history(one.executionArn).events),
  );
  expect(events.map(({ length }) => length)).toEqual([1, 3]);
  // 9 a chunk, and what begins and ends an execution or hands it on. Step Functions ends one with its 25,000th event.
  for (const count of events.flat()) expect(count).toBeLessThan(9 * chunksPerExecution + 100);
});
