// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Fn::Sub is written that way.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, CfnOutput, Stack } from "aws-cdk-lib";
import { AttributeType, type ITable, StreamViewType, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { Code, Function as LambdaFunction, Runtime, StartingPosition } from "aws-cdk-lib/aws-lambda";
import { SqsDestination } from "aws-cdk-lib/aws-lambda-destinations";
import { DynamoEventSource } from "aws-cdk-lib/aws-lambda-event-sources";
import { Schedule, ScheduleExpression, ScheduleTargetInput } from "aws-cdk-lib/aws-scheduler";
import { LambdaInvoke } from "aws-cdk-lib/aws-scheduler-targets";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  AssemblyError,
  UnsupportedIntrinsicError,
  UnsupportedResourceError,
} from "../src/assembly/errors.ts";
import { readAssembly } from "../src/assembly/read.ts";
import { resolveApp } from "../src/assembly/resolve.ts";
import type { AppSpec, Json, JsonObject, RawStack } from "../src/assembly/types.ts";

let directory: string;
let spec: AppSpec;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "leasehold-assembly-"));
  const codeDir = mkdtempSync(join(directory, "code-"));
  writeFileSync(join(codeDir, "index.mjs"), "export const handler = async (event) => event;");
  const app = new App({ outdir: join(directory, "out"), analyticsReporting: false });
  const stack = new Stack(app, "Main");
  const queue = new Queue(stack, "Dead");
  const table = new TableV2(stack, "Leases", {
    partitionKey: { name: "pk", type: AttributeType.STRING },
    sortKey: { name: "sk", type: AttributeType.STRING },
    timeToLiveAttribute: "ttl",
    dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES,
  });
  const fn = new LambdaFunction(stack, "Job", {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromAsset(codeDir),
    onFailure: new SqsDestination(queue),
    retryAttempts: 1,
    environment: { TABLE: table.tableName },
  });
  fn.addEventSource(
    // TableV2 and ITable disagree under exactOptionalPropertyTypes.
    new DynamoEventSource(table as unknown as ITable, {
      startingPosition: StartingPosition.LATEST,
      batchSize: 7,
      reportBatchItemFailures: true,
      filters: [{ pattern: '{"eventName":["REMOVE"]}' }],
    }),
  );
  new Schedule(stack, "Nightly", {
    schedule: ScheduleExpression.cron({ minute: "0", hour: "3" }),
    target: new LambdaInvoke(fn, {
      input: ScheduleTargetInput.fromObject({ a: 1 }),
    }),
  });
  new CfnOutput(stack, "Table", { value: table.tableName });
  app.synth();
  spec = resolveApp(await readAssembly(join(directory, "out")), { tableSuffix: "-x" });
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("a synthesized assembly", () => {
  test("its table has key, stream and ttl, and a name with the suffix", () => {
    const [table] = spec.tables;
    expect(table).toMatchObject({
      path: "Main/Leases",
      key: [
        { name: "pk", type: "HASH" },
        { name: "sk", type: "RANGE" },
      ],
      streamViewType: "NEW_AND_OLD_IMAGES",
      timeToLiveAttribute: "ttl",
    });
    expect(table?.name).toMatch(/^Main-Leases.*-x$/);
    expect(table?.streamArn).toContain(`table/${table?.name}/stream/`);
  });

  test("its function knows the table by that name, and its asset's directory", () => {
    const [fn] = spec.functions;
    expect(fn).toMatchObject({ path: "Main/Job", retries: 1, environment: { TABLE: spec.tables[0]?.name } });
    expect(fn?.codeDir).toMatch(/out\/asset\.[0-9a-f]{64}$/);
    expect(fn?.onFailureArn).toBe(spec.queues.find(({ path }) => path === "Main/Dead")?.arn);
  });

  test("its mapping connects the two", () => {
    expect(spec.streamMappings).toMatchObject([
      {
        tableName: spec.tables[0]?.name,
        functionName: spec.functions[0]?.name,
        streamArn: spec.tables[0]?.streamArn,
        batchSize: 7,
        startingPosition: "LATEST",
        reportsItemFailures: true,
        filters: [{ eventName: ["REMOVE"] }],
      },
    ]);
  });

  test("its schedule has expression, zone, target and input", () => {
    expect(spec.schedules).toMatchObject([
      {
        path: "Main/Nightly",
        expression: "cron(0 3 * * ? *)",
        timeZone: "Etc/UTC",
        enabled: true,
        targetArn: spec.functions[0]?.arn,
        input: '{"a":1}',
      },
    ]);
  });

  test("its output has the table's name", () => {
    expect(spec.outputs["Main.Table"]).toBe(spec.tables[0]?.name);
  });

  test("the same assembly gives the same names every time", async () => {
    const again = resolveApp(await readAssembly(join(directory, "out")), { tableSuffix: "-x" });
    expect(again).toEqual(spec);
  });
});

describe("a damaged assembly", () => {
  test("is refused with the file that cannot be read", async () => {
    const broken = mkdtempSync(join(directory, "broken-"));
    const artifact = { type: "aws:cloudformation:stack", properties: { templateFile: "S.template.json" } };
    writeFileSync(join(broken, "manifest.json"), JSON.stringify({ artifacts: { S: artifact } }));
    const read = readAssembly(broken);
    await expect(read).rejects.toThrow(AssemblyError);
    await expect(read).rejects.toThrow(/S\.template\.json/);
  });

  test("that is not there is refused with the way out", async () => {
    await expect(readAssembly(join(directory, "nowhere"))).rejects.toThrow(/synthesize the app first/);
  });
});

/** A stack with these resources. */
function stack(
  resources: Record<string, { Type: string; Condition?: string; Properties?: JsonObject }>,
  out: Json = null,
): RawStack {
  const template = { Resources: resources, Outputs: { Out: { Value: out } } };
  return { name: "S", template, assets: new Map([["abc.zip", "/code"]]), paths: new Map() };
}

function resolved(...stacks: RawStack[]): AppSpec {
  return resolveApp({ directory: "/nowhere", stacks });
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
    expect(() => outcomeOf(value)).toThrow(UnsupportedIntrinsicError);
    expect(() => outcomeOf({ inner: [value] })).toThrow(/^S\.Outputs\.Out\.inner\[0\]: /);
  });
});

describe("resources", () => {
  const specOf = (Type: string, Properties: JsonObject): AppSpec =>
    resolved(stack({ Sample: { Type, Properties } }));
  const code = { Runtime: "nodejs24.x", Handler: "index.handler", Code: { S3Key: "abc.zip" } };
  const tableStream = { EventSourceArn: "arn:aws:sqs:us-east-1:1:jobs", FunctionName: "fn" };

  test("a function has its asset's directory and Lambda's defaults", () => {
    const [fn] = specOf("AWS::Lambda::Function", code).functions;
    expect(fn).toMatchObject({ codeDir: "/code", timeoutMs: 3000, memoryMb: 128, retries: 2 });
    expect(fn?.reservedConcurrency).toBeUndefined();
  });

  test("a definition has its substitutions filled in", () => {
    const [machine] = specOf("AWS::StepFunctions::StateMachine", {
      DefinitionString: '{"Resource":"${Resource}"}',
      DefinitionSubstitutions: { Resource: { "Fn::Sub": "arn:${AWS::Partition}:states:::lambda:invoke" } },
    }).stateMachines;
    expect(machine?.definition).toBe('{"Resource":"arn:aws:states:::lambda:invoke"}');
    expect(machine?.arn).toBe("arn:aws:states:us-east-1:123456789012:stateMachine:S-Sample");
  });

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
    const [rule] = specOf("AWS::Events::Rule", { State, EventPattern: {}, Targets: [{ Arn: "arn" }] }).rules;
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
    ["that is a rule with a schedule", "AWS::Events::Rule", { ScheduleExpression: "" }, /ScheduleExpression/],
    ["that is a schedule with an end", "AWS::Scheduler::Schedule", { EndDate: "2026" }, /EndDate/],
  ])("one %s is refused, and named", (_what, type, properties, problem) => {
    expect(() => specOf(type, properties)).toThrow(UnsupportedResourceError);
    expect(() => specOf(type, properties)).toThrow(problem);
    expect(() => specOf(type, properties)).toThrow(/^S\/Sample: /);
  });
});
