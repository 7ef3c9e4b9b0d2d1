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
import type { UpdateRequest } from "@leasehold/client";
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
import type { Asset } from "aws-cdk-lib/aws-s3-assets";
import { Chain, DefinitionBody, Pass, StateMachine, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { describe, expect, it } from "vitest";
import { wakeHandlerBundle } from "../../packages/cdk/src/workflow/wake-handler-bundle.ts";
import { bundledHandlers, bundleSource } from "../../packages/cdk/wake/bundle.ts";
import { Evaluator } from "../../tools/local/src/state-machines/jsonata.ts";
import { compileFilters } from "../../tools/local/src/streams/filter.ts";
import { functionIn, permitted } from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";

function stackOf(options: { stream?: boolean } = {}): { stack: Stack; table: LeaseTable } {
  const stack = new Stack(new App(), "Test");
  return { stack, table: new LeaseTable(stack, "Leases", { stream: options.stream ?? false }) };
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

/** Sees to it that the states of a workflow and its keeper send these statements. */
async function expectSent(
  options: Partial<LeasedWorkflowProps>,
  sortKey: string,
  expected: Readonly<Record<string, { request(): UpdateRequest }>>,
): Promise<void> {
  const definitions = Object.values(definitionsIn(workflowOf(options))) as Requests[];
  // The same name in two machines stands for the same request.
  const states = Object.assign({}, ...definitions.map(({ States }) => States)) as Requests["States"];
  for (const [name, write] of Object.entries(expected)) {
    const { update, condition, names, values } = write.request();
    const sent = await argumentsOf(states[name]?.Arguments, sortKey);
    expect(sent, name).toMatchObject({
      Key: { sk: { S: sortKey } },
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: names,
    });
    expect(Object.keys(sent.ExpressionAttributeValues as object).sort(), name).toEqual(
      Object.keys(values).sort(),
    );
  }
}

describe("a leased workflow", () => {
  it("and its keeper and guard pass an independent validator, with work in JSONata and in JSONPath", () => {
    const { stack, table } = stackOf({ stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") });
    const invoke = new LambdaInvoke(stack, "Fetch", { lambdaFunction: functionIn(stack, "Fetcher") });
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

  it.each<Partial<LeasedWorkflowProps>>([
    { whenHeld: "skip" },
    { permits: 1 },
    { permits: 500, lockAtLeastFor: Duration.seconds(10) },
  ])("passes it with %j", (options) => {
    const definitions = definitionsIn(workflowOf(options));
    for (const definition of Object.values(definitions)) expect(definitionProblems(definition)).toEqual([]);
  });

  it("sends the client's own expressions", async () => {
    const lock = { key: "k" };
    const times = { acquiredAt: 1, expiresAt: 1, leaseDurationMs: 1, retentionMs: 1 };
    const grant = {
      ...times,
      token: "t",
      version: 1,
      owner: "o",
      reentrant: false,
      data: undefined,
      slot: undefined,
    };
    const shown = { token: "t", fencingToken: 1 };
    const renewal = { shown, version: 1, expiresAt: 1, leaseDurationMs: 1, retentionMs: 1 };
    const ending = { shown, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };
    await expectSent({}, "lease", {
      Leasehold_Acquire: acquire(lock, grant),
      Renew1: renewUnlessRevoked(lock, renewal),
      RenewFirst: renew(lock, renewal),
      RenewHeld: renew(lock, renewal),
      Leasehold_Release: release(lock, ending),
      Leasehold_ReleaseFailed: release(lock, ending),
    });
  });

  it("with permits sends the semaphore's own expressions, as its keeper does for a permit", async () => {
    const address = { key: "k", sortKey: "semaphore" };
    const held = new HeldSeat("k", "semaphore");
    held.confirmed({ ttl: 1 });
    const form = new SeatForm({ ...address, kind: "permit", permits: 1, capacity: 5, limits: permitLimits });
    const own = { owner: "o", token: "t", fencingToken: 1, inCooldown: false };
    const none = { data: undefined, revocation: undefined };
    const seat = { ...address, ...own, ...none, ...someTimes, seat: { kind: "permit", permits: 2 } } as const;
    const grant = { ...seat, retentionMs: 1, slot: undefined };
    const dead = { ...seat, token: "d" };
    const renewal = { shown: seat, version: 2, expiresAt: 10_000, leaseDurationMs: 1, retentionMs: 1 };
    const ending = { shown: seat, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };
    const cancellation = { token: "t", now: 1, retentionMs: 1 };
    await expectSent({ permits: 5, lockAtLeastFor: Duration.seconds(10) }, "semaphore", {
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
    });
  });

  it("with permits has the event of an end look at its semaphore", () => {
    const rules = Object.values(workflowOf({ permits: 5 }).findResources("AWS::Events::Rule"));
    const templates = rules.map(({ Properties }) => Properties.Targets[0].InputTransformer?.InputTemplate);
    expect(templates.filter((template) => template?.includes('"key":"import"'))).toEqual([
      expect.stringContaining('"sortKey":"semaphore"'),
    ]);
  });

  const keeperId = "LeaseholdHeartbeat\\w{8}";
  /** Logs and traces aside. */
  const allowed = (template: Template, id: RegExp) =>
    permitted(template, id).filter((text) => !/^(logs|xray):/.test(text));
  const matching = (...patterns: string[]) => patterns.map((pattern) => expect.stringMatching(pattern));

  it("may use its own lock only, and may start its keeper only", () => {
    expect(allowed(workflowOf({}), /^ImportStateMachine/)).toEqual(
      matching(
        '^dynamodb:UpdateItem,dynamodb:GetItem\\S* <Leases\\S+> \\["import"\\]$',
        `^states:StartExecution <${keeperId}StateMachine`,
      ),
    );
  });

  it("has a keeper that may look at, stop and answer leased workflows of the stack, and keep locks of the table", () => {
    expect(allowed(workflowOf({}), /^LeaseholdHeartbeat\w{8}(StateMachine|Guarding)/)).toEqual(
      matching(
        "^dynamodb:UpdateItem,dynamodb:GetItem <Leases\\w+.Arn>$",
        `^states:StartExecution,states:SendTaskSuccess,states:SendTaskFailure .*${keeperId}StateMachine`,
        `^states:SendTaskSuccess,states:SendTaskFailure .*${keeperId}EndedStateMachine`,
        "^states:DescribeExecution,states:StopExecution .*:execution:leased-\\w{10}-\\*:\\*$",
        "^states:SendTaskSuccess,states:SendTaskFailure .*:stateMachine:leased-\\w{10}-\\*$",
      ),
    );
  });

  /** What a rule hears of, and the fields that it hands on; undefined where it hands on the whole event. */
  function ruleOf(template: Template, description: string) {
    const rules = Object.values(template.findResources("AWS::Events::Rule"));
    // One hears of the workflow's ends, one of redrives, one of keepers.
    expect(rules).toHaveLength(3);
    const { Properties } = rules.find((rule) => rule.Properties.Description.includes(description)) ?? {};
    const [target, ...more] = Properties?.Targets ?? [];
    expect(more).toEqual([]);
    expect(target.Arn.Ref).toMatch(new RegExp(`^${keeperId}EndedStateMachine`));
    expect(Properties).toMatchObject({
      State: "ENABLED",
      EventPattern: {
        source: ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        detail: { status: ["FAILED", "TIMED_OUT", "ABORTED"] },
      },
    });
    expect(Object.keys(target)).not.toContain("InputPath");
    return {
      of: Properties?.EventPattern.detail.stateMachineArn[0].Ref,
      handsOn: target.InputTransformer as object | undefined,
    };
  }

  it("tells of its failed ends with its key, and what hears of them may look at it and keep its lock, and no more", () => {
    const template = workflowOf({});
    expect(ruleOf(template, "Lets go")).toEqual({
      of: expect.stringMatching(/^ImportStateMachine/),
      handsOn: {
        InputPathsMap: { "detail-executionArn": "$.detail.executionArn", "detail-status": "$.detail.status" },
        InputTemplate:
          '{"key":"import","detail":{"executionArn":<detail-executionArn>,"status":<detail-status>}}',
      },
    });
    expect(allowed(template, /^LeaseholdHeartbeat\w{8}EndedStateMachineRole/)).toEqual(
      matching(
        "^dynamodb:UpdateItem,dynamodb:GetItem <Leases",
        `^states:StartExecution .*${keeperId}StateMachine`,
        "^states:DescribeExecution,states:StopExecution .*:execution:leased-",
      ),
    );
  });

  it("hands on the whole event where each execution names a key of its own, and that of a keeper that was ended", () => {
    const { stack, table } = stackOf();
    new LeasedWorkflow(stack, "Import", { table, work: new Pass(stack, "Nothing") });
    const template = Template.fromStack(stack);
    expect(ruleOf(template, "Lets go").handsOn).toBeUndefined();
    const { of, handsOn } = ruleOf(template, "keeper");
    expect(of).toMatch(new RegExp(`^${keeperId}StateMachine`));
    expect(handsOn).toBeUndefined();
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
      new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") });
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

  it("hears of releases only, and may wake the workflows that it serves, and no others", () => {
    const { stack, table } = stackOf({ stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") });
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
