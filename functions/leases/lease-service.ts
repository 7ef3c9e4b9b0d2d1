import {
  type AcquireOptions,
  InvalidOptionsError,
  type Lease,
  type LeaseClient,
  type LeaseHandle,
  LeaseServiceError,
} from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { dynamodb } from "../support/dynamodb.ts";
import { once, optional } from "../support/environment.ts";
import { checkKeyPrefix, fieldsOf, flagIn } from "../support/input.ts";
import { handingOnClient } from "../support/leases.ts";

/** What the three lease functions work with. */
export interface LeaseService {
  /** Looks after every call; it remembers which holders it has seen, and so takes a dead one over sooner. */
  readonly leases: LeaseClient;
  /**
   * Makes a client that remembers nothing, for a caller that comes again under its own name. A client that remembers
   * would share the lease that it handed out last time, which may have been released elsewhere since.
   */
  readonly forgetful: () => LeaseClient;
  /** The keys that callers may touch all start with this. @default - every key of the table */
  readonly keyPrefix?: string | undefined;
}

/**
 * The input of {@link acquireLease}: the key, and those options of the client that are JSON and apply to a lease that
 * is handed on. There is no heartbeat, because nothing runs here after the answer.
 */
interface AcquireInput
  extends Pick<
    AcquireOptions,
    "owner" | "leaseDurationMs" | "waitMs" | "data" | "slot" | "lockAtLeastForMs" | "reentrant"
  > {
  readonly key: string;
}

const acquireFields: readonly (keyof AcquireInput)[] = [
  "key",
  "owner",
  "leaseDurationMs",
  "waitMs",
  "data",
  "slot",
  "lockAtLeastForMs",
  "reentrant",
];

/** What a function keeps of its time for the last request and for the answer. */
const reserveMs = 3_000;
/** What it keeps for the answer, should the service hang. */
const answerMs = 500;

/**
 * Acquires a lease and hands it to the caller.
 *
 * `waitMs` is cut to the time that the invocation has left, less 3 s. A longer wait would end in Lambda's own
 * timeout, which tells the caller nothing. The refusal then comes earlier than asked for, and says when to try again.
 *
 * Some callers are repeated: by a state machine's Retry, or as an asynchronous invocation. Such a caller gives
 * `reentrant: true` and an `owner`, an identity that no two callers share, such as its execution's ARN. It then takes
 * over the lease of its own earlier attempt whose answer was lost. Otherwise such a lease ends by itself after
 * `leaseDurationMs`, and no other caller gets the lock before.
 *
 * Rejects with InvalidOptionsError, KeyNotAllowedError (neither sends anything), LeaseUnavailableError,
 * SlotDoneError, LeaseServiceError, LeaseTableError, LeaseConfigurationError.
 */
export async function acquireLease(
  service: LeaseService,
  input: unknown,
  remainingMs: number,
): Promise<LeaseHandle> {
  const { key, ...options } = fieldsOf(input, acquireFields) as unknown as AcquireInput;
  if (options.reentrant === true && options.owner === undefined) {
    throw new InvalidOptionsError(
      "event.owner",
      undefined,
      "with reentrant, an identity that no two callers share",
    );
  }
  // A key that is no string is the client's to refuse.
  if (typeof key === "string") checkKeyPrefix(key, service.keyPrefix);
  const leases = options.reentrant === true ? service.forgetful() : service.leases;
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(noAnswer(key)), Math.max(0, remainingMs - answerMs));
  try {
    const lease = await leases.acquire(key, { ...withinTime(options, remainingMs), signal: cut.signal });
    return lease.toJSON();
  } finally {
    clearTimeout(timer);
  }
}

function noAnswer(key: string): LeaseServiceError {
  const text = `DynamoDB did not answer for the lock ${JSON.stringify(key)} within the invocation's time: try again`;
  return new LeaseServiceError("LEASE_NO_ANSWER", text);
}

/** A wait that is no number is the client's to refuse. */
function withinTime(options: AcquireOptions, remainingMs: number): AcquireOptions {
  const { waitMs } = options;
  const longestMs = Math.max(0, Math.floor(remainingMs - reserveMs));
  return typeof waitMs === "number" && waitMs > longestMs && Number.isSafeInteger(waitMs)
    ? { ...options, waitMs: longestMs }
    : options;
}

/**
 * Prolongs a lease by its duration, counted from now; gives its handle anew.
 *
 * An old handle will do: what counts is the token. Repeating it does no harm. Rejects with LeaseLostError, whose
 * `reason` says why, and with what {@link acquireLease} rejects with.
 */
export async function renewLease(service: LeaseService, input: unknown): Promise<LeaseHandle> {
  const lease = adoptFrom(service, fieldsOf(input, ["lease"]).lease);
  await lease.renew();
  return lease.toJSON();
}

/**
 * Lets a lock go; with `completed: true` it also records the lease's slot as done.
 *
 * Gives `released: false`, and changes nothing, where the lock was not this lease's any more. Repeating it gives the
 * same answer. Rejects with what {@link acquireLease} rejects with.
 */
export async function releaseLease(service: LeaseService, input: unknown): Promise<{ released: boolean }> {
  const fields = fieldsOf(input, ["lease", "completed"]);
  const completed = flagIn(fields, "completed");
  const lease = adoptFrom(service, fields.lease);
  return { released: await (completed ? lease.complete() : lease.release()) };
}

/** Takes a lease on. The client refuses handles that are malformed or from another table. */
function adoptFrom({ leases, keyPrefix }: LeaseService, handle: unknown): Lease {
  const lease = leases.adopt(handle as LeaseHandle);
  checkKeyPrefix(lease.key, keyPrefix);
  return lease;
}

/** The lease functions' service on the table and for the keys that the environment names. */
export const leaseService: () => LeaseService = once(() => {
  const forgetful = () => handingOnClient(dynamodb());
  return { leases: forgetful(), forgetful, keyPrefix: optional(environmentNames.keyPrefix) };
});
