import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AppSpec, AssemblyError, readAssembly, resolveApp } from "@leasehold/local";
import { App, CfnOutput, Duration, Stack } from "aws-cdk-lib";
import { AttributeType, type ITable, StreamViewType, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { Code, Function as LambdaFunction, Runtime, StartingPosition } from "aws-cdk-lib/aws-lambda";
import { SqsDestination } from "aws-cdk-lib/aws-lambda-destinations";
import { DynamoEventSource } from "aws-cdk-lib/aws-lambda-event-sources";
import { Schedule, ScheduleExpression, ScheduleTargetInput } from "aws-cdk-lib/aws-scheduler";
import { LambdaInvoke } from "aws-cdk-lib/aws-scheduler-targets";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

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
      maxBatchingWindow: Duration.seconds(2),
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
        batchingWindowMs: 2000,
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

  test("nothing in it is unknown", () => {
    expect(spec.ignored).toEqual([]);
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
    await expect(read).rejects.toMatchObject({ code: "ASSEMBLY_INVALID" });
    await expect(read).rejects.toThrow(/S\.template\.json/);
  });

  test("that is not there is refused with the way out", async () => {
    await expect(readAssembly(join(directory, "nowhere"))).rejects.toThrow(/synthesize the app first/);
  });
});
