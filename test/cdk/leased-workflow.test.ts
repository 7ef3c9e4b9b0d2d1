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
import { type App, Duration, type Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { Alias, type IFunction, Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import type { Asset } from "aws-cdk-lib/aws-s3-assets";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, it } from "vitest";
import { wakeHandlerBundle } from "../../packages/cdk/src/workflow/wake-handler-bundle.ts";
import { bundledHandlers, bundleSource } from "../../packages/cdk/wake/bundle.ts";
import { compileFilters } from "../../tools/local/src/streams/filter.ts";
import {
  functionIn,
  newStack,
  permitted,
  statementsIn,
  tableIn,
  textOf,
  workflowIn,
} from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";
import { machineIn } from "../support/jobs.ts";

/** The template of a stack with one workflow. */
function workflowOf(options: Partial<LeasedWorkflowProps>): Template {
  const stack = newStack({});
  workflowIn(stack, options);
  return Template.fromStack(stack);
}

describe("a leased workflow", () => {
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
    const stack = newStack({});
    new LeasedWorkflow(stack, "Import", { table: tableIn(stack), work: new Pass(stack, "Work") });
    const template = Template.fromStack(stack);
    expect(ruleOf(template, "Lets go").handsOn).toBeUndefined();
    const { of, handsOn } = ruleOf(template, "keeper");
    expect(of).toMatch(new RegExp(`^${keeperId}StateMachine`));
    expect(handsOn).toBeUndefined();
  });

  it("logs where the account's policy for logs has room, each machine under a name of its own", () => {
    const named = ["a", "A".repeat(128)].flatMap((stackName) => {
      const stack = newStack({ stackName });
      for (const id of ["One", "A".repeat(300)]) workflowIn(stack, {}, id);
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

  it("has itself stopped when it is redriven, by one machine for the whole stack, also under a name of its own", () => {
    const stack = newStack({});
    for (const id of ["One", "Two"]) workflowIn(stack, {}, id);
    workflowIn(stack, { stateMachineName: "acme" }, "Named");
    const template = Template.fromStack(stack);
    const machines = Object.entries(template.findResources("AWS::StepFunctions::StateMachine"));
    const [guard, ...more] = machines.map(([id]) => id).filter((id) => id.includes("RedriveGuard"));
    const rules = Object.values(template.findResources("AWS::Events::Rule"))
      .map(({ Properties }) => Properties)
      .filter(({ EventPattern }) => EventPattern.detail.status.includes("RUNNING"));
    expect([rules.length, more]).toEqual([2, []]);
    for (const { Targets } of rules)
      expect(Targets).toEqual([
        expect.objectContaining({
          Arn: { Ref: guard },
          InputTransformer: {
            InputPathsMap: { "detail-executionArn": "$.detail.executionArn" },
            InputTemplate: '{"execution":<detail-executionArn>}',
          },
        }),
      ]);
    const passes = compileFilters(rules.map(({ EventPattern }) => JSON.parse(textOf(EventPattern))));
    const hears = (detail: object): boolean =>
      passes({
        source: "aws.states",
        "detail-type": "Step Functions Execution Status Change",
        detail: { status: "RUNNING", redriveCount: 1, ...detail },
      });
    const arnOf = (name: string): string =>
      `arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:stateMachine:${name}`;
    const arns = machines.flatMap(([id, { Properties }]) => {
      const name: string | undefined = Properties.StateMachineName;
      return name === undefined ? [] : [name === "acme" ? `<${id}>` : arnOf(name)];
    });
    expect(arns.map((stateMachineArn) => hears({ stateMachineArn }))).toEqual([true, true, true]);
    expect(hears({ stateMachineArn: arnOf("leased-0123456789-Other") })).toBe(false);
    for (const stateMachineArn of arns) {
      expect(hears({ stateMachineArn, redriveCount: 0 })).toBe(false);
      expect(hears({ stateMachineArn, status: "ABORTED" })).toBe(false);
    }
    expect(allowed(template, /^LeaseholdRedriveGuardStateMachineRole/)).toEqual(
      matching(
        "^states:StopExecution [^*]*:execution:leased-\\w{10}-\\*:\\*$",
        "^states:StopExecution .*:execution:acme:\\*$",
      ),
    );
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
      const stack = newStack({});
      const wakeup = new LeaseWakeup(stack, "Wakeup", { table: tableIn(stack, true) });
      expect(() => workflowIn(stack, { wakeup, whenHeld, permits: 2 })).toThrow(
        `whenHeld is ${whenHeld} beside permits`,
      );
    },
  );

  it("refuses the keeper of another table", () => {
    const stack = newStack({});
    const table = new LeaseTable(stack, "Others");
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
    expect(() => workflowIn(stack, { heartbeat })).toThrow(
      "heartbeat is of the table Test/Others: give one of Test/Leases",
    );
  });
});

describe("a heartbeat", () => {
  it("tells of every end of what it guards by hand, once", () => {
    const stack = newStack({});
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table: tableIn(stack) });
    const machine = machineIn(stack, "Export");
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
    const stack = newStack({});
    const table = tableIn(stack);
    const heartbeat = new LeaseHeartbeat(stack, "Shared", { table });
    const workflow = workflowIn(stack, { heartbeat });
    // The heartbeat that the workflow had made for itself, at its own place in the tree.
    const scope = { keys: ["import"] };
    const old = new LeaseHeartbeat(workflow, "Heartbeat", { table, scope, draining: true });
    old.guard(workflow.stateMachine, { key: "import", releasesItself: true });
    const machines = Object.keys(Template.fromStack(stack).findResources("AWS::StepFunctions::StateMachine"));
    for (const part of ["StateMachine", "EndedStateMachine"]) {
      expect(machines).toContainEqual(expect.stringMatching(`^ImportHeartbeat${part}`));
    }
    expect(() => old.grantStart(workflow.stateMachine)).toThrow(
      "Test/Import/Heartbeat is draining, so that it can be removed: nothing may start a keeper of it",
    );
    expect(() => workflowIn(stack, { heartbeat: old }, "Again")).toThrow(/is draining/);
  });
});

describe("a wakeup", () => {
  const wakeupIn = (stack: Stack): LeaseWakeup =>
    new LeaseWakeup(stack, "Wakeup", { table: tableIn(stack, true), handler: functionIn(stack, "Wake") });

  it("needs a table with a stream, and says so", () => {
    const stack = newStack({});
    expect(() => new LeaseWakeup(stack, "Wakeup", { table: tableIn(stack) })).toThrow(
      "Test/Leases has no stream, so no release can be seen: make the table with stream: true",
    );
  });

  it("brings its own function, from the sources as from the package, with the SDK of Lambda's runtime", async () => {
    const stack = newStack({});
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table: tableIn(stack, true) });
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
    const stack = newStack({});
    const wakeup = wakeupIn(stack);
    workflowIn(stack, { whenHeld: "wait", wakeup });
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
    const wakes = permitted(template, /^Wake/).filter((text) => /^(states|lambda):/.test(text));
    expect(wakes).toEqual([expect.stringMatching(/^states:SendTaskSuccess <ImportStateMachine\w+>$/)]);
  });

  // An execution's ARN names the version. CDK's own classes miss its interfaces where optional properties are exact.
  it.each<[string, (fn: LambdaFunction) => IFunction]>([
    ["itself", (fn) => fn],
    ["a version", (fn) => fn.currentVersion as IFunction],
    [
      "an alias",
      (fn) =>
        new Alias(fn.stack, "Live", { aliasName: "live", version: fn.currentVersion as never }) as IFunction,
    ],
  ])(
    "may complete the callbacks of the durable function that it serves, and of no other: by %s",
    (_, given) => {
      const stack = newStack({});
      const wakeup = wakeupIn(stack);
      const durableConfig = { executionTimeout: Duration.days(30) };
      wakeup.serve(given(functionIn(stack, "Approve", { durableConfig })));
      const statements = statementsIn(Template.fromStack(stack), /^Wake/).filter(({ Action }) =>
        [Action].flat().some((action) => action.startsWith("lambda:")),
      );
      expect(statements).toEqual([
        {
          Effect: "Allow",
          Action: "lambda:SendDurableExecutionCallbackSuccess",
          Resource: {
            "Fn::Join": ["", [{ "Fn::GetAtt": [expect.stringMatching(/^Approve/), "Arn"] }, ":*"]],
          },
        },
      ]);
    },
  );

  it("may complete those of an imported function that is named by its alias", () => {
    const stack = newStack();
    const functionArn = "arn:aws:lambda:eu-west-1:111122223333:function:approve";
    wakeupIn(stack).serve(LambdaFunction.fromFunctionArn(stack, "Approve", `${functionArn}:live`));
    expect(permitted(Template.fromStack(stack), /^Wake/)).toContain(
      `lambda:SendDurableExecutionCallbackSuccess ${functionArn}:*`,
    );
  });
});
