import { TaskSet } from "@leasehold/jobs";
import { dynamodb } from "../support/dynamodb.ts";
import { wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { backoffVariable, claimVariable, mostAttemptsVariable, taskSetKey } from "./schema.ts";

const parts = once(() => ({
  leases: leaseClient(dynamodb()),
  maxAttempts: wholeNumber(mostAttemptsVariable, 3),
  /** So long the tasks of a worker that died stay claimed. */
  leaseDurationMs: wholeNumber(claimVariable, 30_000),
  backoff: { delayMs: wholeNumber(backoffVariable, 10_000) },
}));

/** Opens a set as the environment has it. */
export function taskSet(set: string): TaskSet {
  const { leases, ...options } = parts();
  return new TaskSet(leases, taskSetKey(set), options);
}
