import { ManualClock } from "@leasehold/client/testing";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import {
  Choice,
  Condition,
  CustomState,
  Fail,
  type IChainable,
  Map as MapState,
  Parallel,
  Pass,
  ProvideItems,
  Wait,
  WaitTime,
} from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, it } from "vitest";
import { newStack, workflowIn } from "../support/constructs.ts";
import { StepFunctions } from "../support/step-functions.ts";

/** Every name that the workflow used for itself before it had prefixes, and what else comes to a user's mind. */
const variables = "key token version owner record failure fence slot reason parks".split(" ");

/** Legal work in both languages, at several depths, with the workflow's own short names. */
function hostileInline(stack: Stack): IChainable {
  const assign = Object.fromEntries(variables.map((name) => [name, `{% 'mine: ${name}' %}`]));
  const acquire = Pass.jsonata(stack, "Acquire", { assign });
  const begin = new Pass(stack, "Begin");
  const failed = Pass.jsonata(stack, "Failed", { assign: { innerKey: "{% $key %}" } });
  const release = Pass.jsonata(stack, "Release", { outputs: "{% $token & $lease.key %}" });
  const nested = Parallel.jsonata(stack, "Work")
    .branch(failed.next(release))
    .branch(new Wait(stack, "Park", { time: WaitTime.duration(Duration.seconds(1)) }));
  const each = MapState.jsonata(stack, "StartKeeper", { items: ProvideItems.jsonata("{% [1, 2] %}") });
  each.itemProcessor(Pass.jsonata(stack, "JudgeHolder", { outputs: "{% $states.input * 2 %}" }));
  const done = Pass.jsonata(stack, "Done", {
    outputs: { version: "{% $version %}", doubled: "{% $states.input %}", lease: "{% $lease %}" },
  });
  return acquire.next(begin).next(nested).next(each).next(done);
}

describe("a leased workflow and the names of its work", () => {
  it("runs it, whatever it calls its states and variables, and neither reads the other's variables", async () => {
    const { steps, executionArn } = await runWith(hostileInline);
    const { status, output } = steps.machines.describe(executionArn);
    expect({ status, output }).toEqual({
      status: "SUCCEEDED",
      output: {
        version: "mine: version",
        doubled: [2, 4],
        lease: expect.objectContaining({ key: "import", version: 2 }),
      },
    });
    expect(steps.lease("import")?.token).toBeUndefined();
  });

  it.each([
    ["with an error and no cause", { error: "OutOfStock" }, "OutOfStock", "the error came without a cause"],
    ["without an error", {}, "WorkFailed", "the error came without a cause"],
    ["with both", { error: "OutOfStock", cause: "no mugs" }, "OutOfStock", "no mugs"],
  ])("fails as its work failed, %s, and lets the lock go", async (_, props, error, cause) => {
    const { steps, executionArn } = await runWith((stack) => Fail.jsonata(stack, "Failed", props));
    expect(steps.machines.describe(executionArn)).toMatchObject({ status: "FAILED", error, cause });
    expect(steps.lease("import")?.token).toBeUndefined();
  });

  it.each<[string, (stack: Stack) => IChainable, RegExp]>([
    [
      "has a state with our prefix",
      (stack) => new Pass(stack, "Leasehold_Mine"),
      /the work of Test\/Import uses names that its lease needs: the state "Leasehold_Mine" begins with Leasehold_: give it another name$/,
    ],
    [
      "has one deep inside",
      (stack) =>
        new Parallel(stack, "Both").branch(
          new MapState(stack, "Each").itemProcessor(new Pass(stack, "Leasehold_Deep")),
        ),
      /"Leasehold_Deep" begins with/,
    ],
    [
      "assigns the lease",
      (stack) => Pass.jsonata(stack, "Mine", { assign: { lease: "{% 1 %}" } }),
      /the state "Mine" assigns \$lease, which is the lease's handle and only to be read: use another name/,
    ],
    [
      "assigns it in a path",
      (stack) => raw(stack, { Type: "Pass", Assign: { "lease.$": "$.x" } }),
      /"Raw" assigns \$lease/,
    ],
    [
      "assigns a variable of ours in a rule",
      (stack) =>
        Choice.jsonata(stack, "Decide").when(Condition.jsonata("{% true %}"), Pass.jsonata(stack, "Then"), {
          assign: { leasehold_token: "{% 1 %}" },
        }),
      /"Decide" assigns \$leasehold_token, which begins with leasehold_: use another name/,
    ],
    [
      "assigns the lease in a catch inside a raw branch",
      (stack) => {
        const Catch = [{ ErrorEquals: ["States.ALL"], Next: "End", Assign: { lease: 1 } }];
        const Branches = [{ StartAt: "Inner", States: { Inner: { Type: "Map", Catch } } }];
        return raw(stack, { Type: "Parallel", Branches });
      },
      /"Inner" assigns \$lease/,
    ],
  ])("whose work %s fails at synth, with the name and what to do", (_, make, message) => {
    const stack = newStack({});
    expect(() => workflowIn(stack, { work: make(stack) })).toThrow(message);
  });
});

function raw(stack: Stack, stateJson: object): CustomState {
  return new CustomState(stack, "Raw", { stateJson });
}

/** Runs a leased workflow, as it is deployed, for 5 s. */
async function runWith(
  work: (stack: Stack) => IChainable,
): Promise<{ steps: StepFunctions; executionArn: string }> {
  const stack = newStack({});
  workflowIn(stack, { work: work(stack) });
  const clock = new ManualClock();
  const steps = new StepFunctions(clock);
  const stateMachineArn = steps.deploy(Template.fromStack(stack))("ImportStateMachine");
  const { executionArn } = steps.machines.start({ stateMachineArn, input: { orders: 7 } });
  await clock.advance(5_000);
  return { steps, executionArn };
}
