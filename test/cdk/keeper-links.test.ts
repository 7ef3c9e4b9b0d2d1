/** The console of Step Functions shows which execution has started another one by a member of the other one's input. */
import { ManualClock } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { workflowDefinition } from "../../packages/cdk/src/workflow/workflow-definition.ts";
import { KeptWork, key } from "../support/kept-work.ts";
import { deployed, machineArn, StepFunctions, workflowTerms } from "../support/step-functions.ts";

const startedBy = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID";

it("a keeper's input names the workflow that has started it, and the keeper works", async () => {
  const clock = new ManualClock();
  const steps = new StepFunctions(clock);
  steps.define("keeper", keeperDefinition({ tableName: "leases", retentionMs: 604_800_000 }));
  const work = { StartAt: "Work", States: { Work: { Type: "Wait", Seconds: 20, End: true } } };
  const machine = steps.define("workflow", deployed(workflowDefinition(workflowTerms(work))));
  const { executionArn } = steps.machines.start({ stateMachineArn: machine, input: { key } });
  await clock.advance(10_000);
  const [keeper] = steps.machines.executions(machineArn("keeper"));
  expect(keeper).toMatchObject({
    status: "RUNNING",
    input: { [startedBy]: executionArn, guarded: executionArn },
  });
  await clock.advance(20_000);
  expect(steps.machines.describe(executionArn).status).toBe("SUCCEEDED");
});

it("a keeper's input names the one that hands over to it, and not that one's own starter", {
  tags: ["long"],
}, async () => {
  const kept = new KeptWork();
  const lease = await kept.client.acquire(key);
  const until = kept.clock.now() + 100 * 3_600_000;
  const first = kept.startKeeper({ lease: lease.toJSON(), until, [startedBy]: "arn:of:the:starter" });
  for (let beats = 0; kept.keepers().length < 2 && beats < 5_000; beats += 50) await kept.beats(50);
  expect(kept.keepers()).toMatchObject([
    { executionArn: first, status: "SUCCEEDED" },
    { status: "RUNNING", input: { [startedBy]: first, until } },
  ]);
});

it("the input of a keeper that takes another's place names what has started it", async () => {
  const kept = new KeptWork();
  const { keeper } = await kept.guarded();
  kept.steps.machines.stop(keeper);
  await kept.clock.advance(1_000);
  const [replacing] = kept.ends();
  expect(kept.keepers()).toMatchObject([
    { status: "ABORTED" },
    { status: "RUNNING", input: { [startedBy]: replacing?.executionArn } },
  ]);
});
