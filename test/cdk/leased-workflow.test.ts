import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  LeasedWorkflow,
  type LeasedWorkflowProps,
  LeaseHeartbeat,
  LeaseTable,
  LeaseWakeup,
} from "@leasehold/cdk";
import {
  acquire,
  clearSeats,
  HeldSeat,
  permitLimits,
  release,
  renew,
  renewSeatUnlessRevoked,
  renewUnlessRevoked,
  SeatForm,
  seatText,
} from "@leasehold/client/internal";
import { ManualClock } from "@leasehold/client/testing";
import { definitionProblems } from "@leasehold/local/definitions";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import type { Asset } from "aws-cdk-lib/aws-s3-assets";
import { Chain, DefinitionBody, Pass, StateMachine, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { describe, expect, it } from "vitest";
import { wakeHandlerBundle } from "../../packages/cdk/src/workflow/wake-handler-bundle.ts";
import { bundledHandlers, bundleSource } from "../../packages/cdk/wake/bundle.ts";
import { Evaluator } from "../../tools/local/src/state-machines/jsonata.ts";
import { compileFilters } from "../../tools/local/src/streams/filter.ts";
import { definitionsIn } from "../support/definitions.ts";

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

/** Arguments of a request for a lock or a permit of the token "t", by the owner "o"; a permit may pass the dead "d". */
async function argumentsOf(template: unknown, sortKey: string): Promise<Record<string, unknown>> {
  const evaluator = new Evaluator(
    new ManualClock(),
    () => "uuid",
    () => 0.5,
  );
  const seat = seatText({ ...{ seat: { kind: "permit", permits: 2 }, owner: "o" }, ...someTimes }, undefined);
  const passed = { token: "d", owner: "o", version: 1, fence: 1, permits: 2, reentrant: false };
  const lease = { key: "k", token: "t", owner: "o", version: 1, fence: 1, leaseDurationMs: 9_000 };
  const kept = { ...lease, sortKey, seat, timeToLive: 1, record: {} };
  const own = { ...lease, passed, waitingSince: 1, cooldownUntil: 2 };
  const variables = {
    ...kept,
    lease: { acquiredAt: 1 },
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [`leasehold_${name}`, value])),
  };
  const readable = { states: { input: {}, context: {} }, variables };
  return (await evaluator.evaluate(template, "Arguments", readable)) as Record<string, unknown>;
}

const someTimes = { version: 1, acquiredAt: 1, expiresAt: 1, leaseDurationMs: 1, reentrant: false };

describe("a leased workflow", () => {
  it("and its keeper and guard pass an independent validator, with work in JSONata and in JSONPath", () => {
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
    expect(Object.keys(definitions)).toHaveLength(4);
    for (const definition of Object.values(definitions)) expect(definitionProblems(definition)).toEqual([]);
  });

  it.each(["fail", "skip"] as const)("that is to %s passes it too", (whenHeld) => {
    const definitions = definitionsIn(workflowOf({ whenHeld }));
    for (const definition of Object.values(definitions)) expect(definitionProblems(definition)).toEqual([]);
  });

  it("sends the client's own expressions", async () => {
    const definitions = Object.values(definitionsIn(workflowOf({}))) as Requests[];
    // The same name in two machines stands for the same request.
    const states = Object.assign({}, ...definitions.map(({ States }) => States)) as Requests["States"];
    const lock = { key: "k" };
    const grant = {
      token: "t",
      version: 1,
      owner: "o",
      acquiredAt: 1,
      expiresAt: 1,
      leaseDurationMs: 1,
      retentionMs: 1,
      reentrant: false,
      data: undefined,
      slot: undefined,
    };
    const shown = { token: "t", fencingToken: 1 };
    const renewal = { shown, version: 1, expiresAt: 1, leaseDurationMs: 1, retentionMs: 1 };
    const ending = { shown, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };
    const expected = {
      Leasehold_Acquire: acquire(lock, grant),
      Renew1: renewUnlessRevoked(lock, renewal),
      RenewFirst: renew(lock, renewal),
      RenewHeld: renew(lock, renewal),
      Leasehold_Release: release(lock, ending),
      Leasehold_ReleaseFailed: release(lock, ending),
    };
    for (const [name, write] of Object.entries(expected)) {
      const { update, condition, names, values } = write.request();
      const sent = await argumentsOf(states[name]?.Arguments, "lease");
      expect(sent, name).toMatchObject({
        UpdateExpression: update,
        ConditionExpression: condition,
        ExpressionAttributeNames: names,
      });
      expect(Object.keys(sent.ExpressionAttributeValues as object).sort()).toEqual(
        Object.keys(values).sort(),
      );
    }
  });

  it("with permits sends the semaphore's own expressions, as its keeper does for a permit", async () => {
    const options = { permits: 5, lockAtLeastFor: Duration.seconds(10) };
    const definitions = Object.values(definitionsIn(workflowOf(options))) as Requests[];
    const states = Object.assign({}, ...definitions.map(({ States }) => States)) as Requests["States"];
    const address = { key: "k", sortKey: "semaphore" };
    const held = new HeldSeat("k", "semaphore");
    held.confirmed({ ttl: 1 });
    const form = new SeatForm({
      ...address,
      ...{ kind: "permit", permits: 1, capacity: 5, limits: permitLimits },
    });
    const seat = {
      ...address,
      owner: "o",
      token: "t",
      version: 1,
      fencingToken: 1,
      acquiredAt: 1,
      expiresAt: 1,
      leaseDurationMs: 1,
      inCooldown: false,
      reentrant: false,
      data: undefined,
      revocation: undefined,
      seat: { kind: "permit", permits: 2 },
    } as const;
    const grant = { ...seat, retentionMs: 1, slot: undefined };
    const dead = { ...seat, token: "d" };
    const renewal = { shown: seat, version: 2, expiresAt: 10_000, leaseDurationMs: 1, retentionMs: 1 };
    const ending = { shown: seat, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };
    const cancellation = { token: "t", now: 1, retentionMs: 1 };
    const expected = {
      Leasehold_Acquire: form.acquire(grant, []),
      Leasehold_TakeOver: form.acquire(grant, [dead]),
      Leasehold_ClearPermit: clearSeats(address, [dead]),
      Leasehold_Cancel: form.cancel(cancellation),
      Leasehold_RevokeToken: form.revoke(cancellation),
      Leasehold_CancelLanded: form.cancel(cancellation),
      Leasehold_Release: held.release(ending),
      Leasehold_ReleaseFailed: held.release(ending),
      Leasehold_Close: held.release({ ...ending, cooldown: { until: 1, forMs: 1 } }),
      Renew1: renewSeatUnlessRevoked(held, renewal),
      RenewFirst: held.renew(renewal),
      RenewHeld: held.renew(renewal),
      Release: held.release(ending),
    };
    for (const [name, write] of Object.entries(expected)) {
      const { update, condition, names, values } = write.request();
      const sent = await argumentsOf(states[name]?.Arguments, "semaphore");
      expect(sent, name).toMatchObject({
        Key: { sk: { S: "semaphore" } },
        UpdateExpression: update,
        ConditionExpression: condition,
        ExpressionAttributeNames: names,
      });
      expect(Object.keys(sent.ExpressionAttributeValues as object).sort(), name).toEqual(
        Object.keys(values).sort(),
      );
    }
  });

  it.each([{}, { whenHeld: "skip" }, { lockAtLeastFor: Duration.seconds(10), permits: 500 }] as const)(
    "with permits passes the validator too: %j",
    (options) => {
      const definitions = definitionsIn(workflowOf({ permits: 1, ...options }));
      for (const definition of Object.values(definitions)) expect(definitionProblems(definition)).toEqual([]);
    },
  );

  it("with permits has the event of an end look at its semaphore", () => {
    const rules = Object.values(workflowOf({ permits: 5 }).findResources("AWS::Events::Rule"));
    const templates = rules.map(({ Properties }) => Properties.Targets[0].InputTransformer?.InputTemplate);
    expect(templates.filter((template) => template?.includes('"key":"import"'))).toEqual([
      expect.stringContaining('"sortKey":"semaphore"'),
    ]);
  });

  it("may use its own lock only, and may start its keeper only", () => {
    const policies = statementsByPolicy(workflowOf({}));
    const own = statementsOf(policies, "ImportStateMachine");
    expect(own.filter(({ actions }) => actions.some((action) => action.startsWith("states:")))).toMatchObject(
      [
        {
          actions: ["states:StartExecution"],
          resource: expect.stringMatching(/LeaseholdHeartbeat\w{8}StateMachine/),
        },
      ],
    );
    expect(own.filter(({ actions }) => actions.some((action) => action.startsWith("dynamodb:")))).toEqual([
      expect.objectContaining({ keys: ["import"] }),
    ]);
  });

  it("has a keeper that may look at, stop and answer leased workflows of the stack, and keep locks of the table", () => {
    const policies = statementsByPolicy(workflowOf({}));
    const keeper = /^LeaseholdHeartbeat\w{8}(StateMachine|Guarding)/;
    const own = Object.entries(policies)
      .flatMap(([id, statements]) => (keeper.test(id) ? statements : []))
      .filter(({ actions }) => !actions.some((action) => /^(logs|xray):/.test(action)));
    expect(own).toEqual([
      {
        actions: ["dynamodb:UpdateItem", "dynamodb:GetItem"],
        keys: undefined,
        resource: expect.stringContaining("Leases"),
      },
      {
        actions: ["states:StartExecution", "states:SendTaskSuccess", "states:SendTaskFailure"],
        keys: undefined,
        resource: expect.stringMatching(/LeaseholdHeartbeat\w{8}StateMachine/),
      },
      {
        actions: ["states:SendTaskSuccess", "states:SendTaskFailure"],
        keys: undefined,
        resource: expect.stringMatching(/LeaseholdHeartbeat\w{8}EndedStateMachine/),
      },
      {
        actions: ["states:DescribeExecution", "states:StopExecution"],
        keys: undefined,
        resource: expect.stringMatching(/:execution:leased-\w{10}-\*:\*/),
      },
      {
        actions: ["states:SendTaskSuccess", "states:SendTaskFailure"],
        keys: undefined,
        resource: expect.stringMatching(/:stateMachine:leased-\w{10}-\*/),
      },
    ]);
  });

  it("tells of its failed ends, and what hears of them may look at it and keep its lock, and no more", () => {
    const template = workflowOf({});
    const rules = Object.values(template.findResources("AWS::Events::Rule"));
    const rule = rules.find(({ Properties }) => Properties.Description.includes("Lets go"));
    // The others hear of redrives, and of keepers.
    expect(rules).toHaveLength(3);
    const machine = { Ref: expect.stringMatching(/^ImportStateMachine/) };
    expect(rule?.Properties).toMatchObject({
      State: "ENABLED",
      EventPattern: {
        source: ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        detail: { stateMachineArn: [machine], status: ["FAILED", "TIMED_OUT", "ABORTED"] },
      },
      Targets: [
        {
          Arn: { Ref: expect.stringMatching(/^LeaseholdHeartbeat\w{8}EndedStateMachine/) },
          InputTransformer: {
            InputPathsMap: {
              "detail-executionArn": "$.detail.executionArn",
              "detail-status": "$.detail.status",
            },
            InputTemplate:
              '{"key":"import","detail":{"executionArn":<detail-executionArn>,"status":<detail-status>}}',
          },
        },
      ],
    });
    const actions = Object.entries(statementsByPolicy(template))
      .filter(([id]) => /^LeaseholdHeartbeat\w{8}EndedStateMachineRole/.test(id))
      .flatMap(([, statements]) => statements)
      .flatMap((statement) => statement.actions)
      .filter((action) => !/^(logs|xray):/.test(action));
    expect(actions).toEqual([
      "dynamodb:UpdateItem",
      "dynamodb:GetItem",
      "states:StartExecution",
      "states:DescribeExecution",
      "states:StopExecution",
    ]);
  });

  it("whose executions each name a key of their own hands the whole event on", () => {
    const { stack, table } = stackOf();
    new LeasedWorkflow(stack, "Import", { table, work: new Pass(stack, "Nothing") });
    const rules = Object.values(Template.fromStack(stack).findResources("AWS::Events::Rule"));
    const rule = rules.find(({ Properties }) => Properties.Description.includes("Lets go"));
    const [target] = rule?.Properties.Targets ?? [];
    expect(Object.keys(target)).not.toContain("InputTransformer");
    expect(Object.keys(target)).not.toContain("InputPath");
  });

  it("hears of a keeper that was ended, from the whole event, and may start another and answer for it", () => {
    const template = workflowOf({});
    const rules = Object.values(template.findResources("AWS::Events::Rule"));
    const rule = rules.find(({ Properties }) => Properties.Description.includes("keeper"));
    expect(rule?.Properties).toMatchObject({
      EventPattern: {
        source: ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        detail: {
          stateMachineArn: [{ Ref: expect.stringMatching(/^LeaseholdHeartbeat\w{8}StateMachine/) }],
          status: ["FAILED", "TIMED_OUT", "ABORTED"],
        },
      },
      Targets: [{ Arn: { Ref: expect.stringMatching(/^LeaseholdHeartbeat\w{8}EndedStateMachine/) } }],
    });
    expect(Object.keys(rule?.Properties.Targets[0])).not.toContain("InputTransformer");
    const ended = /^LeaseholdHeartbeat\w{8}EndedStateMachineRole/;
    const started = Object.entries(statementsByPolicy(template))
      .flatMap(([id, statements]) => (ended.test(id) ? statements : []))
      .filter(({ actions }) => actions.includes("states:StartExecution"));
    expect(started).toMatchObject([
      { resource: expect.stringMatching(/LeaseholdHeartbeat\w{8}StateMachine/) },
    ]);
  });

  it("keeps the data of its executions out of the logs", () => {
    const machines = Object.values(workflowOf({}).findResources("AWS::StepFunctions::StateMachine"));
    for (const { Properties } of machines) {
      expect(Properties.LoggingConfiguration).toMatchObject({ IncludeExecutionData: false, Level: "ALL" });
      expect(Properties.TracingConfiguration).toEqual({ Enabled: true });
    }
  });

  it("logs where the account's policy for logs has room, each machine under a name of its own", () => {
    const named = ["a", "A".repeat(128)].flatMap((stackName) => {
      const stack = new Stack(new App(), "Same", { stackName });
      const table = new LeaseTable(stack, "Leases");
      for (const id of ["One", "A".repeat(300)]) {
        new LeasedWorkflow(stack, id, { table, key: id, work: new Pass(stack, `Nothing${id}`) });
      }
      return Object.values(Template.fromStack(stack).findResources("AWS::Logs::LogGroup"));
    });
    const names = named.map(({ Properties }) => String(Properties.LogGroupName));
    expect(names).toHaveLength(10);
    expect(new Set(names).size).toBe(10);
    for (const name of names) {
      expect(name).toMatch(/^\/aws\/vendedlogs\/states\/[\w-]+$/);
      // A state machine takes a log group's ARN of at most 256 characters.
      const arn = `arn:aws-us-gov:logs:us-gov-west-1:123456789012:log-group:${name}:*`;
      expect(arn.length).toBeLessThanOrEqual(256);
    }
  });

  it("has itself stopped when it is redriven, by one machine for the whole stack", () => {
    const { stack, table } = stackOf();
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
    for (const id of ["One", "Two"]) {
      const work = new Pass(stack, `Nothing${id}`);
      new LeasedWorkflow(stack, id, { table, key: id, work, heartbeat });
    }
    const template = Template.fromStack(stack);
    const rules = Object.values(template.findResources("AWS::Events::Rule")).filter(({ Properties }) =>
      Properties.EventPattern.detail.status.includes("RUNNING"),
    );
    const guards = Object.keys(template.findResources("AWS::StepFunctions::StateMachine")).filter((id) =>
      id.includes("RedriveGuard"),
    );
    expect([rules.length, guards.length]).toEqual([1, 1]);
    const names = Object.values(template.findResources("AWS::StepFunctions::StateMachine"))
      .map(({ Properties }) => Properties.StateMachineName)
      .filter((name) => name !== undefined);
    expect(names).toHaveLength(2);
    for (const { Properties } of rules) {
      const pattern = JSON.parse(
        JSON.stringify(Properties.EventPattern).replace(/\{"Fn::Join":.*?(:leased-\w+-)"\]\]\}/, '"arn$1"'),
      );
      const passes = compileFilters([pattern]);
      const event = (detail: object): object => ({
        source: "aws.states",
        "detail-type": "Step Functions Execution Status Change",
        detail: {
          executionArn: "arn",
          stateMachineArn: `arn:${names[0]}`,
          status: "RUNNING",
          redriveCount: 1,
          ...detail,
        },
      });
      for (const name of names) expect(passes(event({ stateMachineArn: `arn:${name}` }))).toBe(true);
      expect(passes(event({ redriveCount: 0 }))).toBe(false);
      expect(passes(event({ status: "ABORTED" }))).toBe(false);
      expect(passes(event({ stateMachineArn: "arn:leased-0123456789-Other" }))).toBe(false);
      expect(Properties.Targets).toEqual([
        expect.objectContaining({
          Arn: { Ref: guards[0] },
          InputTransformer: {
            InputPathsMap: { "detail-executionArn": "$.detail.executionArn" },
            InputTemplate: '{"execution":<detail-executionArn>}',
          },
        }),
      ]);
    }
    const policies = Object.entries(template.findResources("AWS::IAM::Policy"));
    const statements = policies
      .filter(([id]) => id.startsWith("LeaseholdRedriveGuardStateMachineRole"))
      .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement as { Action: unknown }[]);
    const stops = statements.filter(({ Action }) => Action === "states:StopExecution");
    expect(JSON.stringify(stops)).toMatch(/^[^}]*"Fn::Join"[^*]*:execution:leased-\w{10}-\*:\*[^*]*$/);
  });

  it("can share its keeper with others of its table", () => {
    const { stack, table } = stackOf();
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
    for (const id of ["One", "Two"]) {
      new LeasedWorkflow(stack, id, { table, key: id, work: new Pass(stack, `Nothing${id}`), heartbeat });
    }
    const template = Template.fromStack(stack);
    template.resourceCountIs("AWS::StepFunctions::StateMachine", 5);
    template.resourceCountIs("AWS::Events::Rule", 4);
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
    ["has no permits", { permits: 0 }, /permits is 0: set a whole number from 1 to 500/],
    ["has part of a permit", { permits: 1.5 }, /permits is 1.5: set a whole number/],
    [
      "has more permits than can be read",
      { permits: 501 },
      /permits is 501: set a whole number from 1 to 500/,
    ],
    [
      "runs a scheduled time once, with permits",
      { permits: 2, once: true },
      /once is set beside permits, and a semaphore has no slots/,
    ],
    [
      "has a lease with permits that the item may not outlast",
      { permits: 2, retention: Duration.hours(2), leaseDuration: Duration.hours(2) },
      /leaseDuration is 2 hours beside permits: choose at most .*three quarters/,
    ],
  ])("that %s fails at synth and says what to change", (_, options, message) => {
    expect(() => workflowOf(options)).toThrow(message);
  });

  it.each(["wait", "replace"] as const)(
    "refuses to %s for a permit, of which nothing would tell",
    (whenHeld) => {
      const { stack, table } = stackOf({ stream: true });
      const wakeup = new LeaseWakeup(stack, "Wakeup", { table });
      const options = { table, wakeup, whenHeld, permits: 2, work: new Pass(stack, "Nothing") };
      expect(() => new LeasedWorkflow(stack, "Import", options)).toThrow(
        `whenHeld is ${whenHeld} beside permits`,
      );
    },
  );

  it("refuses the keeper of another table", () => {
    const { stack, table } = stackOf();
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table: new LeaseTable(stack, "Others") });
    const make = (): LeasedWorkflow =>
      new LeasedWorkflow(stack, "Import", { table, work: new Pass(stack, "Nothing"), heartbeat });
    expect(make).toThrow("heartbeat is of the table Test/Others: give one of Test/Leases");
  });
});

describe("a heartbeat", () => {
  it("tells of every end of what it guards by hand, once", () => {
    const { stack, table } = stackOf();
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
    const machine = new StateMachine(stack, "Export", {
      definitionBody: DefinitionBody.fromChainable(new Pass(stack, "Nothing")),
    });
    heartbeat.guard(machine);
    heartbeat.guard(machine, { key: "ignored" });
    const rules = Object.values(Template.fromStack(stack).findResources("AWS::Events::Rule"));
    expect(rules.map(({ Properties }) => Properties.EventPattern.detail.status)).toEqual([
      ["FAILED", "TIMED_OUT", "ABORTED"],
      ["FAILED", "TIMED_OUT", "ABORTED", "SUCCEEDED"],
    ]);
  });

  it("that a stack has for a workflow keeps the lock's item as long as the workflow does", () => {
    const definitions = definitionsIn(workflowOf({ retention: Duration.days(30) }));
    const ttls = Object.values(definitions).flatMap((definition) =>
      [...JSON.stringify(definition).matchAll(/\$ceil\((.*?) \/ 1000\)/g)].map(([, ttl]) => ttl),
    );
    const thirtyDaysMs = 30 * 86_400_000;
    // A permit's renewal puts the ttl off when less than this is left of it.
    const keptMs = 0.8 * thirtyDaysMs;
    expect(ttls.length).toBeGreaterThan(8);
    const others = ttls.filter((ttl) => !ttl?.endsWith(` + ${thirtyDaysMs})`));
    expect(others.filter((ttl) => !ttl?.endsWith(` + ${keptMs})`))).toEqual([]);
  });

  it("that is draining guards what it guarded, and lets nothing start a keeper", () => {
    const { stack, table } = stackOf();
    const shared = new LeaseHeartbeat(stack, "Shared", { table });
    const workflow = new LeasedWorkflow(stack, "Import", {
      table,
      key: "import",
      work: new Pass(stack, "Nothing"),
      heartbeat: shared,
    });
    // The heartbeat that the workflow had made for itself, at its own place in the tree.
    const old = new LeaseHeartbeat(workflow, "Heartbeat", {
      table,
      scope: { keys: ["import"] },
      draining: true,
    });
    old.guard(workflow.stateMachine, { key: "import", releasesItself: true });
    const template = Template.fromStack(stack);
    const machines = Object.keys(template.findResources("AWS::StepFunctions::StateMachine"));
    for (const part of ["StateMachine", "EndedStateMachine"]) {
      expect(machines).toContainEqual(expect.stringMatching(`^ImportHeartbeat${part}`));
    }
    expect(() => old.grantStart(workflow.stateMachine)).toThrow(
      "Test/Import/Heartbeat is draining, so that it can be removed: nothing may start a keeper of it",
    );
    const again = (): LeasedWorkflow =>
      new LeasedWorkflow(stack, "Again", {
        table,
        key: "again",
        work: new Pass(stack, "More"),
        heartbeat: old,
      });
    expect(again).toThrow(/is draining/);
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

  it("brings its own function, from the sources as from the package, with the SDK of Lambda's runtime", async () => {
    const { stack, table } = stackOf({ stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table });
    const template = Template.fromStack(stack);
    template.hasResourceProperties("AWS::Lambda::Function", {
      Handler: "index.handler",
      Runtime: "nodejs24.x",
      Code: { S3Key: Match.anyValue() },
      Environment: { Variables: { LEASEHOLD_TABLE_NAME: Match.anyValue() } },
    });
    const folder = wakeup.handler.node.findChild("Code") as Asset;
    const assembly = (stack.node.root as App).synth().directory;
    const code = readFileSync(join(assembly, folder.assetPath, "index.cjs"), "utf8");
    expect(code).toBe(wakeHandlerBundle);
    expect([...new Set([...code.matchAll(/require\("([^"]+)"\)/g)].map(([, name]) => name))].sort()).toEqual([
      "@aws-sdk/client-dynamodb",
      "@aws-sdk/client-lambda",
      "@aws-sdk/client-sfn",
    ]);
    // What Lambda takes for an inline function, and far more than this needs.
    expect(code.length).toBeLessThan(16_000);
    const policies = Object.values(template.findResources("AWS::IAM::Role"));
    for (const { Properties } of policies) expect(Properties.ManagedPolicyArns).toBeUndefined();
  });

  it("has the bundle of its present sources", async () => {
    for (const handler of bundledHandlers) {
      const isFresh = (await readFile(handler.file, "utf8")) === (await bundleSource(handler));
      expect(isFresh, `${handler.name} is out of date: run npm run generate -- bundle`).toBe(true);
    }
  });

  it("is enough for workflows that wait, with nothing else of the app's", () => {
    const { stack, table } = stackOf({ stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table });
    const work = new Pass(stack, "Nothing");
    new LeasedWorkflow(stack, "Import", { table, work, whenHeld: "wait", wakeup });
    expect(() => Template.fromStack(stack)).not.toThrow();
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

interface Permitted {
  readonly actions: string[];
  readonly keys: string[] | undefined;
  /** As JSON. */
  readonly resource: string;
}

/** All statements of a template's policies, by the policy's logical id. */
function statementsByPolicy(template: Template): Record<string, Permitted[]> {
  const policies = Object.entries(template.findResources("AWS::IAM::Policy"));
  return Object.fromEntries(
    policies.map(([id, { Properties }]) => [
      id,
      Properties.PolicyDocument.Statement.map(
        ({ Action, Resource, Condition }: Record<string, unknown>): Permitted => ({
          actions: [Action].flat() as string[],
          keys: (Condition as Record<string, Record<string, string[]>> | undefined)?.[
            "ForAllValues:StringLike"
          ]?.["dynamodb:LeadingKeys"],
          resource: JSON.stringify(Resource),
        }),
      ),
    ]),
  );
}

function statementsOf(policies: Record<string, Permitted[]>, name: string): Permitted[] {
  return Object.entries(policies).flatMap(([id, statements]) => (id.startsWith(name) ? statements : []));
}
