import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { reportFolder } from "../../tools/packaging/api-report.ts";
import { allPrograms, writePrograms } from "../docs/programs.ts";
import { publicNames } from "../upgrades/public-names.ts";

const root = join(import.meta.dirname, "../..");

/** What examples take for granted, beside the names of our own packages. */
const preamble = `
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { subscribe } from "node:diagnostics_channel";
import { PutCommand, TransactWriteCommand, UpdateCommand, type DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { startApp } from "@leasehold/local";
import { type DurableContext, withDurableExecution } from "@aws/durable-execution-sdk-js";
import type { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import type { Metrics } from "@aws-lambda-powertools/metrics";
import { logMetrics } from "@aws-lambda-powertools/metrics/middleware";
import type { Tracer } from "@aws-lambda-powertools/tracer";
import { captureLambdaHandler } from "@aws-lambda-powertools/tracer/middleware";
import middy from "@middy/core";
import pino from "pino";
import { Duration, Stack } from "aws-cdk-lib";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { Rule } from "aws-cdk-lib/aws-events";
import { Queue } from "aws-cdk-lib/aws-sqs";
import type { Function as LambdaFunction, IFunction } from "aws-cdk-lib/aws-lambda";
import { NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import { Schedule, ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import type { Cluster, FargateTaskDefinition } from "aws-cdk-lib/aws-ecs";
import type { Chain, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { EcsFargateLaunchTarget } from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Context, ScheduledEvent, SQSHandler, SQSRecord } from "aws-lambda";
declare const documents: DynamoDBDocumentClient;
declare const cluster: Cluster;
declare const taskDefinition: FargateTaskDefinition;
declare const theirMachine: StateMachine;
declare const jobDefinitionArn: string;
declare const jobQueueArn: string;
declare const queue: { send(message: string): Promise<void> };
declare const message: string;
declare const orders: {
  unpaid(dueBefore: string): AsyncIterable<object>;
  closing(order: object): NonNullable<ConstructorParameters<typeof TransactWriteCommand>[0]["TransactItems"]>;
};
declare const shop: { isInStock(payload: unknown): boolean; ship(id: string, signal: AbortSignal): Promise<void> };
declare function listFiles(): Promise<string[]>;
declare function importFile(file: string, options: { signal: AbortSignal }): Promise<void>;
declare function askForQuote(orderId: string, options: { signal: AbortSignal }): Promise<number>;
declare function acceptQuote(quote: number, fencingToken: number): Promise<void>;
declare function importAll(options: { signal: AbortSignal }): Promise<void>;
declare function buildReport(options: { signal: AbortSignal }): Promise<number>;
declare function runReport(options: { signal: AbortSignal }): Promise<void>;
declare function render(): Promise<void>;
declare function rebuild(options: { signal: AbortSignal }): Promise<void>;
declare function printLabels(options: { signal: AbortSignal }): Promise<void>;
declare function refill(options: { signal: AbortSignal }): Promise<void>;
declare function test(name: string, run: (t: { skip(reason: string): void }) => Promise<void>): void;
declare function expect(value: unknown): { toBe(expected: unknown): void };
`;
/** What an example uses and does not make itself; `any` where examples differ in what they call by a name. */
const given = {
  client: "LeaseClient",
  admin: "LeaseAdmin",
  lease: "Lease",
  store: "MemoryLeaseStore",
  tableName: "string",
  stack: "Stack",
  table: "LeaseTable",
  worker: "LambdaFunction",
  approve: "LambdaFunction",
  wake: "LambdaFunction",
  closeFunction: "LambdaFunction",
  reportInPython: "IFunction",
  closeUnpaidOrders: "any",
  importStates: "Chain",
  fetchOrders: "Chain",
  storeOrders: "Chain",
  imports: "StateMachine",
  importing: "LeasedWorkflow",
  heartbeat: "LeaseHeartbeat",
  wakeup: "LeaseWakeup",
  oncall: "any",
  support: "any",
  job: "SingletonJob",
  arn: "string",
  definition: "any",
  app: "any",
  logger: "Logger",
  metrics: "Metrics",
  tracer: "Tracer",
};

/** By each name that users can import from our packages, its first entry. */
const entryOf = new Map<string, string>();
for (const file of globSync(`${reportFolder}/*.md`, { cwd: root }).sort()) {
  for (const named of publicNames(readFileSync(join(root, file), "utf8"))) {
    const [entry = "", name = ""] = named.split(" ");
    if (!name.includes(".") && !entryOf.has(name)) entryOf.set(name, entry);
  }
}

function importsOf(code: string): string {
  const others = [...preamble.matchAll(/[{,] (\w+)/g)].map(([, name = ""]) => name);
  const names = [...new Set(code.match(/\w+/g))].filter(
    (name) => entryOf.has(name) && !others.includes(name),
  );
  return names.map((name) => `import { ${name} } from "${entryOf.get(name)}";`).join("\n");
}

/** The TypeScript examples of a source file's docstrings, or of a page. */
function examplesIn(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8").replaceAll(/^ *\* ?/gm, "");
  return [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ""]) => code);
}

/** One example as a function of its own; what it does not make itself is given. */
function asModule(code: string): string {
  const body = code.replaceAll(/^import .*$/gm, "").replaceAll(/^export /gm, "");
  const parameters = Object.entries(given)
    .filter(([name]) => !new RegExp(`\\b(const|using) ${name}\\b`).test(code))
    .map(([name, type]) => `${name}: ${type}`);
  const example = `export async function example(this: Stack, ${parameters.join(", ")}): Promise<void> {\n${body}\n}\n`;
  return `${preamble}${importsOf(example)}\n${example}`;
}

it("every example of the docstrings and every program of the pages compiles", async () => {
  const files = globSync(["{packages,tools}/*/src/**/*.ts", "tools/*/README.md"], { cwd: root });
  const folder = mkdtempSync(join(root, "test/repository/examples-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  let count = 0;
  for (const file of files) {
    for (const [index, code] of examplesIn(file).entries()) {
      writeFileSync(join(folder, `${file.replaceAll(/\W/g, "_")}_${index}.ts`), asModule(code));
      count += 1;
    }
  }
  expect(count).toBeGreaterThan(20);
  writePrograms(folder, allPrograms());
  const config = {
    extends: "../../../tsconfig.json",
    compilerOptions: {
      noUnusedLocals: false,
      verbatimModuleSyntax: false,
      noUnusedParameters: false,
      allowJs: true,
      moduleDetection: "force",
    },
    include: ["*"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const compiled = promisify(execFile)(process.execPath, [compiler, "-p", folder], { cwd: root }).then(
    () => "",
    (error: { stdout?: string; message: string }) => error.stdout ?? error.message,
  );
  expect(await compiled).toBe("");
});
