import { TaskSet } from "@leasehold/jobs";
import { dynamodb } from "../support/dynamodb.ts";
import { wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { backoffVariable, claimVariable, mostAttemptsVariable, taskSetKey } from "./schema.ts";

const parts = once(() => ({
  leases: leaseClient(dynamodb()),
  maxAttempts: wholeNumber(mostAttemptsVariable, 3),
  /** How long the tasks of a dead worker are claimed. */
  leaseDurationMs: wholeNumber(claimVariable, 30_000),
  backoff: { delayMs: wholeNumber(backoffVariable, 10_000) },
}));

/** Opens a set with the settings of the environment. */
export function taskSet(set: string): TaskSet {
  const { leases, ...options } = parts();
  return new TaskSet(leases, taskSetKey(set), options);
}
