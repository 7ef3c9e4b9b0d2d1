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
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import type { Invocation } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { required } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { type ParkedWaiter, parkedWaiters } from "./parked-waiters.ts";
import { type Waking, wakeWaiters } from "./waking.ts";

const waking = once((): Omit<Waking<ParkedWaiter>, "remainingMs"> => {
  const requestHandler = { connectionTimeout: 1_000, requestTimeout: 5_000, throwOnRequestTimeout: true };
  const workflows = new SFNClient({ requestHandler });
  const functions = new LambdaClient({ requestHandler });
  const leases = leaseClient(dynamodb());
  return {
    waiters: parkedWaiters(dynamodb(), required(environmentNames.tableName)),
    inspect: (key) => leases.inspect(key),
    wake: (waiter, key) =>
      "taskToken" in waiter
        ? sendWakeUp(workflows, waiter.taskToken, key)
        : completeCallback(functions, waiter.callbackId, key),
  };
});

/** Lets one parked workflow go on; false when its task is over or was never there. */
export async function sendWakeUp(
  workflows: Pick<SFNClient, "send">,
  taskToken: string,
  key: string,
): Promise<boolean> {
  try {
    await workflows.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify({ key }) }));
    return true;
  } catch (error) {
    const isGone =
      error instanceof TaskDoesNotExist || error instanceof TaskTimedOut || error instanceof InvalidToken;
    if (isGone) return false;
    throw error;
  }
}

/** Lets one parked durable function go on; false when its callback is closed, has timed out or was never there. */
export async function completeCallback(
  functions: Pick<LambdaClient, "send">,
  callbackId: string,
  key: string,
): Promise<boolean> {
  try {
    const Result = Buffer.from(JSON.stringify({ key }));
    await functions.send(new SendDurableExecutionCallbackSuccessCommand({ CallbackId: callbackId, Result }));
    return true;
  } catch (error) {
    const isGone =
      error instanceof CallbackTimeoutException ||
      error instanceof InvalidParameterValueException ||
      error instanceof ResourceNotFoundException;
    if (isGone) return false;
    throw error;
  }
}

/**
 * Reads the lease table's stream (new and old images, ReportBatchItemFailures): for each lock that became free it wakes
 * the workflow or durable function that has waited longest.
 *
 * Dies before the wake-up: the stream brings the batch again. Between the wake-up and the removal of the waiter: the
 * next time the waiter's task or callback is over, so it is taken off, and the next in line is woken if the lock is still free. A
 * wake-up that is lost for good is made up for by the waiter's own timeout.
 */
export const handler = (event: DynamoDBStreamEvent, context: Invocation): Promise<DynamoDBBatchResponse> =>
  wakeWaiters({ ...waking(), remainingMs: () => context.getRemainingTimeInMillis() }, event);
