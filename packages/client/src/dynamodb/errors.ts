/**
 * Turns what the SDK and the service say of a request that failed into errors of this package. A mistake in the program
 * stays as it is: it is no failure of the service's, and would come again with every repetition.
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

/** The parts of the SDK's errors that tell them apart. */
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

/** Tells whether an error says that the service has too many requests at the moment. */
export function isThrottling(error: unknown): boolean {
  return throttling.test(signOf(error));
}

/**
 * Tells whether a write met another on the same item: a transaction, its own repetition, or another region's write.
 *
 * A transaction that was cancelled for a condition is no conflict: it would be refused again.
 */
export function isConflict(error: unknown): boolean {
  const { name = "", CancellationReasons: reasons } = error as SdkError;
  return conflictErrors.test(name) && !reasons?.some(({ Code }) => Code === "ConditionalCheckFailed");
}

/** Tells whether an error's code says that the service, or a policy, does not take writes in batches. */
export function isBatchRefusal(code: string | undefined): boolean {
  return batchRefusals.test(code ?? "");
}

/** The table that was asked, and through which client. */
export interface AskedTable {
  readonly tableName: string;
  readonly dynamodb: DynamoDBSender;
}

/** What a call's attempts on the wire have shown; by default there was one, which met that error. */
export interface Attempts {
  /** Whether one of them may have landed, or may still land. */
  readonly mayHaveLanded: boolean;
  /** The error of the last attempt that failed. */
  readonly lastError: unknown;
}

/**
 * Gives what a call is to reject with: an error of ours; one that is ours already, or a mistake in the program, as it is.
 *
 * A call that was cut off while it waited to try again failed for the reason of its last attempt. Whether it may have
 * landed is what all of its attempts say.
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
  // The SDK tells of a request that was cut off as of one that has failed.
  if (cause === undefined || (signal.aborted && (cause as SdkError).name === "AbortError")) {
    const text = `the table ${quoted(tableName)} ${silence} (${saying(signal.reason)})`;
    return new LeaseServiceError("LEASE_NO_ANSWER", text, { cause: error, tableName, mayHaveLanded });
  }
  const hasAnswer = (cause as SdkError).$metadata?.httpStatusCode !== undefined;
  const location = hasAnswer ? ` ${await locationOf(dynamodb)}` : "";
  return failureOf(cause, `the table ${quoted(tableName)}${location}`, { cause, tableName, mayHaveLanded });
}

/**
 * Turns what DynamoDB said of a write that counts up something that is no number into an error that names the item;
 * undefined for every other error.
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
 * Turns what a batch says of one statement into the error of its write; undefined where a write of its own says more,
 * or can succeed at once.
 */
export function statementError(
  error: { readonly Code?: string | undefined; readonly Message?: string | undefined } | undefined,
  tableName: string,
): LeaseError | undefined {
  const said = { name: error?.Code, message: error?.Message };
  const failure = failureOf(said, `the table ${quoted(tableName)}`, {});
  return failure.code === "LEASE_THROTTLED" || failure.code === "LEASE_SERVICE_FAILED" ? failure : undefined;
}

/** Makes an error of ours; `table` is what its message begins with. */
function failureOf(said: unknown, table: string, properties: LeaseErrorProperties): LeaseError {
  const { name = "", message = String(said) } = said as SdkError;
  const sign = signOf(said);
  const [, type, code, finding] = failures.find(([pattern]) => pattern.test(sign)) ?? rejection;
  return new type(code as never, `${table} ${finding} (${name}: ${message})`, properties);
}

/** An error's name, status and message, by which the ways to fail are told apart. */
function signOf(said: unknown): string {
  const { name = "", message = String(said), $metadata } = said as SdkError;
  return `${name} ${$metadata?.httpStatusCode ?? 0}: ${message}`;
}

/** A way to fail: its sign, class and code, what the table did or what is wrong with it, and what to do. */
type Failure = readonly [
  /** Matches an error's name, status (0 without an answer) and message, as `ThrottlingException 400: slow down`. */
  sign: RegExp,
  type: new (code: never, message: string, properties: LeaseErrorProperties) => LeaseError,
  code: LeaseErrorCode,
  finding: string,
];

const silence = "gave no answer: check the endpoint and the network, or try again later";

const rejection: Failure = [/./, LeaseServiceError, "LEASE_REQUEST_REJECTED", "rejected the request"];

/** The first that fits counts. The statements of a batch name errors without "Exception", or with "Error". */
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
  // A success that cannot be read: a write may have landed behind it.
  [
    /^\S* 2\d\d:/,
    LeaseServiceError,
    "LEASE_NO_ANSWER",
    "gave an answer that cannot be read: check the endpoint and proxies, or try again later",
  ],
  // A refusal that is no error of DynamoDB's, as the light store and the SDK name it.
  [
    /^(Unanswered|Syntax|Unknown)\S* [34]\d\d:/,
    LeaseServiceError,
    "LEASE_REQUEST_REJECTED",
    "gave an answer that is not DynamoDB's: check the endpoint and proxies",
  ],
];
