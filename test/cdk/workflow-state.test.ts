import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import {
  DefinitionBody,
  Fail,
  type IChainable,
  type Parallel,
  Pass,
  QueryLanguage,
  StateMachine,
  Wait,
  WaitTime,
} from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, it } from "vitest";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import { newStack, statementsIn, workflowIn } from "../support/constructs.ts";
import { problemsIn } from "../support/definitions.ts";
import { StepFunctions } from "../support/step-functions.ts";

interface Parts {
  readonly work?: (stack: Stack) => IChainable;
  readonly around?: (stack: Stack, part: Parallel) => IChainable;
  readonly language?: QueryLanguage;
}

/** A workflow between two states of another machine. */
function templateOf({ work, around, language }: Parts = {}): Template {
  const stack = newStack({});
  const fetches = { outputs: { fetched: "{% $states.input %}" } };
  const doing = work?.(stack) ?? Pass.jsonata(stack, "Fetch", fetches);
  const importing = workflowIn(stack, { key: "orders", work: doing }, "Importing");
  const part = importing.asState(stack, "Import");
  new StateMachine(stack, "Outer", {
    definitionBody: DefinitionBody.fromChainable(around?.(stack, part) ?? part),
    queryLanguage: language ?? QueryLanguage.JSONATA,
  });
  return Template.fromStack(stack);
}

/** The machines of a template on the interpreter. */
function machinesOf(template: Template) {
  const clock = new ManualClock();
  const steps = new StepFunctions(clock);
  const named = steps.deploy(template);
  const [outer, child] = [named("Outer"), named("Importing")];
  const client = new LeaseClient({ store: steps.store, clock, owner: "other" });
  return {
    clock,
    client,
    steps,
    /** Starts the outer machine, and lets it run for a while. */
    async start(forMs: number, input: unknown = {}): Promise<string> {
      const { executionArn } = steps.machines.start({ stateMachineArn: outer, input });
      await clock.advance(forMs);
      return executionArn;
    },
    describe: (arn: string) => steps.machines.describe(arn),
    children: () => steps.machines.executions(child),
  };
}

const failingWork = (stack: Stack): IChainable =>
  Fail.jsonata(stack, "Break", { error: "OutOfStock", cause: "no mugs" });
const longWork = (stack: Stack): IChainable =>
  Wait.jsonata(stack, "Long", { time: WaitTime.duration(Duration.minutes(50)) });
const caught = (stack: Stack, part: Parallel, error: string): IChainable =>
  part.addCatch(Pass.jsonata(stack, "Told", { outputs: { told: "{% $states.input %}" } }), {
    errors: [error],
  });

describe("a leased workflow as a state of another machine", () => {
  it("passes an independent validator in a machine in JSONPath", () => {
    expect(problemsIn(templateOf({ language: QueryLanguage.JSON_PATH }))).toEqual([]);
  });

  it("gets the state's input, gives the work's output, and leaves the lock free", async () => {
    const { client, start, describe } = machinesOf(
      templateOf({
        around: (stack, part) =>
          Pass.jsonata(stack, "Begin", { outputs: { day: 7 } })
            .next(part)
            .next(Pass.jsonata(stack, "Finish", { outputs: { all: "{% $states.input %}" } })),
      }),
    );
    const execution = await start(1_000);
    expect(describe(execution)).toMatchObject({
      status: "SUCCEEDED",
      output: { all: { fetched: { day: 7 } } },
    });
    expect(await client.tryAcquire("orders")).toBeDefined();
  });

  it("lets the outer machine catch the work's error by its name", async () => {
    const around = (stack: Stack, part: Parallel): IChainable => caught(stack, part, "OutOfStock");
    const { start, describe } = machinesOf(templateOf({ work: failingWork, around }));
    const execution = await start(1_000);
    expect(describe(execution)).toMatchObject({
      status: "SUCCEEDED",
      output: { told: { Error: "OutOfStock", Cause: "no mugs" } },
    });
  });

  it("lets the outer machine try again while the lock is held, each time in a new execution", async () => {
    const around = (_: Stack, part: Parallel): IChainable =>
      part.addRetry({ errors: ["LeaseUnavailableError"], maxAttempts: 3 });
    const { clock, client, start, describe, children } = machinesOf(templateOf({ around }));
    const lease = await client.acquire("orders");
    const execution = await start(500, { day: 7 });
    expect(children().map(({ status }) => status)).toEqual(["FAILED"]);
    await lease.release();
    await clock.advance(5_000);
    expect(describe(execution)).toMatchObject({ status: "SUCCEEDED", output: { fetched: { day: 7 } } });
    expect(children()).toHaveLength(2);
  });

  it("fails as States.TaskFailed when its child is stopped without an error", async () => {
    const around = (stack: Stack, part: Parallel): IChainable => caught(stack, part, "States.TaskFailed");
    const { clock, steps, start, describe, children } = machinesOf(templateOf({ work: longWork, around }));
    const execution = await start(60_000);
    steps.machines.stop(String(children()[0]?.executionArn), {});
    await clock.advance(0);
    expect(describe(execution)).toMatchObject({
      status: "SUCCEEDED",
      output: { told: { Error: "States.TaskFailed", Cause: expect.stringContaining("ABORTED") } },
    });
  });

  it.each([
    ["was cut off", "States.TaskFailed", '{"Error":"OutOfStock","Input":{"orders":"aaaa'],
    ["is no JSON", "States.TaskFailed", "the child could not be stopped"],
    ["is of another error", "StepFunctions.AccessDenied", '{"Error":"OutOfStock"}'],
  ])("keeps an error whose cause %s", async (_, error, cause) => {
    const { steps, start, describe } = machinesOf(templateOf());
    steps.resources.set("states:startExecution.sync:2", () => {
      throw new StatesError(error, cause);
    });
    const execution = await start(0);
    expect(describe(execution)).toMatchObject({ status: "FAILED", error, cause });
  });

  it("fails again with the same error, and does no work, when an outer execution that it has failed is redriven", async () => {
    const { clock, steps, start, describe, children } = machinesOf(templateOf({ work: failingWork }));
    const execution = await start(1_000);
    steps.machines.redrive(execution);
    await clock.advance(1_000);
    expect(describe(execution)).toMatchObject({ status: "FAILED", error: "OutOfStock" });
    expect(children()).toHaveLength(1);
  });

  it("lets the outer machine start this workflow, watch its executions, and nothing of the table", () => {
    const statements = statementsIn(templateOf(), /^Outer/);
    expect(statements.flatMap(({ Action }) => Action).sort()).toEqual([
      "events:DescribeRule",
      "events:PutRule",
      "events:PutTargets",
      "states:DescribeExecution",
      "states:StartExecution",
      "states:StopExecution",
    ]);
  });
});
