import {
  LeasedWorkflow,
  type LeasedWorkflowProps,
  LeaseHeartbeat,
  LeaseTable,
  LeaseWakeup,
} from "@leasehold/cdk";
import { acquire, release, renew } from "@leasehold/client/expressions";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { Chain, Pass, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { describe, expect, it } from "vitest";
import { definitionsIn, problemsOf } from "../support/definitions.ts";

function stackOf(options: { stream?: boolean } = {}): { stack: Stack; table: LeaseTable } {
  const stack = new Stack(new App(), "Test");
  return { stack, table: new LeaseTable(stack, "Leases", { stream: options.stream ?? false }) };
}

function functionOf(stack: Stack, id: string): LambdaFunction {
  const code = Code.fromInline("exports.handler = async () => ({});");
  return new LambdaFunction(stack, id, { runtime: Runtime.NODEJS_LATEST, handler: "index.handler", code });
}

function workflowOf(options: Partial<LeasedWorkflowProps>, stream = false): Template {
  const { stack, table } = stackOf({ stream });
  new LeasedWorkflow(stack, "Import", { table, key: "import", work: new Pass(stack, "Nothing"), ...options });
  return Template.fromStack(stack);
}

interface Requests {
  readonly States: Record<string, { readonly Arguments?: Record<string, unknown> }>;
}

describe("a leased workflow", () => {
  it("and its keeper pass an independent validator, with work in JSONata and in JSONPath", () => {
    const { stack, table } = stackOf({ stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionOf(stack, "Wake") });
    const invoke = new LambdaInvoke(stack, "Fetch", { lambdaFunction: functionOf(stack, "Fetcher") });
    const pause = Wait.jsonata(stack, "Pause", {
      time: WaitTime.seconds("{% $lease.leaseDurationMs / 1000 %}"),
    });
    new LeasedWorkflow(stack, "Import", {
      table,
      work: Chain.start(invoke).next(pause),
      whenHeld: "replace",
      lockAtLeastFor: Duration.seconds(10),
      once: true,
      wakeup,
    });
    const definitions = definitionsIn(Template.fromStack(stack));
    expect(Object.keys(definitions)).toHaveLength(2);
    for (const definition of Object.values(definitions)) expect(problemsOf(definition)).toEqual([]);
  });

  it.each(["fail", "skip"] as const)("that is to %s passes it too", (whenHeld) => {
    const definitions = definitionsIn(workflowOf({ whenHeld }));
    for (const definition of Object.values(definitions)) expect(problemsOf(definition)).toEqual([]);
  });

  it("sends the client's own expressions", () => {
    const definitions = Object.values(definitionsIn(workflowOf({}))) as Requests[];
    const states = Object.assign({}, ...definitions.map(({ States }) => States)) as Requests["States"];
    const grant = {
      key: "k",
      token: "t",
      version: 1,
      owner: "o",
      fencingToken: 1,
      acquiredAt: 1,
      expiresAt: 1,
      leaseDurationMs: 1,
      retentionMs: 1,
    };
    const ending = { key: "k", token: "t", fencingToken: 1, now: 1, retentionMs: 1, slot: undefined };
    const expected = {
      Acquire: acquire({ ...grant, data: undefined, slot: undefined }),
      Renew: renew(grant),
      Release: release(ending),
      ReleaseFailed: release(ending),
    };
    for (const [name, { update, condition, names, values }] of Object.entries(expected)) {
      expect(states[name]?.Arguments, name).toMatchObject({
        UpdateExpression: update,
        ConditionExpression: condition,
        ExpressionAttributeNames: names,
      });
      const sent = states[name]?.Arguments?.ExpressionAttributeValues as Record<string, unknown>;
      expect(Object.keys(sent).sort()).toEqual(Object.keys(values).sort());
    }
  });

  it("may use its own lock only, and may start its keeper only", () => {
    const template = workflowOf({});
    const ofLocks = {
      Action: [
        "dynamodb:UpdateItem",
        "dynamodb:GetItem",
        "dynamodb:ConditionCheckItem",
        "dynamodb:PartiQLUpdate",
      ],
      Condition: Match.objectLike({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["import"] } }),
    };
    const policies = Object.values(template.findResources("AWS::IAM::Policy"));
    const statements = policies.flatMap(
      ({ Properties }) => Properties.PolicyDocument.Statement as { Action: string | string[] }[],
    );
    const actions = statements.flatMap(({ Action }) => Action);
    expect(actions.filter((action) => action.startsWith("states:")).sort()).toEqual([
      "states:DescribeExecution",
      "states:StartExecution",
      "states:StartExecution",
      "states:StopExecution",
    ]);
    template.hasResourceProperties("AWS::IAM::Policy", {
      PolicyDocument: { Statement: Match.arrayWith([Match.objectLike(ofLocks)]) },
    });
  });

  it("keeps the data of its executions out of the logs", () => {
    const machines = Object.values(workflowOf({}).findResources("AWS::StepFunctions::StateMachine"));
    for (const { Properties } of machines) {
      expect(Properties.LoggingConfiguration).toMatchObject({ IncludeExecutionData: false, Level: "ALL" });
      expect(Properties.TracingConfiguration).toEqual({ Enabled: true });
    }
  });

  it("can share its keeper with others of its table", () => {
    const { stack, table } = stackOf();
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
    for (const id of ["One", "Two"]) {
      new LeasedWorkflow(stack, id, { table, key: id, work: new Pass(stack, `Nothing${id}`), heartbeat });
    }
    Template.fromStack(stack).resourceCountIs("AWS::StepFunctions::StateMachine", 3);
  });

  it.each<[string, Partial<LeasedWorkflowProps>, RegExp]>([
    [
      "waits without anybody to wake it",
      { whenHeld: "wait" },
      /nothing would wake the waiters: give a LeaseWakeup/,
    ],
    ["replaces without anybody to wake it", { whenHeld: "replace" }, /give a LeaseWakeup/],
    [
      "has a patience that it never uses",
      { waitFor: Duration.hours(1) },
      /never waits: leave out wakeup and waitFor/,
    ],
    [
      "has a lease that is too short",
      { leaseDuration: Duration.seconds(2) },
      /leaseDuration is 2 seconds: choose from 3 seconds/,
    ],
    [
      "stays closed for longer than its lease",
      { lockAtLeastFor: Duration.minutes(5) },
      /lockAtLeastFor is 5 minutes: choose from 0/,
    ],
    ["allows the clocks more than its lease", { clockSkew: Duration.minutes(5) }, /clockSkew is 5 minutes/],
    ["has an empty key", { key: "" }, /empty key/],
  ])("that %s fails at synth and says what to change", (_, options, message) => {
    expect(() => workflowOf(options)).toThrow(message);
  });

  it("refuses the keeper of another table", () => {
    const { stack, table } = stackOf();
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table: new LeaseTable(stack, "Others") });
    const make = (): LeasedWorkflow =>
      new LeasedWorkflow(stack, "Import", { table, work: new Pass(stack, "Nothing"), heartbeat });
    expect(make).toThrow("heartbeat is of the table Test/Others: give one of Test/Leases");
  });
});

describe("a wakeup", () => {
  it("needs a table with a stream, and says so", () => {
    const { stack, table } = stackOf();
    const make = (): LeaseWakeup =>
      new LeaseWakeup(stack, "Wakeup", { table, handler: functionOf(stack, "Wake") });
    expect(make).toThrow(
      "Test/Leases has no stream, so no release can be seen: make the table with stream: true",
    );
  });

  it("hears of releases only, and may wake the workflows that it serves, and no others", () => {
    const { stack, table } = stackOf({ stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionOf(stack, "Wake") });
    new LeasedWorkflow(stack, "Import", {
      table,
      work: new Pass(stack, "Nothing"),
      whenHeld: "wait",
      wakeup,
    });
    const template = Template.fromStack(stack);
    const [mapping] = Object.values(template.findResources("AWS::Lambda::EventSourceMapping"));
    const patterns = mapping?.Properties.FilterCriteria.Filters.map(({ Pattern }: { Pattern: string }) =>
      JSON.parse(Pattern),
    );
    const held = { token: { S: [{ exists: true }] } };
    expect(patterns).toEqual([
      {
        eventName: ["MODIFY"],
        dynamodb: {
          Keys: { sk: { S: ["lease"] } },
          OldImage: held,
          NewImage: { token: { S: [{ exists: false }] } },
        },
      },
      { eventName: ["REMOVE"], dynamodb: { Keys: { sk: { S: ["lease"] } }, OldImage: held } },
    ]);
    template.hasResourceProperties("AWS::IAM::Policy", {
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Action: "states:SendTaskSuccess",
            Resource: { Ref: Match.stringLikeRegexp("^ImportStateMachine") },
          }),
        ]),
      },
    });
  });
});
