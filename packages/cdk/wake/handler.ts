import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  CallbackTimeoutException,
  InvalidParameterValueException,
  LambdaClient,
  ResourceNotFoundException,
  SendDurableExecutionCallbackSuccessCommand,
} from "@aws-sdk/client-lambda";
import {
  InvalidToken,
  SendTaskSuccessCommand,
  SFNClient,
  TaskDoesNotExist,
  TaskTimedOut,
} from "@aws-sdk/client-sfn";
import { environmentNames } from "@leasehold/client/environment";
import type { Context, DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import { type ParkedWaiter, parkedWaiters } from "./parked-waiters.ts";
import { type WakeUp, type Waking, wakeWaiters } from "./waking.ts";

type Connections = Omit<Waking<ParkedWaiter>, "remainingMs">;

let connections: Connections | undefined;

/** An execution environment reads its settings and opens its connections once, at its first invocation. */
function connected(): Connections {
  if (connections !== undefined) return connections;
  const tableName = process.env[environmentNames.tableName];
  if (!tableName) throw new Error(`the environment variable ${environmentNames.tableName} is not set`);
  // An answer that takes seconds counts as lost, and the SDK tries again.
  const limits = { connectionTimeout: 1_000, throwOnRequestTimeout: true };
  const dynamodb = new DynamoDBClient({ requestHandler: { ...limits, requestTimeout: 2_000 } });
  const workflows = new SFNClient({ requestHandler: { ...limits, requestTimeout: 5_000 } });
  const functions = new LambdaClient({ requestHandler: { ...limits, requestTimeout: 5_000 } });
  connections = {
    waiters: parkedWaiters(dynamodb, tableName),
    wake: (waiter, key) =>
      "taskToken" in waiter
        ? sendWakeUp(workflows, waiter.taskToken, key)
        : completeCallback(functions, waiter.callbackId, key),
  };
  return connections;
}

/** Resumes one parked workflow. */
export function sendWakeUp(
  workflows: Pick<SFNClient, "send">,
  taskToken: string,
  key: string,
): Promise<WakeUp> {
  const command = new SendTaskSuccessCommand({ taskToken, output: JSON.stringify({ key }) });
  return wokenBy(workflows.send(command), [TaskDoesNotExist, TaskTimedOut, InvalidToken]);
}

/** Resumes one parked durable function. */
export function completeCallback(
  functions: Pick<LambdaClient, "send">,
  callbackId: string,
  key: string,
): Promise<WakeUp> {
  const Result = Buffer.from(JSON.stringify({ key }));
  const command = new SendDurableExecutionCallbackSuccessCommand({ CallbackId: callbackId, Result });
  const gone = [CallbackTimeoutException, InvalidParameterValueException, ResourceNotFoundException];
  return wokenBy(functions.send(command), gone);
}

/** False when the waiter's task or callback has ended or never existed, "denied" without the permission. */
async function wokenBy(
  sent: Promise<unknown>,
  gone: readonly (new (...given: never) => Error)[],
): Promise<WakeUp> {
  try {
    await sent;
    return true;
  } catch (error) {
    if (gone.some((Gone) => error instanceof Gone)) return false;
    if (error instanceof Error && error.name === "AccessDeniedException") return "denied";
    throw error;
  }
}

/**
 * Reads the lease table's stream (new and old images, ReportBatchItemFailures): for each lock that became free it wakes
 * the workflow or durable function that has waited longest.
 *
 * If it dies before the wake-up, the stream delivers the batch again. If it dies between the wake-up and the removal of
 * the waiter, the waiter's task or callback has ended by the next time. Then it removes the waiter, and wakes the next
 * in line if the lock is still free. If a wake-up is lost for good, the waiter resumes by its own timeout.
 */
export const handler = (
  event: DynamoDBStreamEvent,
  context: Pick<Context, "getRemainingTimeInMillis">,
): Promise<DynamoDBBatchResponse> =>
  wakeWaiters({ ...connected(), remainingMs: () => context.getRemainingTimeInMillis() }, event);
