import { SingletonJobTarget } from "@leasehold/cdk";
import { Duration, Lazy, type Stack } from "aws-cdk-lib";
import { Match } from "aws-cdk-lib/assertions";
import type { IFunction, IVersion } from "aws-cdk-lib/aws-lambda";
import { describe, expect, test } from "vitest";
import { functionIn, permitted, statementsIn } from "../support/constructs.ts";
import { aliasIn, JobWorld, otherFunctions, runIn } from "../support/jobs.ts";

const { lambda, lockedLambda } = SingletonJobTarget;

type Make = (stack: Stack, id: string) => IFunction;
// The library's own types disagree under exactOptionalPropertyTypes.
const versionOf: Make = (stack, id) => functionIn(stack, id).currentVersion as IVersion;
const aliasOf: Make = (stack, id) => aliasIn(stack, `${id}Alias`, versionOf(stack, id) as IVersion);

interface Run {
  readonly TimeoutSeconds: number | string;
  readonly Retry: readonly { readonly [field: string]: unknown }[];
}

describe("a function that is locked from outside", () => {
  test.each<[string, Make]>([
    ["a function", functionIn],
    ["an alias of the current version", aliasOf],
    ["the current version", versionOf],
    ...Object.entries(otherFunctions),
  ])("can be %s, and may be invoked by the workflow alone", (_, make) => {
    const world = new JobWorld();
    const fn = make(world.stack, "Report");
    const template = world.templateOf({ target: lockedLambda(fn) });
    const invokes = statementsIn(template).filter(({ Action }) => Action === "lambda:InvokeFunction");
    expect(invokes.map(({ Resource }) => Resource)).toEqual([world.stack.resolve(fn.functionArn)]);
    template.hasResourceProperties("AWS::Scheduler::Schedule", {
      Target: { Arn: { Ref: Match.stringLikeRegexp("^JobWorkflowStateMachine") } },
    });
    template.resourceCountIs("AWS::Lambda::EventInvokeConfig", 0);
    // It has no setting of the lock, and no permission on the table.
    for (const [id, { Properties }] of Object.entries(template.findResources("AWS::Lambda::Function")))
      if (id.startsWith("Report")) expect(Properties.Environment).toBeUndefined();
    expect(statementsIn(template, /^Report/)).toEqual([]);
  });

  test("can serve two jobs, each under its own key", () => {
    const world = new JobWorld();
    const keys = ["orders", "invoices"];
    for (const key of keys) world.job({ target: lockedLambda(world.fn), key }, key);
    const locked = permitted(world.template(), /Workflow/).filter((text) => text.endsWith("]"));
    expect(locked.map((text) => text.split(" ").at(-1))).toEqual(keys.map((key) => `["${key}"]`));
  });

  const timeoutLater = Duration.seconds(Lazy.number({ produce: () => 60 }));
  const unknown = otherFunctions["an imported function"] as Make;
  test.each<[string, Make, number, Duration?]>([
    ["the function's own timeout", functionIn, 60],
    ["Lambda's default", (stack, id) => functionIn(stack, id, { timeout: Duration.seconds(3) }), 3],
    ["what the user states", versionOf, 300, Duration.minutes(5)],
    ["Lambda's limit for an imported one", unknown, 900],
    [
      "Lambda's limit for a timeout that is known at deployment only",
      (stack, id) => functionIn(stack, id, { timeout: timeoutLater }),
      900,
    ],
  ])("has its end waited for by %s", (_, make, seconds, timeout) => {
    const world = new JobWorld();
    const target = lockedLambda(make(world.stack, "Report"), timeout ? { timeout } : {});
    const { TimeoutSeconds, Retry } = runIn<Run>(world.templateOf({ target }));
    expect(String(TimeoutSeconds)).toContain(String(seconds + 60));
    expect(Retry[1]).toMatchObject({ IntervalSeconds: seconds + 60, BackoffRate: 2, MaxAttempts: 3 });
    expect(Retry[1]).not.toHaveProperty("JitterStrategy");
  });
});

test("a function that takes the lock itself can be an alias: its function has the settings, with which it is published anew", () => {
  const versions = ["orders", "invoices"].map((key) => {
    const world = new JobWorld();
    const fn = aliasOf(world.stack, "Close");
    const arn = world.stack.resolve(fn.functionArn);
    const template = world.templateOf({ target: lambda(fn), key });
    template.hasResourceProperties("AWS::Lambda::Function", {
      Environment: { Variables: Match.objectLike({ LEASEHOLD_KEY: key }) },
    });
    template.hasResourceProperties("AWS::Scheduler::Schedule", { Target: { Arn: arn } });
    const [invoke] = statementsIn(template).filter(({ Action }) => Action === "lambda:InvokeFunction");
    expect(invoke?.Resource).toEqual(arn);
    const asynchronous = { Qualifier: Match.not("$LATEST"), MaximumRetryAttempts: 2 };
    template.hasResourceProperties("AWS::Lambda::EventInvokeConfig", asynchronous);
    return Object.keys(template.findResources("AWS::Lambda::Version"));
  });
  expect(versions[0]).not.toEqual(versions[1]);
});
