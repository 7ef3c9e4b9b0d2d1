import { type Json, jsonata } from "./asl.ts";
import { attributeOf, type LeaseTerms } from "./lease-requests.ts";
import { assigning, leaseVariable, own } from "./reserved-names.ts";

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
  /** For how long it waits for the lock at most. */
  readonly waitMs: number;
  /** Whether it runs once for each scheduled time. */
  readonly once: boolean;
  /** The keeper's ARN; may be a token. */
  readonly keeperArn: string;
  /** The user's states. */
  readonly work: Json;
}

/**
 * Assigns the variable `lease`, a handle that every client can adopt; our own `fence`, which proves the lease beside
 * its token; and `cooldownUntil`, the end of the lock's cooldown.
 */
export function leaseOf(
  item: string,
  { tableName, leaseDurationMs, lockAtLeastForMs, once }: WorkflowTerms,
): Record<string, Json> {
  const text = (attribute: "token" | "owner"): string => attributeOf(item, attribute, "S");
  const number = (attribute: "version" | "fence" | "acquiredAt" | "expiresAt"): string =>
    attributeOf(item, attribute, "N");
  const cooldownUntil = jsonata(`${number("acquiredAt")} + ${lockAtLeastForMs}`);
  return {
    [leaseVariable]: {
      tableName,
      key: jsonata(own("key")),
      owner: jsonata(text("owner")),
      token: jsonata(text("token")),
      version: jsonata(number("version")),
      fencingToken: jsonata(number("fence")),
      acquiredAt: jsonata(number("acquiredAt")),
      expiresAt: jsonata(number("expiresAt")),
      leaseDurationMs,
      ...(lockAtLeastForMs > 0 ? { cooldownUntil } : {}),
      ...(once ? { slot: jsonata(own("slot")) } : {}),
    },
    ...assigning({
      fence: jsonata(number("fence")),
      ...(lockAtLeastForMs > 0 ? { cooldownUntil } : {}),
    }),
  };
}

/**
 * JSONata for the owner of a lease that a workflow has acquired, from its execution's ARN. The keeper uses it to
 * check that its lease protects that execution.
 */
export function ownerOfExecution(executionArn: string): string {
  return `'workflow:' & ${executionArn}`;
}
