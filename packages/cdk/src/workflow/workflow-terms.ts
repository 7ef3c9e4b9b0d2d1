import { call, catching, type Json, jsonata, type State } from "./asl.ts";
import { attributeOf, type LeaseTerms } from "./lease-requests.ts";
import { permitHandle, permitParts } from "./permit-records.ts";
import { assigning, leaseVariable, own, variablePrefix } from "./reserved-names.ts";

/** What a workflow does while another holder has the lock. */
export type WhenHeld = "fail" | "skip" | "wait" | "replace";

/** The parts of a leased workflow; durations in milliseconds. */
export interface WorkflowTerms extends LeaseTerms {
  /** JSONata for the lock's key. */
  readonly key: string;
  readonly leaseDurationMs: number;
  readonly clockSkewMs: number;
  readonly lockAtLeastForMs: number;
  readonly whenHeld: WhenHeld;
  /** The longest wait for the lock. */
  readonly waitMs: number;
  /** How many executions may have a permit of the semaphore at once. @default - the lock of that key */
  readonly permits?: number | undefined;
  /** Whether it runs once for each scheduled time. */
  readonly once: boolean;
  /** The keeper's ARN; may be a token. */
  readonly keeperArn: string;
  /** The user's states. */
  readonly work: Json;
}

/** The failure of an acquisition whose lease was ended before it was known here. */
export const endedTooSoon: Json = {
  Error: "LeaseLostError",
  Cause: "its lease had ended before its keeper was started, and no work was done",
};

/**
 * Assigns the variable `lease`, a handle that every client can adopt; our own `fence`, which proves the lease together
 * with its token; and `cooldownUntil`, the end of the lock's cooldown.
 */
export function leaseOf(
  item: string,
  { tableName, leaseDurationMs, lockAtLeastForMs, once, permits }: WorkflowTerms,
): Record<string, Json> {
  const parts = permits === undefined ? lockParts(item) : permitParts(item, { variablePrefix });
  const { owner, token, version, fence, acquiredAt, expiresAt } = parts;
  const cooldownUntil = jsonata(`${acquiredAt} + ${lockAtLeastForMs}`);
  return {
    [leaseVariable]: {
      tableName,
      key: jsonata(own("key")),
      owner: jsonata(owner),
      token: jsonata(token),
      version: jsonata(version),
      fencingToken: jsonata(fence),
      acquiredAt: jsonata(acquiredAt),
      expiresAt: jsonata(expiresAt),
      leaseDurationMs,
      ...(permits === undefined ? {} : permitHandle),
      ...(lockAtLeastForMs > 0 ? { cooldownUntil } : {}),
      ...(once ? { slot: jsonata(own("slot")) } : {}),
    },
    ...assigning({
      fence: jsonata(fence),
      ...(lockAtLeastForMs > 0 ? { cooldownUntil } : {}),
    }),
  };
}

/**
 * Ends a lease before a failure. The execution reports that failure, whatever the result of the release.
 *
 * @param answers what catches the errors that are answers
 */
export function letGo(request: Json, ...answers: readonly Json[]): State {
  return call("dynamodb:updateItem", {
    Arguments: request,
    Next: "Failed",
    Catch: [...answers, catching("States.ALL", "Failed")],
  });
}

function lockParts(item: string): ReturnType<typeof permitParts> {
  return {
    owner: attributeOf(item, "owner", "S"),
    token: attributeOf(item, "token", "S"),
    version: attributeOf(item, "version", "N"),
    fence: attributeOf(item, "fence", "N"),
    acquiredAt: attributeOf(item, "acquiredAt", "N"),
    expiresAt: attributeOf(item, "expiresAt", "N"),
  };
}

/**
 * JSONata for the owner of a lease that a workflow has acquired, from its execution's ARN. The keeper uses it to
 * check that its lease protects that execution.
 */
export function ownerOfExecution(executionArn: string): string {
  return `'workflow:' & ${executionArn}`;
}
