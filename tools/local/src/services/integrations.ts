// The service integrations of Task states. A resource that is not known here is refused by name.

import * as sdk from "@aws-sdk/client-dynamodb";
import { functionNameOf } from "../assembly/resolve.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { StatesError } from "../state-machines/errors.ts";
import { described } from "../state-machines/events.ts";
import type { StateMachines } from "../state-machines/state-machines.ts";
import type { Members, Operations } from "./operations.ts";

/** What a state machine's task may reach. */
export interface IntegrationPorts {
  readonly dynamodb: sdk.DynamoDBClient;
  readonly lambda: LambdaRuntime;
  readonly machines: StateMachines;
  readonly stepFunctions: Operations;
}

/** Performs one task. */
export type Integration = (resource: string, args: unknown, signal: AbortSignal) => Promise<unknown>;

const known = [
  "aws-sdk:dynamodb:*",
  "dynamodb:getItem, putItem, updateItem, deleteItem",
  "aws-sdk:sfn:startExecution, describeExecution, stopExecution, sendTask*",
  "states:startExecution.sync:2",
  "lambda:invoke",
];

/**
 * Gives the function that performs the service integrations of Task states.
 *
 * Members are in PascalCase both ways, times are ISO texts, and errors carry the service's prefix
 * (`DynamoDb.ConditionalCheckFailedException`). With `.waitForTaskToken` the call is made, and the interpreter waits.
 *
 * It rejects with StatesError; `Local.UnsupportedResource` names a resource that is not known here.
 */
export function createIntegrations(ports: IntegrationPorts): Integration {
  return async (resource, args, signal) => {
    const request = args as Members;
    const [, isSdk, service = "", action = "", pattern] =
      /^arn:[^:]+:states:::(aws-sdk:)?([a-z0-9]+):([A-Za-z]+)(?:\.(.+))?$/.exec(resource) ?? [];
    switch (service) {
      case "dynamodb": {
        const errorPrefix = isSdk === undefined ? "DynamoDB" : "DynamoDb";
        return callDynamoDB(ports.dynamodb, action, request, { signal, errorPrefix });
      }
      case "sfn":
        return callStepFunctions(ports.stepFunctions, action, request);
    }
    if (service === "lambda" && action === "invoke") return invokeFunction(ports, request, signal);
    if (service === "states" && pattern === "sync:2") return runExecution(ports, request, signal);
    const text = `${resource} is not done here; known are ${known.join("; ")}`;
    throw new StatesError("Local.UnsupportedResource", text);
  };
}

/** Performs an operation of Step Functions, such as `startExecution`, at once. */
export function callStepFunctions(operations: Operations, action: string, request: Members): unknown {
  return withIsoDates(pascalCase(perform(operations, action, camelCase(request), "Sfn")));
}

function perform(operations: Operations, action: string, request: Members, prefix: string): Members {
  const name = capitalized(action);
  const operation = operations[name];
  if (operation === undefined) {
    const names = Object.keys(operations).join(", ");
    throw new StatesError("Local.UnsupportedResource", `${prefix} has no ${name} here, only ${names}`);
  }
  try {
    return operation(request);
  } catch (thrown) {
    if (!(thrown instanceof StatesError)) throw thrown;
    const { error, cause } = thrown;
    // The SDK for Java, which Step Functions uses, ends every error's name alike.
    throw new StatesError(`${prefix}.${error.endsWith("Exception") ? error : `${error}Exception`}`, cause);
  }
}

const commands = sdk as unknown as Readonly<
  Record<string, (new (input: unknown) => Parameters<sdk.DynamoDBClient["send"]>[0]) | undefined>
>;

/** Performs any operation of DynamoDB by its SDK; its members have the SDK's names already. */
async function callDynamoDB(
  client: sdk.DynamoDBClient,
  action: string,
  request: Members,
  { signal, errorPrefix }: { readonly signal: AbortSignal; readonly errorPrefix: string },
): Promise<unknown> {
  const Command = commands[`${capitalized(action)}Command`];
  if (Command === undefined) {
    throw new StatesError("Local.UnsupportedResource", `DynamoDB has no operation ${action}`);
  }
  try {
    const { $metadata: _, ...answer } = await client.send(new Command(request), { abortSignal: signal });
    return withIsoDates(answer);
  } catch (error) {
    if (signal.aborted) throw error;
    if (!(error instanceof sdk.DynamoDBServiceException)) {
      throw new StatesError(`${errorPrefix}.SdkClientException`, messageOf(error));
    }
    const { httpStatusCode = 400, requestId = "unknown" } = error.$metadata;
    const details = `(Service: DynamoDb, Status Code: ${httpStatusCode}, Request ID: ${requestId})`;
    throw new StatesError(`${errorPrefix}.${error.name}`, `${error.message} ${details}`);
  }
}

async function invokeFunction(
  { lambda }: IntegrationPorts,
  { FunctionName, Payload }: Members,
  signal: AbortSignal,
): Promise<Members> {
  const answer = await lambda
    .invoke(functionNameOf(String(FunctionName)), Payload, { signal })
    .catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new StatesError(`Lambda.${error instanceof Error ? error.name : "Error"}`, messageOf(error));
    });
  const { payload } = answer;
  if (answer.functionError === undefined) {
    return { ExecutedVersion: "$LATEST", Payload: payload, StatusCode: 200 };
  }
  const type = (payload as { errorType?: unknown } | null | undefined)?.errorType;
  throw new StatesError(typeof type === "string" ? type : "Lambda.Unknown", JSON.stringify(payload));
}

/** Starts an execution, waits for its end, and gives its output as a value. Times are numbers here, unlike everywhere else. */
async function runExecution(
  { stepFunctions, machines }: IntegrationPorts,
  request: Members,
  signal: AbortSignal,
): Promise<unknown> {
  const started = perform(stepFunctions, "startExecution", camelCase(request), "StepFunctions");
  const executionArn = String(started.executionArn);
  // Step Functions stops the child of a task that has ended without it.
  const stop = (): void => void machines.stop(executionArn);
  signal.addEventListener("abort", stop, { once: true });
  const child = await machines.finished(executionArn);
  signal.removeEventListener("abort", stop);
  const { status, input, output } = child;
  const answer = pascalCase({ ...described(child, Date.parse), input, output });
  if (status === "SUCCEEDED") return answer;
  throw new StatesError("States.TaskFailed", JSON.stringify(answer));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Spells the members with a small first letter, as the Step Functions API has them. Values stay as they are. */
function camelCase(members: Members): Members {
  return mapNames(members, (name) => name.charAt(0).toLowerCase() + name.slice(1));
}

/** Spells the members with a capital first letter, as a state machine has them. Values stay as they are. */
function pascalCase(members: Members): Members {
  return mapNames(members, capitalized);
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function mapNames(members: Members, spell: (name: string) => string): Members {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [spell(name), value]));
}

/** Writes times as ISO texts, and drops what JSON cannot carry. */
function withIsoDates(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
