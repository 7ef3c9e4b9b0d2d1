import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import type { Engine } from "@leasehold/engine";
import { type LocalApp, startApp } from "@leasehold/local";
import { App, CfnOutput, Duration, Stack } from "aws-cdk-lib";
import { AttributeType, type ITable, StreamViewType, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import {
  Code,
  FilterCriteria,
  FilterRule,
  Function as LambdaFunction,
  Runtime,
  StartingPosition,
} from "aws-cdk-lib/aws-lambda";
import { SqsDestination } from "aws-cdk-lib/aws-lambda-destinations";
import { DynamoEventSource, SqsDlq } from "aws-cdk-lib/aws-lambda-event-sources";
import {
  ContextAttribute,
  Schedule,
  ScheduleExpression,
  ScheduleTargetInput,
} from "aws-cdk-lib/aws-scheduler";
import { LambdaInvoke, StepFunctionsStartExecution } from "aws-cdk-lib/aws-scheduler-targets";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { DefinitionBody, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { build } from "esbuild";
import { inject } from "vitest";
import { engineAt } from "../support/engine-at.ts";
import { patienceMs } from "../support/patience.ts";

/** The functions of the sample app, all in one bundle. */
const handlers = `
import { DeleteItemCommand, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import { DescribeExecutionCommand, SendTaskSuccessCommand, SFNClient, StartExecutionCommand } from "@aws-sdk/client-sfn";

const dynamodb = new DynamoDBClient({});
const sfn = new SFNClient({ maxAttempts: 1 });
const events = new EventBridgeClient({ maxAttempts: 1 });
const TableName = process.env.TABLE_NAME;

export async function echo(event, context) {
  console.log("echoing");
  return { event, tableName: TableName, greeting: process.env.GREETING, arn: context.invokedFunctionArn };
}

export async function store({ id, value }) {
  await dynamodb.send(new PutItemCommand({ TableName, Item: { pk: { S: id }, value: { S: value } } }));
  return { stored: id };
}

export async function changed({ Records }) {
  for (const record of Records) {
    const id = record.dynamodb.Keys.pk.S;
    if (id.startsWith("poison")) throw new Error("cannot take " + id);
    const Detail = JSON.stringify({ id, record });
    await events.send(new PutEventsCommand({ Entries: [{ Source: "sample", DetailType: record.eventName, Detail }] }));
  }
}

export async function start({ stateMachineArn, input, name }) {
  const { executionArn, startDate } = await sfn.send(
    new StartExecutionCommand({ stateMachineArn, input: JSON.stringify(input), name }),
  );
  const { status, input: seen } = await sfn.send(new DescribeExecutionCommand({ executionArn }));
  return { executionArn, isDate: startDate instanceof Date, status, seen };
}

export async function describe({ executionArn }) {
  try {
    await sfn.send(new DescribeExecutionCommand({ executionArn }));
  } catch (error) {
    return { name: error.name, message: error.message };
  }
}

export async function answer({ taskToken, output }) {
  await sfn.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output) }));
  return "answered";
}

export async function fail() {
  const error = new Error("no luck");
  error.name = "UnluckyError";
  throw error;
}

export async function measure() {
  console.log(JSON.stringify({
    _aws: { Timestamp: 5, CloudWatchMetrics: [{ Namespace: "Sample", Dimensions: [["Table"], ["Table", "Job"]], Metrics: [{ Name: "Runs", Unit: "Count" }] }] },
    Table: "t", Job: "j", Runs: 3,
  }));
}
`;

/** A synthesized app in a directory of its own. */
export interface SampleAssembly {
  readonly directory: string;
  remove(): void;
}

/** Synthesizes the sample app, without the CLI and without Docker. */
export async function synthesizeSample(): Promise<SampleAssembly> {
  const directory = mkdtempSync(join(tmpdir(), "leasehold-sample-"));
  const codeDir = join(directory, "code");
  mkdirSync(codeDir);
  await build({
    stdin: { contents: handlers, resolveDir: fileURLToPath(new URL("../..", import.meta.url)), loader: "js" },
    bundle: true,
    platform: "node",
    format: "cjs",
    outfile: join(codeDir, "index.js"),
  });
  const app = new App({ outdir: join(directory, "out"), analyticsReporting: false });
  new SampleStack(app, "Sample", codeDir);
  app.synth();
  return {
    directory: join(directory, "out"),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Every kind of resource that the local app runs. */
class SampleStack extends Stack {
  constructor(scope: App, id: string, codeDir: string) {
    super(scope, id);
    const failures = new Queue(this, "Failures");
    const items = new TableV2(this, "Items", {
      partitionKey: { name: "pk", type: AttributeType.STRING },
      timeToLiveAttribute: "ttl",
      dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES,
    });
    const code = Code.fromAsset(codeDir);
    const make = (name: string): LambdaFunction =>
      new LambdaFunction(this, name, {
        runtime: Runtime.NODEJS_24_X,
        handler: `index.${name.toLowerCase()}`,
        code,
        timeout: Duration.seconds(10),
        environment: { TABLE_NAME: items.tableName },
      });
    const echo = make("Echo");
    for (const name of ["Store", "Start", "Describe", "Measure"]) make(name);
    const answer = make("Answer");
    const fail = make("Fail");
    fail.configureAsyncInvoke({ retryAttempts: 0, onFailure: new SqsDestination(failures) });
    const changed = make("Changed");
    changed.addEventSource(
      // TableV2 and ITable disagree under exactOptionalPropertyTypes.
      new DynamoEventSource(items as unknown as ITable, {
        startingPosition: StartingPosition.TRIM_HORIZON,
        batchSize: 1,
        retryAttempts: 1,
        onFailure: new SqsDlq(failures),
        filters: [FilterCriteria.filter({ eventName: FilterRule.or("INSERT", "REMOVE") })],
      }),
    );
    new LambdaFunction(this, "Inline", {
      runtime: Runtime.NODEJS_24_X,
      handler: "index.handler",
      code: Code.fromInline("exports.handler = async (event) => ({ inline: event });"),
    });

    const machine = (name: string, states: object, startAt: string): StateMachine =>
      new StateMachine(this, name, {
        definitionBody: DefinitionBody.fromString(
          JSON.stringify({ QueryLanguage: "JSONata", StartAt: startAt, States: states }),
        ),
      });
    const child = machine(
      "Child",
      { Double: { Type: "Pass", Output: { doubled: "{% $states.input.n * 2 %}" }, End: true } },
      "Double",
    );
    const parent = machine("Parent", parentStates(items.tableName, echo, answer, fail, child), "Put");
    new Schedule(this, "EveryMinute", {
      schedule: ScheduleExpression.rate(Duration.minutes(1)),
      target: new LambdaInvoke(echo, {
        input: ScheduleTargetInput.fromObject({
          job: "sample",
          scheduledTime: ContextAttribute.scheduledTime,
          executionId: ContextAttribute.executionId,
        }),
      }),
    });
    new Schedule(this, "Nightly", {
      schedule: ScheduleExpression.cron({ minute: "0", hour: "3" }),
      enabled: false,
      target: new StepFunctionsStartExecution(child, { input: ScheduleTargetInput.fromObject({ n: 21 }) }),
    });
    echo.addEnvironment("GREETING", "world");
    new CfnOutput(this, "ItemsName", { value: items.tableName });
    new CfnOutput(this, "ParentArn", { value: parent.stateMachineArn });
  }
}

function parentStates(
  tableName: string,
  echo: LambdaFunction,
  answer: LambdaFunction,
  fail: LambdaFunction,
  child: StateMachine,
): object {
  const caught = (Next: string): object => ({
    Catch: [{ ErrorEquals: ["States.ALL"], Assign: { [Next]: "{% $states.errorOutput.Error %}" }, Next }],
  });
  const put = {
    TableName: tableName,
    Item: { pk: { S: "{% $states.context.Execution.Name %}" } },
    ConditionExpression: "attribute_not_exists(pk)",
  };
  return {
    Put: {
      Type: "Task",
      Resource: "arn:aws:states:::aws-sdk:dynamodb:putItem",
      Arguments: put,
      Next: "PutAgain",
    },
    PutAgain: {
      Type: "Task",
      Resource: "arn:aws:states:::aws-sdk:dynamodb:putItem",
      Arguments: put,
      ...caught("Invoke"),
      Next: "Invoke",
    },
    Invoke: {
      Type: "Task",
      Resource: "arn:aws:states:::lambda:invoke",
      Arguments: { FunctionName: echo.functionArn, Payload: { from: "parent" } },
      Assign: { echoed: "{% $states.result.Payload.event.from %}" },
      Next: "Failing",
    },
    Failing: {
      Type: "Task",
      Resource: "arn:aws:states:::lambda:invoke",
      Arguments: { FunctionName: fail.functionArn },
      ...caught("Sync"),
      Next: "Sync",
    },
    Sync: {
      Type: "Task",
      Resource: "arn:aws:states:::states:startExecution.sync:2",
      Arguments: { StateMachineArn: child.stateMachineArn, Input: { n: 4 } },
      Assign: { doubled: "{% $states.result.Output.doubled %}" },
      Next: "Missing",
    },
    Missing: {
      Type: "Task",
      Resource: "arn:aws:states:::aws-sdk:sfn:describeExecution",
      Arguments: { ExecutionArn: `${child.stateMachineArn.replace(":stateMachine:", ":execution:")}:nobody` },
      ...caught("Park"),
      Next: "Park",
    },
    Park: {
      Type: "Task",
      Resource: "arn:aws:states:::lambda:invoke.waitForTaskToken",
      Arguments: {
        FunctionName: answer.functionArn,
        Payload: { taskToken: "{% $states.context.Task.Token %}", output: { woken: true } },
      },
      Output: {
        second: "{% $Invoke %}",
        failed: "{% $Sync %}",
        missing: "{% $Park %}",
        echoed: "{% $echoed %}",
        doubled: "{% $doubled %}",
        woken: "{% $states.result.woken %}",
      },
      End: true,
    },
  };
}

/** An app of one stack, and a client of its table `Leases`, until the tests of the file are over. */
export async function startStack(
  build: (stack: Stack) => void,
  options: Omit<LeaseClientOptions, "tableName" | "dynamodb">,
): Promise<
  { readonly app: LocalApp; readonly client: LeaseClient; readonly directory: string } & AsyncDisposable
> {
  const resources = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "leasehold-app-"));
  resources.defer(() => rmSync(directory, { recursive: true, force: true }));
  const assemblyDir = join(directory, "out");
  const synthesized = new App({ outdir: assemblyDir, analyticsReporting: false });
  build(new Stack(synthesized, "Stack"));
  synthesized.synth();
  const engine = runEngine();
  const tableSuffix = `-${crypto.randomUUID().slice(0, 8)}`;
  const app = resources.use(await startApp({ assemblyDir, engine, tableSuffix }));
  const dynamodb = resources.adopt(new DynamoDBClient({ ...engine.clientConfig }), (one) => one.destroy());
  const client = new LeaseClient({ ...options, tableName: app.tableName("Leases/Resource"), dynamodb });
  return { app, client, directory, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** The engine of the run. */
export function runEngine(): Engine {
  const engine = inject("engine");
  return engineAt(engine.clientConfig, engine);
}

/** Waits until a condition holds; rejects when patience is over, with what it waited for. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
