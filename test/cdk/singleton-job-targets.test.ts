import {
  type JobTarget,
  LeasedWorkflow,
  LeaseTable,
  type SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration, type Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import {
  Alias,
  type IFunction,
  type IVersion,
  Function as LambdaFunction,
  Version,
} from "aws-cdk-lib/aws-lambda";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { env, functionIn, newStack, permitted, statementsIn } from "../support/constructs.ts";
import { jobIn, runIn } from "../support/jobs.ts";

const arnOf = (region: string, account = env.account): string =>
  `arn:aws:lambda:${region}:${account}:function:report`;

function newWorld() {
  const stack = newStack();
  return { stack, table: new LeaseTable(stack, "Leases", { stream: true }) };
}
type World = ReturnType<typeof newWorld>;

type Make = (stack: Stack, id: string) => IFunction;

// The library's own types disagree under exactOptionalPropertyTypes.
const currentVersionOf = (fn: LambdaFunction): IVersion => fn.currentVersion as IVersion;
const aliasOf: Make = (stack, id) => aliased(stack, `${id}Alias`, currentVersionOf(functionIn(stack, id)));
const versionOf: Make = (stack, id) => currentVersionOf(functionIn(stack, id));

function aliased(stack: Stack, id: string, version: IVersion): IFunction {
  return new Alias(stack, id, { aliasName: "live", version }) as IFunction;
}

/** Functions that the app defines, and so can set the environment of. */
const ownFunctions: readonly [string, Make][] = [
  ["a function", functionIn],
  ["an alias of the current version", aliasOf],
  ["the current version", versionOf],
];
const otherFunctions: readonly [string, Make][] = [
  ["an imported function", (stack, id) => LambdaFunction.fromFunctionName(stack, id, "report")],
  [
    "one of another account",
    (stack, id) => LambdaFunction.fromFunctionArn(stack, id, arnOf("eu-west-1", "444455556666")),
  ],
  [
    "an imported alias",
    (stack, id) =>
      Alias.fromAliasAttributes(stack, id, {
        aliasName: "live",
        aliasVersion: Version.fromVersionArn(stack, `${id}Version`, `${arnOf("eu-west-1")}:7`),
      }),
  ],
  ["an imported version", (stack, id) => Version.fromVersionArn(stack, id, `${arnOf("eu-west-1")}:7`)],
];

const addJob = (
  { stack, table }: World,
  target: JobTarget,
  props: Partial<SingletonJobProps> = {},
  id?: string,
): SingletonJob => jobIn(stack, target, { table, ...props }, id);

interface Run {
  readonly Arguments: { readonly FunctionName: string };
  readonly TimeoutSeconds: number | string;
  readonly Retry: readonly { readonly ErrorEquals: readonly string[]; readonly [field: string]: unknown }[];
}

describe("a function that is locked from outside", () => {
  test.each([...ownFunctions, ...otherFunctions])(
    "can be %s, and may be invoked by the workflow alone",
    (_, make) => {
      const world = newWorld();
      const fn = make(world.stack, "Report");
      addJob(world, SingletonJobTarget.lockedLambda(fn));
      const template = Template.fromStack(world.stack);
      const [invoke, ...more] = statementsIn(template).filter(
        ({ Action }) => Action === "lambda:InvokeFunction",
      );
      expect(more).toEqual([]);
      expect(invoke?.Resource).toEqual(world.stack.resolve(fn.functionArn));
      template.hasResourceProperties("AWS::Scheduler::Schedule", {
        Target: { Arn: { Ref: Match.stringLikeRegexp("^JobWorkflowStateMachine") } },
      });
      template.resourceCountIs("AWS::Lambda::EventInvokeConfig", 0);
      // It has no setting of the lock, and no permission on the table.
      for (const { Properties } of Object.values(template.findResources("AWS::Lambda::Function")))
        expect(Properties.Environment).toBeUndefined();
      expect(statementsIn(template, /^Report/)).toEqual([]);
    },
  );

  test("can serve two jobs, each under its own key", () => {
    const world = newWorld();
    const fn = functionIn(world.stack, "Report");
    const keys = ["orders", "invoices"];
    for (const key of keys) addJob(world, SingletonJobTarget.lockedLambda(fn), { key }, key);
    const locked = permitted(Template.fromStack(world.stack), /Workflow/).filter((text) =>
      text.endsWith("]"),
    );
    expect(locked.map((text) => text.split(" ").at(-1))).toEqual(keys.map((key) => `["${key}"]`));
  });

  test.each<[string, Make, Duration | undefined, number]>([
    ["the function's own timeout", functionIn, undefined, 60],
    [
      "Lambda's default",
      (stack, id) => functionIn(stack, id, { timeout: Duration.seconds(3) }),
      undefined,
      3,
    ],
    ["what the user states", versionOf, Duration.minutes(5), 300],
    [
      "Lambda's limit for an imported one",
      (stack, id) => LambdaFunction.fromFunctionName(stack, id, "report"),
      undefined,
      900,
    ],
  ])("has its end waited for by %s", (_, make, timeout, seconds) => {
    const world = newWorld();
    addJob(world, SingletonJobTarget.lockedLambda(make(world.stack, "Report"), timeout ? { timeout } : {}));
    const run = runIn<Run>(Template.fromStack(world.stack));
    expect(String(run.TimeoutSeconds)).toContain(String(seconds + 60));
    const [, unclear] = run.Retry;
    expect(unclear).toMatchObject({ IntervalSeconds: seconds + 60, BackoffRate: 2, MaxAttempts: 3 });
    expect(unclear?.JitterStrategy).toBeUndefined();
  });

  test.each<[Partial<SingletonJobProps>, string]>([
    [
      { heartbeat: Duration.seconds(10), lockAtMostFor: Duration.minutes(1) },
      "heartbeat is set for work that is locked from outside: leave it out, for a keeper renews the lease every third of lockAtMostFor",
    ],
    [{ lockAtMostFor: Duration.seconds(2) }, "lockAtMostFor is 2 seconds: choose from 3 seconds"],
    [{ permits: 2 }, "permits is set, and a semaphore has no slots, by which a trigger that is delivered"],
    [
      { permits: 2, once: false, overlap: "replace" },
      'permits is set with overlap: "replace", and nothing tells runs of a permit that is free again: choose "skip"',
    ],
    [{ permits: 501, once: false }, "permits is 501: set a whole number from 1 to 500"],
  ])("refuses %o", (props, message) => {
    const world = newWorld();
    const target = SingletonJobTarget.lockedLambda(functionIn(world.stack, "Report"));
    expect(() => addJob(world, target, props)).toThrow(message);
  });

  test("permits are refused by targets whose lock no workflow of the job holds", () => {
    const world = newWorld();
    const permits = { permits: 2, once: false };
    const own = SingletonJobTarget.lambda(functionIn(world.stack, "Close"));
    expect(() => addJob(world, own, permits, "Own")).toThrow(
      "permits is set, and no workflow holds the lock of such a target's runs: use SingletonJobTarget.lockedLambda",
    );
    const workflow = new LeasedWorkflow(world.stack, "Import", {
      table: world.table,
      permits: 2,
      work: new Pass(world.stack, "Nothing"),
    });
    expect(() => addJob(world, SingletonJobTarget.workflow(workflow), { permits: 2 }, "Workflow")).toThrow(
      "permits is set for a workflow, which has its own: set it on the LeasedWorkflow instead",
    );
  });

  test.each([
    [{ retryAttempts: 21 }, "retryAttempts of the function is 21: set a whole number from 0 to 20"],
    [{ retryAttempts: 0.5 }, "retryAttempts of the function is 0.5"],
    [
      { timeout: Duration.minutes(16) },
      "timeout of the function is 16 minutes: set whole seconds from 1 second to 15 minutes",
    ],
    [{ timeout: Duration.millis(500) }, "timeout of the function is 500 millis"],
  ])("refuses %o", (options, message) => {
    expect(() => SingletonJobTarget.lockedLambda(functionIn(newWorld().stack, "Report"), options)).toThrow(
      message,
    );
  });

  test("refuses a function of another region, which Step Functions cannot call", () => {
    const world = newWorld();
    const fn = LambdaFunction.fromFunctionArn(world.stack, "Report", arnOf("us-east-1"));
    expect(() => addJob(world, SingletonJobTarget.lockedLambda(fn))).toThrow(
      "the function Test/Report is in us-east-1, and Step Functions calls services of its own region (eu-west-1) only: " +
        "define the job in a stack of us-east-1",
    );
  });
});

describe("a function that takes the lock itself", () => {
  test("can be an alias of the current version: its function has the settings, and it is what runs", () => {
    const world = newWorld();
    const fn = aliasOf(world.stack, "Close");
    const arn = world.stack.resolve(fn.functionArn);
    addJob(world, SingletonJobTarget.lambda(fn), { key: "orders" });
    const template = Template.fromStack(world.stack);
    template.hasResourceProperties("AWS::Lambda::Function", {
      Environment: { Variables: Match.objectLike({ LEASEHOLD_KEY: "orders" }) },
    });
    template.hasResourceProperties("AWS::Scheduler::Schedule", { Target: { Arn: arn } });
    const [invoke] = statementsIn(template).filter(({ Action }) => Action === "lambda:InvokeFunction");
    expect(invoke?.Resource).toEqual(arn);
    const asynchronous = { Qualifier: Match.anyValue(), MaximumRetryAttempts: 2 };
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", asynchronous);
  });

  test("is published anew when the job's settings change", () => {
    const versions = ["orders", "invoices"].map((key) => {
      const world = newWorld();
      addJob(world, SingletonJobTarget.lambda(aliasOf(world.stack, "Close")), { key });
      return Object.keys(Template.fromStack(world.stack).findResources("AWS::Lambda::Version"));
    });
    expect(versions[0]).not.toEqual(versions[1]);
  });

  test.each(otherFunctions)(
    "cannot be %s, whose environment cannot be set, and says what to do",
    (_, make) => {
      const { stack } = newWorld();
      expect(() => SingletonJobTarget.lambda(make(stack, "Report"))).toThrow(
        "Test/Report is not defined in this app, so the job cannot set its environment: use SingletonJobTarget.lockedLambda, " +
          "which locks any function from outside, or define the function here",
      );
    },
  );

  test("cannot be a version that was published without the settings, or an alias of one", () => {
    const { stack } = newWorld();
    const lambda = functionIn(stack, "Close");
    const version = new Version(stack, "Seventh", { lambda }) as IVersion;
    for (const fn of [version, aliased(stack, "Live", version)]) {
      expect(() => SingletonJobTarget.lambda(fn)).toThrow(
        `${fn.node.path} is a version that keeps the environment it was published with, and the job's settings would not ` +
          "reach it: use currentVersion of Test/Close, or SingletonJobTarget.lockedLambda, which sets nothing",
      );
    }
  });

  test("serves one job, by whatever alias or version", () => {
    const world = newWorld();
    const fn = functionIn(world.stack, "Close");
    addJob(world, SingletonJobTarget.lambda(fn), {}, "First");
    expect(() => addJob(world, SingletonJobTarget.lambda(currentVersionOf(fn)), {}, "Second")).toThrow(
      "the function Test/Close already serves the job Test/First: define a function for each job",
    );
  });
});
