// The service integrations of Task states. A resource that is not known here is refused by name.

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { functionNameOf } from "../assembly/resolve.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import type { ExecutionDescription } from "../state-machines/execution.ts";
import type { StateMachines } from "../state-machines/state-machines.ts";
import { callDynamoDB } from "./dynamodb.ts";
import { IntegrationError, ServiceError } from "./errors.ts";
import { camelCase, pascalCase, withIsoDates } from "./member-names.ts";
import type { Members, Operations } from "./operations.ts";

/** What a state machine's task may reach. */
export interface IntegrationPorts {
  readonly dynamodb: DynamoDBClient;
  readonly lambda: LambdaRuntime;
  readonly machines: StateMachines;
  readonly stepFunctions: Operations;
  readonly eventBridge: Operations;
}

/** Performs one task. */
export type Integration = (resource: string, args: unknown, signal: AbortSignal) => Promise<unknown>;

interface Resource {
  /** Whether it is an `aws-sdk:` integration, whose errors are spelt as in the SDK for Java. */
  readonly isSdk: boolean;
  readonly service: string;
  readonly action: string;
  readonly pattern: string | undefined;
}

const known = [
  "aws-sdk:dynamodb:*",
  "dynamodb:getItem, putItem, updateItem, deleteItem",
  "aws-sdk:sfn:startExecution, describeExecution, stopExecution, redriveExecution, sendTask*",
  "states:startExecution, .sync, .sync:2",
  "lambda:invoke",
  "events:putEvents",
  "aws-sdk:eventbridge:putEvents",
];

/**
 * Gives the function that performs the service integrations of Task states.
 *
 * Members are in PascalCase both ways, times are ISO texts, and errors carry the service's prefix
 * (`DynamoDb.ConditionalCheckFailedException`). With `.waitForTaskToken` the call is made, and the interpreter waits.
 *
 * It rejects with IntegrationError; `Local.UnsupportedResource` names a resource that is not known here.
 */
export function createIntegrations(ports: IntegrationPorts): Integration {
  return async (resource, args, signal) => {
    if (/^arn:[^:]+:lambda:/.test(resource)) {
      return (await invokeFunction(ports, { FunctionName: resource, Payload: args }, signal)).Payload;
    }
    const parsed = parseResource(resource);
    const request = membersOf(args);
    const route = `${parsed.service}:${parsed.action}`;
    switch (parsed.service) {
      case "dynamodb":
        return callDynamoDB(ports.dynamodb, parsed.action, request, {
          signal,
          errorPrefix: parsed.isSdk ? "DynamoDb" : "DynamoDB",
        });
      case "sfn":
        return withIsoDates(pascalCase(perform(ports.stepFunctions, parsed, camelCase(request), "Sfn")));
      case "eventbridge":
      case "events":
        return perform(ports.eventBridge, parsed, request, "EventBridge");
    }
    if (route === "lambda:invoke") return invokeFunction(ports, request, signal);
    if (route === "states:startExecution") return startExecution(ports, parsed, request, signal);
    return unsupported(resource);
  };
}

function parseResource(resource: string): Resource {
  const match = /^arn:[^:]+:states:::(aws-sdk:)?([a-z0-9]+):([A-Za-z]+)(?:\.(.+))?$/.exec(resource);
  if (match === null) return unsupported(resource);
  const [, sdk, service = "", action = "", pattern] = match;
  return { isSdk: sdk !== undefined, service, action, pattern };
}

function unsupported(resource: string): never {
  const text = `${resource} is not done here; known are ${known.join("; ")}`;
  throw new IntegrationError("Local.UnsupportedResource", text);
}

function perform(
  operations: Operations,
  { isSdk, action }: Resource,
  request: Members,
  prefix: string,
): Members {
  const name = action.charAt(0).toUpperCase() + action.slice(1);
  const operation = operations[name];
  if (operation === undefined) {
    const names = Object.keys(operations).join(", ");
    throw new IntegrationError("Local.UnsupportedResource", `${prefix} has no ${name} here, only ${names}`);
  }
  try {
    return operation(request);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new IntegrationError(`${prefix}.${isSdk ? javaName(error.name) : error.name}`, error.message);
  }
}

/** The SDK for Java, which Step Functions uses, ends every error's name alike. */
function javaName(name: string): string {
  return name.endsWith("Exception") ? name : `${name}Exception`;
}

async function invokeFunction(
  ports: IntegrationPorts,
  request: Members,
  signal: AbortSignal,
): Promise<Members> {
  const { FunctionName, Payload, InvocationType } = request;
  const name = functionNameOf(String(FunctionName));
  try {
    if (InvocationType === "Event") {
      ports.lambda.invokeAsync(name, Payload);
      return { StatusCode: 202, Payload: {} };
    }
    const answer = await ports.lambda.invoke(name, Payload, { signal });
    if (answer.functionError !== undefined) throw functionFailed(answer.payload);
    return { ExecutedVersion: "$LATEST", Payload: answer.payload, StatusCode: 200 };
  } catch (error) {
    if (error instanceof IntegrationError || signal.aborted) throw error;
    const { name: errorName, message } = error instanceof Error ? error : new Error(String(error));
    throw new IntegrationError(`Lambda.${errorName}`, message);
  }
}

function functionFailed(payload: unknown): IntegrationError {
  const type = (payload as { errorType?: unknown } | null | undefined)?.errorType;
  return new IntegrationError(typeof type === "string" ? type : "Lambda.Unknown", JSON.stringify(payload));
}

async function startExecution(
  ports: IntegrationPorts,
  resource: Resource,
  request: Members,
  signal: AbortSignal,
): Promise<unknown> {
  const action = { ...resource, isSdk: true };
  const started = perform(ports.stepFunctions, action, camelCase(request), "StepFunctions");
  if (!resource.pattern?.startsWith("sync")) return withIsoDates(pascalCase(started));
  const executionArn = String(started.executionArn);
  // Step Functions stops the child of a task that has ended without it.
  const stop = (): void => void ports.machines.stop(executionArn, {});
  signal.addEventListener("abort", stop, { once: true });
  const child = await ports.machines.finished(executionArn);
  signal.removeEventListener("abort", stop);
  const described = syncAnswer(child, resource.pattern === "sync:2");
  if (child.status === "SUCCEEDED") return described;
  throw new IntegrationError("States.TaskFailed", JSON.stringify(described));
}

/** `.sync:2` gives the output as a value, `.sync` as text. Times are numbers here, unlike everywhere else. */
function syncAnswer(
  { input, output, startDate, stopDate, redriveDate, ...rest }: ExecutionDescription,
  asValues: boolean,
): unknown {
  const form = (value: unknown): unknown => (asValues ? value : JSON.stringify(value));
  return pascalCase({
    ...rest,
    input: form(input),
    inputDetails: { Included: true },
    ...(output === undefined ? {} : { output: form(output), outputDetails: { Included: true } }),
    startDate: Date.parse(startDate),
    ...(stopDate === undefined ? {} : { stopDate: Date.parse(stopDate) }),
    ...(redriveDate === undefined ? {} : { redriveDate: Date.parse(redriveDate) }),
  });
}

function membersOf(args: unknown): Members {
  return typeof args === "object" && args !== null && !Array.isArray(args) ? (args as Members) : {};
}
