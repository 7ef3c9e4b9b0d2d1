/**
 * Turns the SDK's and the service's errors into errors of this package. A mistake in the program stays as it is: it is
 * no failure of the service, and every repetition would fail again.
 */
import {
  LeaseConfigurationError,
  LeaseError,
  type LeaseErrorCode,
  type LeaseErrorProperties,
  LeaseItemError,
  LeaseServiceError,
  LeaseTableError,
  quoted,
  saying,
} from "../errors/errors.ts";
import { isMistake } from "../errors/operational.ts";
import type { DynamoDBSender } from "../options/options.ts";
import type { UpdateRequest } from "../store.ts";
import { fateOf } from "./attempt-fate.ts";
import { locationOf } from "./location.ts";

/** The parts by which the SDK's errors are distinguished. */
interface SdkError {
  readonly name?: string | undefined;
  readonly message?: string | undefined;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

const throttling =
  /^((ProvisionedThroughput|RequestLimit)Exceeded|Thrott(ling|led)|TooManyRequests)(Exception|Error)? |^\S* 429:/;
const conflictErrors = /^(Transaction(Conflict|Canceled|InProgress)|ReplicatedWriteConflict)Exception\b/;
const batchRefusals = /^(AccessDenied|UnknownOperation|Validation)(Exception|Error)?$/;

/** Whether an error says that the service has too many requests at the moment. */
export function isThrottling(error: unknown): boolean {
  return throttling.test(signOf(error));
}

/**
 * Whether a write has met another write of the same item: a transaction, its own repetition, or another region's write.
 *
 * A transaction that was cancelled for a condition is no conflict: it would be refused again.
 */
export function isConflict(error: unknown): boolean {
  const { name = "", CancellationReasons: reasons } = error as SdkError;
  return conflictErrors.test(name) && !reasons?.some(({ Code }) => Code === "ConditionalCheckFailed");
}

/** Whether an error's code says that the service, or a policy, does not accept writes in batches. */
export function isBatchRefusal(code: string | undefined): boolean {
  return batchRefusals.test(code ?? "");
}

/** The table of a call, and the client that sends to it. */
export interface AskedTable {
  readonly tableName: string;
  readonly dynamodb: DynamoDBSender;
}

/** What a call's attempts on the wire have shown; by default one attempt, which failed with that error. */
export interface Attempts {
  /** Whether an attempt may have landed, or may still land. */
  readonly mayHaveLanded: boolean;
  /** The error of the last failed attempt. */
  readonly lastError: unknown;
}

/**
 * Returns the error that a call rejects with: an error of this package. One that is such an error already, or a mistake
 * in the program, stays as it is.
 *
 * If a call was aborted while it waited to try again, its cause is the error of its last attempt. Whether it may have
 * landed depends on all of its attempts.
 */
export async function rejectionFor(
  error: unknown,
  { tableName, dynamodb }: AskedTable,
  signal: AbortSignal,
  attempts: Attempts = { mayHaveLanded: fateOf(error) === "sent", lastError: undefined },
): Promise<unknown> {
  if (error instanceof LeaseError || isMistake(error)) return error;
  const cause = signal.aborted ? attempts.lastError : error;
  const { mayHaveLanded } = attempts;
  // The SDK reports an aborted request as a failed one.
  if (cause === undefined || (signal.aborted && (cause as SdkError).name === "AbortError")) {
    const text = `the table ${quoted(tableName)} ${silence} (${saying(signal.reason)})`;
    return new LeaseServiceError("LEASE_NO_ANSWER", text, { cause: error, tableName, mayHaveLanded });
  }
  const hasAnswer = (cause as SdkError).$metadata?.httpStatusCode !== undefined;
  const location = hasAnswer ? ` ${await locationOf(dynamodb)}` : "";
  return failureOf(cause, `the table ${quoted(tableName)}${location}`, { cause, tableName, mayHaveLanded });
}

/**
 * Returns an error that names the item if DynamoDB refused to count up an attribute that is no number; undefined for
 * every other error.
 */
export function toItemError(error: unknown, { key, update }: UpdateRequest): LeaseItemError | undefined {
  const { name, message = "" } = error as SdkError;
  if (name !== "ValidationException" || !/incorrect data type/i.test(message)) return undefined;
  const counted = [...update.matchAll(/#(\w+) = (?:if_not_exists\([^)]*\)|#\w+) [+-] /g)].map(
    ([, attribute]) => attribute,
  );
  const address = { key: key.pk, sortKey: key.sk };
  return new LeaseItemError(address, counted.join(" or "), "is not a number", "a number (N)");
}

/**
 * Turns a batch's error of one statement into the error of its write; undefined if a separate write would say more, or
 * could succeed at once.
 */
export function statementError(
  error: { readonly Code?: string | undefined; readonly Message?: string | undefined } | undefined,
  tableName: string,
): LeaseError | undefined {
  const said = { name: error?.Code, message: error?.Message };
  const failure = failureOf(said, `the table ${quoted(tableName)}`, {});
  return failure.code === "LEASE_THROTTLED" || failure.code === "LEASE_SERVICE_FAILED" ? failure : undefined;
}

/** Creates an error of this package; its message begins with `table`. */
function failureOf(said: unknown, table: string, properties: LeaseErrorProperties): LeaseError {
  const { name = "", message = String(said) } = said as SdkError;
  const sign = signOf(said);
  const [, type, code, finding] = failures.find(([pattern]) => pattern.test(sign)) ?? rejection;
  return new type(code as never, `${table} ${finding} (${name}: ${message})`, properties);
}

/** An error's name, status and message, which distinguish the kinds of failure. */
function signOf(said: unknown): string {
  const { name = "", message = String(said), $metadata } = said as SdkError;
  return `${name} ${$metadata?.httpStatusCode ?? 0}: ${message}`;
}

/** A kind of failure: its sign, class and code, what the table did or what is wrong with it, and what to do. */
type Failure = readonly [
  /** Matches an error's name, status (0 without an answer) and message, as `ThrottlingException 400: slow down`. */
  sign: RegExp,
  type: new (code: never, message: string, properties: LeaseErrorProperties) => LeaseError,
  code: LeaseErrorCode,
  finding: string,
];

const silence = "gave no answer: check the endpoint and the network, or try again later";

const rejection: Failure = [/./, LeaseServiceError, "LEASE_REQUEST_REJECTED", "rejected the request"];

/** The first match counts. The statements of a batch name errors without "Exception", or with "Error". */
const failures: readonly Failure[] = [
  [
    /^ResourceNotFoundException /,
    LeaseTableError,
    "LEASE_TABLE_NOT_FOUND",
    "does not exist: check the region and the account, deploy the table, or call createLeaseTable()",
  ],
  [
    /^ValidationException .*(\bkeys?\b|schema)/is,
    LeaseTableError,
    "LEASE_TABLE_MISMATCH",
    "is no lease table, whose key is pk (S) and sk (S): give another name",
  ],
  [
    /^CredentialsProviderError /,
    LeaseConfigurationError,
    "LEASE_CREDENTIALS_MISSING",
    "needs AWS credentials: set them in the environment or a profile, or pass dynamodb",
  ],
  [
    /region is missing|region not accepted/i,
    LeaseConfigurationError,
    "LEASE_REGION_MISSING",
    "needs an AWS region: set AWS_REGION, or pass dynamodb with a region",
  ],
  [
    /^(AccessDenied|ExpiredToken|(Incomplete|Invalid)Signature|MissingAuthenticationToken|UnrecognizedClient)Exception /,
    LeaseConfigurationError,
    "LEASE_ACCESS_DENIED",
    "refused access: check credentials and grants",
  ],
  [throttling, LeaseServiceError, "LEASE_THROTTLED", "throttled the request: try again later"],
  [
    conflictErrors,
    LeaseServiceError,
    "LEASE_CONFLICT",
    "had another write of the same item under way: try again later",
  ],
  [
    /^InternalServerError |^\S* 5\d\d:/,
    LeaseServiceError,
    "LEASE_SERVICE_FAILED",
    "failed to serve the request: try again later",
  ],
  [/^TimeoutError |^\S* 0:/, LeaseServiceError, "LEASE_NO_ANSWER", silence],
  // An unreadable success: a write may have landed.
  [
    /^\S* 2\d\d:/,
    LeaseServiceError,
    "LEASE_NO_ANSWER",
    "gave an answer that cannot be read: check the endpoint and proxies, or try again later",
  ],
  // A refusal that does not come from DynamoDB, as the light store and the SDK name it.
  [
    /^(Unanswered|Syntax|Unknown)\S* [34]\d\d:/,
    LeaseServiceError,
    "LEASE_REQUEST_REJECTED",
    "gave an answer that is not DynamoDB's: check the endpoint and proxies",
  ],
];
