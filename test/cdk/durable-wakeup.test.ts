import { LeaseTable, LeaseWakeup } from "@leasehold/cdk";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import {
  Alias,
  Code,
  type FunctionProps,
  type IFunction,
  type IVersion,
  Function as LambdaFunction,
  Runtime,
} from "aws-cdk-lib/aws-lambda";
import { describe, expect, it } from "vitest";

function functionOf(stack: Stack, id: string, props: Partial<FunctionProps> = {}): LambdaFunction {
  return new LambdaFunction(stack, id, {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromInline("exports.handler = async () => undefined"),
    ...props,
  });
}

/** What the waking function may do for a durable function. */
function grantFor(given: (fn: LambdaFunction) => IFunction): unknown[] {
  const stack = new Stack(new App(), "Test");
  const table = new LeaseTable(stack, "Leases", { stream: true });
  const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionOf(stack, "Wake") });
  const durableConfig = { executionTimeout: Duration.days(30) };
  wakeup.serve(given(functionOf(stack, "Approve", { durableConfig })));
  const policies = Template.fromStack(stack).findResources("AWS::IAM::Policy", {
    Properties: { PolicyName: Match.stringLikeRegexp("^Wake") },
  });
  return Object.values(policies)
    .flatMap(
      ({ Properties }) => Properties.PolicyDocument.Statement as { readonly Action: string | string[] }[],
    )
    .filter(({ Action }) => [Action].flat().some((action) => action.startsWith("lambda:")));
}

const ofItsVersions = {
  Effect: "Allow",
  Action: "lambda:SendDurableExecutionCallbackSuccess",
  Resource: { "Fn::Join": ["", [{ "Fn::GetAtt": [expect.stringMatching(/^Approve/), "Arn"] }, ":*"]] },
};

describe("a wakeup that serves a durable function", () => {
  it("may complete the callbacks of that function's executions, and of no other one", () => {
    expect(grantFor((fn) => fn)).toEqual([ofItsVersions]);
  });

  it("takes a version or an alias for its function: an execution's ARN names the version", () => {
    // CDK's own classes miss its interfaces where optional properties are exact.
    const version = (fn: LambdaFunction): IVersion => fn.currentVersion as IVersion;
    expect(grantFor(version)).toEqual([ofItsVersions]);
    const alias = (fn: LambdaFunction): IFunction =>
      new Alias(fn.stack, "Live", { aliasName: "live", version: version(fn) }) as IFunction;
    expect(grantFor(alias)).toEqual([ofItsVersions]);
  });
});
