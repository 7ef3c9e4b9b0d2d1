import { DescribeTableCommand, DescribeTimeToLiveCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type LocalApp, type LocalAppEvent, startApp, UnknownResourceError } from "@leasehold/local";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runEngine, type SampleAssembly, synthesizeSample, until } from "./local-app-fixture.ts";

const tableSuffix = `-${crypto.randomUUID().slice(0, 8)}`;
const events: LocalAppEvent[] = [];
let sample: SampleAssembly;
let app: LocalApp;
let dynamodb: DynamoDBClient;

beforeAll(async () => {
  sample = await synthesizeSample();
  const engine = runEngine();
  dynamodb = new DynamoDBClient({ ...engine.clientConfig });
  app = await startApp({
    assemblyDir: sample.directory,
    engine,
    tableSuffix,
    streamRetryDelayMs: 10,
    onEvent: (event) => events.push(event),
  });
});

afterAll(async () => {
  await app?.close();
  dynamodb?.destroy();
  sample?.remove();
});

const eventsOf = <Type extends LocalAppEvent["type"]>(type: Type): Extract<LocalAppEvent, { type: Type }>[] =>
  events.filter((event): event is Extract<LocalAppEvent, { type: Type }> => event.type === type);

describe("tables", () => {
  test("a table has the template's key, stream and ttl", async () => {
    const TableName = app.tableName("Items");
    const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName }));
    expect(TableName).toMatch(new RegExp(`^Sample-Items.*${tableSuffix}$`));
    expect(app.outputs["Sample.ItemsName"]).toBe(TableName);
    expect(Table?.KeySchema).toEqual([{ AttributeName: "pk", KeyType: "HASH" }]);
    expect(Table?.StreamSpecification?.StreamViewType).toBe("NEW_AND_OLD_IMAGES");
    const { TimeToLiveDescription } = await dynamodb.send(new DescribeTimeToLiveCommand({ TableName }));
    expect(TimeToLiveDescription).toMatchObject({ AttributeName: "ttl", TimeToLiveStatus: "ENABLED" });
  });
});

describe("functions", () => {
  test("a function runs its bundle with the template's environment", async () => {
    const { payload, functionError } = await app.invoke("Echo", { n: 1 });
    expect(functionError).toBeUndefined();
    expect(payload).toMatchObject({ event: { n: 1 }, tableName: app.tableName("Items"), greeting: "world" });
    expect((payload as { arn: string }).arn).toMatch(
      /^arn:aws:lambda:us-east-1:123456789012:function:Sample-Echo/,
    );
  });

  test("a function may be called by its physical name, its ARN and its construct path", async () => {
    const fn = app.spec.functions.find(({ path }) => path === "Sample/Echo");
    for (const id of [fn?.name, fn?.arn, fn?.logicalId, "Sample/Echo"]) {
      expect((await app.invoke(String(id), id)).payload).toMatchObject({ event: id });
    }
  });

  test("a name that nothing has is refused with the names that there are", () => {
    expect(() => app.invoke("Ecco")).toThrow(UnknownResourceError);
    expect(() => app.invoke("Ecco")).toThrow(/Sample\/Echo/);
  });

  test("inline code runs", async () => {
    expect((await app.invoke("Inline", 7)).payload).toEqual({ inline: 7 });
  });

  test("a function's own failure is an answer", async () => {
    const { payload, functionError } = await app.invoke("Fail");
    expect(functionError).toBe("Unhandled");
    expect(payload).toMatchObject({ errorType: "UnluckyError", errorMessage: "no luck" });
  });

  test("what a function prints comes as events, and its metrics as metrics", async () => {
    await app.invoke("Echo");
    await app.invoke("Measure");
    await until("the metric", () => eventsOf("metric").length > 0);
    expect(eventsOf("log").map(({ log }) => log.line)).toContain("echoing");
    expect(eventsOf("metric")[0]?.metric).toEqual({
      namespace: "Sample",
      name: "Runs",
      value: 3,
      dimensions: { Table: "t", Job: "j" },
    });
    expect(eventsOf("log").some(({ log }) => log.line.includes("_aws"))).toBe(false);
  });

  test("an event whose invocations all failed goes to the function's destination", async () => {
    app.invokeAsync("Fail", { try: "this" });
    await until("the record", () => app.messages("Failures").some(({ body }) => body.includes('"try"')));
    const record = app.messages("Failures").find(({ body }) => body.includes('"try"'));
    expect(JSON.parse(record?.body ?? "")).toMatchObject({
      requestPayload: { try: "this" },
      requestContext: { condition: "RetriesExhausted", approximateInvokeCount: 1 },
    });
  });

  test("a process can be killed, and the next invocation gets another", async () => {
    await app.invoke("Echo");
    const [before] = app.environments("Echo");
    await app.kill(String(before?.id));
    await app.invoke("Echo");
    const [after] = app.environments("Echo");
    expect(after?.pid).not.toBe(before?.pid);
  });
});

describe("services that functions call by the SDK", () => {
  test("a function starts an execution and describes it", async () => {
    const child = app.spec.stateMachines.find(({ path }) => path === "Sample/Child");
    const { payload } = await app.invoke("Start", {
      stateMachineArn: child?.arn,
      input: { n: 5 },
      name: "by-sdk",
    });
    expect(payload).toMatchObject({ isDate: true, seen: '{"n":5}' });
    const { executionArn } = payload as { executionArn: string };
    expect((await app.finished(executionArn)).output).toEqual({ doubled: 10 });
  });

  test("an error of Step Functions has its name", async () => {
    const executionArn = "arn:aws:states:us-east-1:123456789012:execution:Nothing:nobody";
    expect((await app.invoke("Describe", { executionArn })).payload).toMatchObject({
      name: "ExecutionDoesNotExist",
    });
  });
});

describe("streams", () => {
  test("a function's write reaches the function behind the stream, whose event is kept", async () => {
    expect((await app.invoke("Store", { id: "one", value: "x" })).payload).toEqual({ stored: "one" });
    await until("the event", () => app.events.some(({ detail }) => (detail as { id?: string }).id === "one"));
    const event = app.events.find(({ detail }) => (detail as { id?: string }).id === "one");
    const items = app.spec.tables.find(({ path }) => path === "Sample/Items");
    expect(event).toMatchObject({ source: "sample", detailType: "INSERT", eventBusName: "default" });
    expect((event?.detail as { record?: object } | undefined)?.record).toMatchObject({
      eventSource: "aws:dynamodb",
      awsRegion: "us-east-1",
      eventSourceARN: items?.streamArn,
      dynamodb: { Keys: { pk: { S: "one" } }, NewImage: { value: { S: "x" } } },
    });
  });

  test("records that cannot be taken go to the mapping's destination and hold nobody up", async () => {
    await app.invoke("Store", { id: "poison", value: "x" });
    await app.invoke("Store", { id: "two", value: "y" });
    await until("the event", () => app.events.some(({ detail }) => (detail as { id?: string }).id === "two"));
    const message = app.messages("Failures").find(({ body }) => body.includes("DDBStreamBatchInfo"));
    expect(JSON.parse(message?.body ?? "")).toMatchObject({
      requestContext: { condition: "RetryAttemptsExhausted" },
      DDBStreamBatchInfo: { batchSize: 1 },
    });
  });
});

describe("state machines", () => {
  test("a definition runs against the engine, the functions and the other state machines", async () => {
    const { executionArn } = app.startExecution("Parent", {}, "whole");
    const { status, output, cause } = await app.finished(executionArn);
    expect(cause).toBeUndefined();
    expect(status).toBe("SUCCEEDED");
    expect(output).toEqual({
      second: "DynamoDb.ConditionalCheckFailedException",
      failed: "UnluckyError",
      missing: "Sfn.ExecutionDoesNotExistException",
      echoed: "parent",
      doubled: 8,
      woken: true,
    });
    expect(app.executions("Parent")).toHaveLength(1);
  });
});

describe("schedules", () => {
  test("a schedule fired at will hands its function the time and an id", async () => {
    const scheduledTime = new Date("2026-11-21T10:00:00Z");
    const fired = await app.fire("EveryMinute", { scheduledTime });
    expect(JSON.parse(fired.input)).toEqual({
      job: "sample",
      scheduledTime: "2026-11-21T10:00:00Z",
      executionId: fired.executionId,
    });
  });

  test("a schedule starts an execution, also where it is disabled", async () => {
    const before = app.executions("Child").length;
    await app.fire("Nightly");
    const execution = app.executions("Child").at(-1);
    expect(app.executions("Child")).toHaveLength(before + 1);
    expect((await app.finished(String(execution?.executionArn))).output).toEqual({ doubled: 42 });
  });
});

describe("start", () => {
  test("a directory without an assembly is refused, and says what to do", async () => {
    const started = startApp({ assemblyDir: "/nowhere", engine: runEngine() });
    await expect(started).rejects.toThrow(/no cloud assembly in \/nowhere: synthesize the app first/);
  });

  test("variables win over the template's, and at the end the tables are gone", async () => {
    const other = await startApp({
      assemblyDir: sample.directory,
      engine: runEngine(),
      tableSuffix: `${tableSuffix}-b`,
      environment: { GREETING: "everybody" },
    });
    const TableName = other.tableName("Items");
    expect((await other.invoke("Echo")).payload).toMatchObject({
      greeting: "everybody",
      tableName: TableName,
    });
    await other.close();
    expect(() => other.invokeAsync("Echo")).toThrow(/closed/);
    await expect(dynamodb.send(new DescribeTableCommand({ TableName }))).rejects.toMatchObject({
      name: "ResourceNotFoundException",
    });
  });
});
