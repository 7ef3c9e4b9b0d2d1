// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Fn::Sub is written that way.
import { describe, expect, test } from "vitest";
import { AssemblyError } from "../src/assembly/errors.ts";
import { resolveApp } from "../src/assembly/resolve.ts";
import type { AppSpec, Json, JsonObject, RawStack } from "../src/assembly/types.ts";

/** A stack with these resources. */
function stack(
  resources: Record<string, { Type: string; Condition?: string; Properties?: JsonObject }>,
  out: Json = null,
): RawStack {
  const template = { Resources: resources, Outputs: { Out: { Value: out } } };
  return { name: "S", template, assets: new Map([["abc.zip", "/code"]]), paths: new Map() };
}

function resolved(...stacks: RawStack[]): AppSpec {
  return resolveApp(stacks);
}

describe("intrinsic functions", () => {
  /** What a value comes out as in a template with a few of everything. */
  const outcomeOf = (value: Json): Json | undefined => {
    const resources = {
      Leases: {
        Type: "AWS::DynamoDB::Table",
        Properties: {
          AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
          KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
        },
      },
      Jobs: { Type: "AWS::SQS::Queue", Properties: { QueueName: { "Fn::Sub": "${AWS::Region}-jobs" } } },
      Version: { Type: "AWS::Lambda::Version", Properties: { FunctionName: "fn" } },
      Alias: { Type: "AWS::Lambda::Alias", Properties: { FunctionName: "fn", Name: "live" } },
      Role: { Type: "AWS::IAM::Role" },
    };
    return resolved(stack(resources, value)).outputs["S.Out"];
  };
  const tableArn = "arn:aws:dynamodb:us-east-1:123456789012:table/S-Leases";
  const functionArn = "arn:aws:lambda:us-east-1:123456789012:function:fn";

  test.each<[string, Json, Json]>([
    ["a pseudo parameter", { Ref: "AWS::Region" }, "us-east-1"],
    ["the account", { Ref: "AWS::AccountId" }, "123456789012"],
    ["a table", { Ref: "Leases" }, "S-Leases"],
    ["a table's ARN", { "Fn::GetAtt": ["Leases", "Arn"] }, tableArn],
    [
      "a queue, which is its URL",
      { Ref: "Jobs" },
      "https://sqs.us-east-1.amazonaws.com/123456789012/us-east-1-jobs",
    ],
    ["a version", { Ref: "Version" }, `${functionArn}:1`],
    ["an alias", { Ref: "Alias" }, `${functionArn}:live`],
    ["join", { "Fn::Join": ["-", ["a", { Ref: "AWS::Region" }, 3]] }, "a-us-east-1-3"],
    ["sub", { "Fn::Sub": "${AWS::Partition}:${Leases}:${Leases.Arn}" }, `aws:S-Leases:${tableArn}`],
    ["a Condition, which is no function", { Condition: { Equals: 1 } }, { Condition: { Equals: 1 } }],
    ["an object that only begins like a function", { Ref: "Leases", Other: 1 }, { Ref: "Leases", Other: 1 }],
  ])("%s", (_what, value, expected) => {
    expect(outcomeOf(value)).toEqual(expected);
  });

  test.each<[string, Json]>([
    ["a name that nothing has", { Ref: "Nothing" }],
    ["an attribute that is not known", { "Fn::GetAtt": ["Role", "RoleId"] }],
    ["a function that is not known", { "Fn::GetAZs": "" }],
    ["join of objects", { "Fn::Join": ["", [{ a: 1 }]] }],
  ])("%s has no value, and is refused with its place", (_what, value) => {
    expect(() => outcomeOf({ inner: [value] })).toThrow(AssemblyError);
    expect(() => outcomeOf({ inner: [value] })).toThrow(/^S\.Out: /);
  });
});

describe("resources", () => {
  const specOf = (Type: string, Properties: JsonObject): AppSpec =>
    resolved(stack({ Sample: { Type, Properties } }));
  const code = { Runtime: "nodejs24.x", Handler: "index.handler", Code: { S3Key: "abc.zip" } };
  const tableStream = { EventSourceArn: "arn:aws:sqs:us-east-1:1:jobs", FunctionName: "fn" };

  test("one that does nothing on one machine is left out", () => {
    expect(specOf("AWS::CloudWatch::Alarm", {}).functions).toEqual([]);
  });

  test("one that a condition decides on is refused, unless it does nothing here", () => {
    const onCondition = (Type: string) => (): AppSpec =>
      resolved(stack({ Sample: { Type, Condition: "IsProduction" } }));
    expect(onCondition("AWS::SQS::Queue")).toThrow(
      /^S\/Sample: the condition IsProduction is not judged here/,
    );
    expect(onCondition("AWS::CDK::Metadata")).not.toThrow();
  });

  test.each(["ENABLED", "DISABLED"])("a rule in the state %s starts what it would on AWS", (State) => {
    const EventPattern = { source: ["aws.states"] };
    const [rule] = specOf("AWS::Events::Rule", { State, EventPattern, Targets: [{ Arn: "arn" }] }).rules;
    expect(rule?.targets).toHaveLength(State === "ENABLED" ? 1 : 0);
  });

  test.each<[string, string, JsonObject, RegExp]>([
    ["of an unknown type", "AWS::Pipes::Pipe", {}, /AWS::Pipes::Pipe cannot be run here/],
    ["in another runtime", "AWS::Lambda::Function", { ...code, Runtime: "python3.13" }, /not on python3\.13/],
    ["with a layer", "AWS::Lambda::Function", { ...code, Layers: ["arn"] }, /Layers is not done here/],
    [
      "whose code is no asset",
      "AWS::Lambda::Function",
      { ...code, Code: { S3Key: "other.zip" } },
      /other\.zip is not among the assets/,
    ],
    ["that reads no table's stream", "AWS::Lambda::EventSourceMapping", tableStream, /not arn:aws:sqs/],
    ["with an index", "AWS::DynamoDB::Table", { GlobalSecondaryIndexes: [] }, /GlobalSecondaryIndexes/],
    ["that is a rule of the app's own events", "AWS::Events::Rule", { EventPattern: {} }, /aws\.states/],
    ["that is a rule with a schedule", "AWS::Events::Rule", { ScheduleExpression: "" }, /ScheduleExpression/],
  ])("one %s is refused, and named", (_what, type, properties, problem) => {
    expect(() => specOf(type, properties)).toThrow(AssemblyError);
    expect(() => specOf(type, properties)).toThrow(new RegExp(`^S/Sample: .*${problem.source}`));
  });
});
