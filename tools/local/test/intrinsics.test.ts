// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Fn::Sub is written that way.
import {
  type AppSpec,
  resolveApp,
  UnsupportedIntrinsicError,
  UnsupportedResourceError,
} from "@leasehold/local";
import { describe, expect, test } from "vitest";
import type { Json, RawStack, RawTemplate } from "../src/assembly/types.ts";

/** A stack with one output for each value. */
function stack(name: string, template: RawTemplate, assets: Record<string, string> = {}): RawStack {
  return { name, template, assets: new Map(Object.entries(assets)), paths: new Map() };
}

function resolved(...stacks: RawStack[]): AppSpec {
  return resolveApp({ directory: "/nowhere", stacks });
}

/** What a value comes out as in a template with a few of everything. */
function outcomeOf(value: Json): Json | undefined {
  const template: RawTemplate = {
    Parameters: {
      Stage: { Type: "String", Default: "test" },
      Zones: { Type: "CommaDelimitedList", Default: "a, b" },
      NoDefault: { Type: "String" },
    },
    Resources: {
      Leases: {
        Type: "AWS::DynamoDB::Table",
        Properties: {
          AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
          KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
        },
      },
      Jobs: { Type: "AWS::SQS::Queue", Properties: { QueueName: { "Fn::Sub": "${Stage}-jobs" } } },
      Role: { Type: "AWS::IAM::Role" },
      Vpc: { Type: "AWS::EC2::VPC" },
    },
    Outputs: { Out: { Value: value } },
  };
  const { outputs, ignored } = resolved(stack("S", template));
  if (ignored.includes("S.Out (output)")) throw new UnsupportedIntrinsicError("S.Out", "not resolved");
  return outputs["S.Out"];
}

describe("intrinsic functions", () => {
  test.each<[string, Json, Json]>([
    ["a pseudo parameter", { Ref: "AWS::Region" }, "us-east-1"],
    ["the account", { Ref: "AWS::AccountId" }, "123456789012"],
    ["the stack's name", { Ref: "AWS::StackName" }, "S"],
    ["a parameter's default", { Ref: "Stage" }, "test"],
    ["a list parameter", { Ref: "Zones" }, ["a", "b"]],
    ["a table", { Ref: "Leases" }, "S-Leases"],
    [
      "a table's ARN",
      { "Fn::GetAtt": ["Leases", "Arn"] },
      "arn:aws:dynamodb:us-east-1:123456789012:table/S-Leases",
    ],
    ["an attribute in dotted form", { "Fn::GetAtt": "Jobs.QueueName" }, "test-jobs"],
    [
      "a queue, which is its URL",
      { Ref: "Jobs" },
      "https://sqs.us-east-1.amazonaws.com/123456789012/test-jobs",
    ],
    [
      "a role's ARN, which has no region",
      { "Fn::GetAtt": ["Role", "Arn"] },
      "arn:aws:iam::123456789012:role/S-Role",
    ],
    ["join", { "Fn::Join": ["-", ["a", { Ref: "Stage" }, 3]] }, "a-test-3"],
    ["join of a list parameter", { "Fn::Join": ["+", { Ref: "Zones" }] }, "a+b"],
    [
      "sub",
      { "Fn::Sub": "${AWS::Partition}:${Leases}:${Leases.Arn}" },
      "aws:S-Leases:arn:aws:dynamodb:us-east-1:123456789012:table/S-Leases",
    ],
    [
      "sub with variables of its own",
      { "Fn::Sub": ["${Stage}/${Own}", { Own: { Ref: "AWS::Region" } }] },
      "test/us-east-1",
    ],
    ["sub leaves what is escaped", { "Fn::Sub": "${!Literal} ${Stage}" }, "${Literal} test"],
    ["select of split", { "Fn::Select": [1, { "Fn::Split": ["/", "a/b/c"] }] }, "b"],
    ["select by a text", { "Fn::Select": ["0", ["x", "y"]] }, "x"],
    [
      "no value, which leaves a member out",
      { a: 1, b: { Ref: "AWS::NoValue" }, c: [1, { Ref: "AWS::NoValue" }, 2] },
      { a: 1, c: [1, 2] },
    ],
    [
      "a policy's Condition, which is no function",
      { Condition: { StringEquals: 1 } },
      { Condition: { StringEquals: 1 } },
    ],
    ["an object that only begins like a function", { Ref: "Stage", Other: 1 }, { Ref: "Stage", Other: 1 }],
  ])("%s", (_what, value, expected) => {
    expect(outcomeOf(value)).toEqual(expected);
  });

  test.each<[string, Json]>([
    ["a name that nothing has", { Ref: "Nothing" }],
    ["a parameter without a default", { Ref: "NoDefault" }],
    ["an attribute that is not known", { "Fn::GetAtt": ["Vpc", "CidrBlock"] }],
    ["availability zones", { "Fn::GetAZs": "" }],
    ["a transform", { "Fn::Transform": { Name: "x" } }],
    ["a condition", { "Fn::If": ["Nowhere", 1, 2] }],
    ["an element that is not there", { "Fn::Select": [5, ["a"]] }],
    ["join of objects", { "Fn::Join": ["", [{ a: 1 }]] }],
  ])("%s has no value, and an output that needs it is noted", (_what, value) => {
    expect(() => outcomeOf(value)).toThrow(UnsupportedIntrinsicError);
  });

  test("a value that a function needs and nobody has is refused with its place", () => {
    const template: RawTemplate = {
      Resources: {
        Fn: {
          Type: "AWS::Lambda::Function",
          Properties: { Environment: { Variables: { ZONES: { "Fn::GetAZs": "" } } } },
        },
      },
    };
    expect(() => resolved(stack("S", template))).toThrow(/^S\/Fn\.Environment\.Variables\.ZONES: Fn::GetAZs/);
  });
});

describe("resources", () => {
  const functionOf = (
    properties: Record<string, Json>,
    assets: Record<string, string> = { "abc.zip": "/code" },
  ) =>
    resolved(
      stack(
        "S",
        {
          Resources: {
            Fn: {
              Type: "AWS::Lambda::Function",
              Properties: {
                Runtime: "nodejs24.x",
                Handler: "index.handler",
                Code: { S3Key: "abc.zip" },
                ...properties,
              },
            },
          },
        },
        assets,
      ),
    ).functions[0];

  test("a function has its asset's directory and Lambda's defaults", () => {
    expect(functionOf({})).toMatchObject({ codeDir: "/code", timeoutMs: 3000, memoryMb: 128, retries: 2 });
    expect(functionOf({})?.reservedConcurrency).toBeUndefined();
  });

  test("numbers may come as text, as CloudFormation takes them", () => {
    expect(functionOf({ Timeout: "30", ReservedConcurrentExecutions: "2" })).toMatchObject({
      timeoutMs: 30_000,
      reservedConcurrency: 2,
    });
  });

  test.each<[string, Record<string, Json>, RegExp]>([
    ["another runtime", { Runtime: "python3.13" }, /on Node\.js only, not on python3\.13/],
    ["an image", { PackageType: "Image" }, /container image/],
    ["a layer", { Layers: ["arn:aws:lambda:us-east-1:1:layer:x:1"] }, /layers/],
    ["code that is no asset", { Code: { S3Key: "other.zip" } }, /other\.zip is not among the assets/],
    ["a time-out that is no number", { Timeout: "soon" }, /Timeout must be a number/],
  ])("a function with %s is refused, and named", (_what, properties, problem) => {
    expect(() => functionOf(properties)).toThrow(UnsupportedResourceError);
    expect(() => functionOf(properties)).toThrow(problem);
    expect(() => functionOf(properties)).toThrow(/^S\/Fn: /);
  });

  test("what has no behaviour is left out, what is unknown is named, what would be missed is refused", () => {
    const template: RawTemplate = {
      Resources: {
        Role: { Type: "AWS::IAM::Role" },
        Alarm: { Type: "AWS::CloudWatch::Alarm" },
        Vpc: { Type: "AWS::EC2::VPC" },
      },
    };
    expect(resolved(stack("S", template)).ignored).toEqual(["S/Vpc (AWS::EC2::VPC)"]);
    const pipe: RawTemplate = { Resources: { Pipe: { Type: "AWS::Pipes::Pipe" } } };
    expect(() => resolved(stack("S", pipe))).toThrow("S/Pipe: AWS::Pipes::Pipe cannot be run here");
    const conditional: RawTemplate = {
      Resources: { Jobs: { Type: "AWS::SQS::Queue", Condition: "IsLive" } },
    };
    expect(() => resolved(stack("S", conditional))).toThrow("S/Jobs: conditions are not evaluated here");
  });

  test("a mapping from anything but a table's stream is refused", () => {
    const template: RawTemplate = {
      Resources: {
        Mapping: {
          Type: "AWS::Lambda::EventSourceMapping",
          Properties: {
            EventSourceArn: "arn:aws:sqs:us-east-1:1:jobs",
            FunctionName: "fn",
            StartingPosition: "LATEST",
          },
        },
      },
    };
    expect(() => resolved(stack("S", template))).toThrow(/only the stream of a table .* not arn:aws:sqs/);
  });

  test("an alias and a version lead to their function", () => {
    const template: RawTemplate = {
      Resources: {
        Version: { Type: "AWS::Lambda::Version", Properties: { FunctionName: "fn" } },
        Alias: { Type: "AWS::Lambda::Alias", Properties: { FunctionName: "fn", Name: "live" } },
      },
      Outputs: { Version: { Value: { Ref: "Version" } }, Alias: { Value: { Ref: "Alias" } } },
    };
    const { outputs } = resolved(stack("S", template));
    expect(outputs["S.Version"]).toBe("arn:aws:lambda:us-east-1:123456789012:function:fn:1");
    expect(outputs["S.Alias"]).toBe("arn:aws:lambda:us-east-1:123456789012:function:fn:live");
  });

  test("a definition has its substitutions filled in", () => {
    const template: RawTemplate = {
      Resources: {
        Machine: {
          Type: "AWS::StepFunctions::StateMachine",
          Properties: {
            Definition: { StartAt: "A", States: { A: { Type: "Task", Resource: "${Resource}" } } },
            DefinitionSubstitutions: {
              Resource: { "Fn::Sub": "arn:${AWS::Partition}:states:::lambda:invoke" },
            },
          },
        },
      },
    };
    const [machine] = resolved(stack("S", template)).stateMachines;
    expect(machine?.definition).toContain('"Resource":"arn:aws:states:::lambda:invoke"');
    expect(machine?.arn).toBe("arn:aws:states:us-east-1:123456789012:stateMachine:S-Machine");
  });
});
