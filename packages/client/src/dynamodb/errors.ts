import {
  LeaseConfigurationError,
  type LeaseError,
  LeaseItemError,
  LeaseServiceError,
  LeaseTableError,
} from "../errors/errors.ts";
import { isMistake } from "../errors/operational.ts";
import type { DynamoDBSender } from "../options/options.ts";
import type { UpdateRequest } from "../store.ts";
import { locationOf } from "./location.ts";

/** The parts of the SDK's errors that tell them apart. */
interface SdkError {
  readonly name?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

const throttlingErrors = new Set([
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "ThrottlingException",
  "ThrottledException",
  "TooManyRequestsException",
]);
const conflictErrors = new Set([
  "TransactionConflictException",
  "TransactionCanceledException",
  "TransactionInProgressException",
  "ReplicatedWriteConflictException",
]);

/** Tells whether an error's name says that the service has too many requests at the moment. */
export function isThrottling(name: string | undefined): boolean {
  return throttlingErrors.has(name ?? "");
}

/**
 * Tells whether a write met another on the same item: a transaction, its own repetition, or another region's write.
 *
 * A transaction that was cancelled for a condition is no conflict: it would be refused again.
 */
export function isConflict(error: unknown): boolean {
  const { name, CancellationReasons: reasons } = error as SdkError;
  return conflictErrors.has(name ?? "") && !reasons?.some(({ Code }) => Code === "ConditionalCheckFailed");
}

const accessErrors = new Set([
  "AccessDeniedException",
  "ExpiredTokenException",
  "IncompleteSignatureException",
  "InvalidSignatureException",
  "MissingAuthenticationTokenException",
  "UnrecognizedClientException",
]);

/** The table that was asked, and through which client. */
export interface AskedTable {
  readonly tableName: string;
  readonly dynamodb: DynamoDBSender;
}

/** What a call's attempts on the wire have shown. */
export interface Attempts {
  readonly count: number;
  /** The error of the last attempt that failed. */
  readonly lastError: unknown;
}

/**
 * Gives what a call to the SDK is to reject with: an error of ours, but a mistake in the program as it is. That is no
 * failure of the service's, and would come again with every repetition.
 */
export async function rejectionFor(
  error: unknown,
  asked: AskedTable,
  signal: AbortSignal,
  attempts: Attempts,
): Promise<unknown> {
  return isMistake(error) ? error : await toLeaseError(error, asked, signal, attempts);
}

/**
 * Turns what the SDK threw into an error of ours.
 *
 * A call that was cut off while it waited to try again failed for the reason of its last attempt. Whatever the last
 * attempt says, an earlier one may have landed.
 */
export async function toLeaseError(
  error: unknown,
  { tableName, dynamodb }: AskedTable,
  signal: AbortSignal,
  attempts: Attempts,
): Promise<LeaseError> {
  const earlier = attempts.count > 1 ? ({ mayHaveLanded: true } as const) : {};
  const lastError = signal.aborted ? attempts.lastError : error;
  if (lastError !== undefined) {
    const location = isAboutTable(lastError) ? await locationOf(dynamodb) : "";
    return translate(lastError, tableName, location, { cause: lastError, ...earlier });
  }
  const why = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
  return new LeaseServiceError("LEASE_NO_ANSWER", `DynamoDB's answer was not awaited any longer: ${why}`, {
    cause: error,
  });
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
  const finding = "is not a number";
  return new LeaseItemError({ key: key.pk, sortKey: key.sk }, counted.join(" or "), finding, "a number (N)");
}

/** Tells whether an answer says that this is the wrong table, or the wrong place to look for it. */
function isAboutTable(error: unknown): boolean {
  const { name = "", message = "" } = error as SdkError;
  return name === "ResourceNotFoundException" || isAboutKey(name, message) || accessErrors.has(name);
}

function isAboutKey(name: string, message: string): boolean {
  return name === "ValidationException" && /\bkeys?\b|schema/i.test(message);
}

function translate(
  error: unknown,
  tableName: string,
  location: string,
  options: { readonly cause: unknown; readonly mayHaveLanded?: true },
): LeaseError {
  const { name = "", message = String(error), $metadata } = error as SdkError;
  const status = $metadata?.httpStatusCode;
  const table = JSON.stringify(tableName);
  const saying = `(${name}: ${message})`;

  if (name === "ResourceNotFoundException") {
    const text = `the lease table ${table} does not exist in this account ${location}: check the region and the account, deploy the table, or call createLeaseTable()`;
    return new LeaseTableError("LEASE_TABLE_NOT_FOUND", tableName, text, options);
  }
  if (isAboutKey(name, message)) {
    const text = `the table ${table} ${location} is no lease table: its key has to be pk (S) and sk (S); DynamoDB says: ${message}`;
    return new LeaseTableError("LEASE_TABLE_MISMATCH", tableName, text, options);
  }
  if (name === "CredentialsProviderError") {
    const text = `no AWS credentials: set them in the environment or a profile, or pass dynamodb; the SDK says: ${message}`;
    return new LeaseConfigurationError("LEASE_CREDENTIALS_MISSING", text, options);
  }
  if (/region is missing|region not accepted/i.test(message)) {
    const text = `no AWS region: set AWS_REGION, or pass dynamodb with a region; the SDK says: ${message}`;
    return new LeaseConfigurationError("LEASE_REGION_MISSING", text, options);
  }
  if (accessErrors.has(name)) {
    const text = `DynamoDB refused access to the table ${table} ${location}: check credentials and grants; it says: ${message}`;
    return new LeaseConfigurationError("LEASE_ACCESS_DENIED", text, options);
  }
  if (throttlingErrors.has(name) || status === 429) {
    const text = `DynamoDB throttled the request to ${table} until its time was over; try again later ${saying}`;
    return new LeaseServiceError("LEASE_THROTTLED", text, options);
  }
  if (isConflict(error)) {
    const text = `another write of the same item in ${table} was under way each time; try again later ${saying}`;
    return new LeaseServiceError("LEASE_CONFLICT", text, options);
  }
  if (status !== undefined && status >= 500) {
    const text = `DynamoDB failed to serve the request to ${table}; try again later (${status} ${name}: ${message})`;
    return new LeaseServiceError("LEASE_SERVICE_FAILED", text, options);
  }
  if (status === undefined || name === "TimeoutError") {
    const text = `no answer from DynamoDB for ${table}; try again later ${saying}`;
    return new LeaseServiceError("LEASE_NO_ANSWER", text, options);
  }
  const text = `DynamoDB rejected the request to ${table} ${saying}`;
  return new LeaseServiceError("LEASE_REQUEST_REJECTED", text, options);
}

/** Tells whether an error's code says that the service, or a policy, does not take writes in batches. */
export function isBatchRefusal(code: string | undefined): boolean {
  return batchRefusals.has(code ?? "");
}

const batchRefusals = new Set([
  "AccessDenied",
  "AccessDeniedException",
  "UnknownOperationException",
  "ValidationError",
  "ValidationException",
]);

/**
 * Turns what a batch says of one statement into the error of its write; undefined where a write of its own says more,
 * or can succeed at once.
 */
export function statementError(
  error: { readonly Code?: string | undefined; readonly Message?: string | undefined } | undefined,
  tableName: string,
): LeaseError | undefined {
  const { Code: code = "", Message: message = "" } = error ?? {};
  const table = JSON.stringify(tableName);
  if (throttledStatements.has(code)) {
    const text = `DynamoDB throttled a write to ${table} in a batch; try again later (${code}: ${message})`;
    return new LeaseServiceError("LEASE_THROTTLED", text);
  }
  if (code === "InternalServerError") {
    const text = `DynamoDB failed to serve a write to ${table} in a batch; try again later (${code}: ${message})`;
    return new LeaseServiceError("LEASE_SERVICE_FAILED", text);
  }
  return undefined;
}

/** As the statements of a batch spell them: some differ from the names of the service's errors. */
const throttledStatements = new Set([
  "ProvisionedThroughputExceeded",
  "RequestLimitExceeded",
  "ThrottlingError",
]);
