import { LeaseConfigurationError, type LeaseError, LeaseServiceError, LeaseTableError } from "../errors.ts";

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

/** What a call's attempts on the wire have shown. */
export interface Attempts {
  readonly count: number;
  /** The error of the last attempt that failed. */
  readonly lastError: unknown;
}

/**
 * Turns what the SDK threw into an error of ours.
 *
 * A call that was cut off while it waited to try again failed for the reason of its last attempt. Whatever the last
 * attempt says, an earlier one may have landed.
 */
export function toLeaseError(
  error: unknown,
  tableName: string,
  signal: AbortSignal,
  attempts: Attempts,
): LeaseError {
  const earlier = attempts.count > 1 ? ({ mayHaveLanded: true } as const) : {};
  if (!signal.aborted) return translate(error, tableName, { cause: error, ...earlier });
  const { lastError } = attempts;
  if (lastError !== undefined) return translate(lastError, tableName, { cause: lastError, ...earlier });
  const why = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
  return new LeaseServiceError("LEASE_NO_ANSWER", `DynamoDB's answer was not awaited any longer: ${why}`, {
    cause: error,
  });
}

function translate(
  error: unknown,
  tableName: string,
  options: { readonly cause: unknown; readonly mayHaveLanded?: true },
): LeaseError {
  const { name = "", message = String(error), $metadata } = error as SdkError;
  const status = $metadata?.httpStatusCode;
  const table = JSON.stringify(tableName);
  const saying = `(${name}: ${message})`;

  if (name === "ResourceNotFoundException") {
    const text = `the lease table ${table} does not exist in this account and region: deploy it, or call createLeaseTable()`;
    return new LeaseTableError("LEASE_TABLE_NOT_FOUND", tableName, text, options);
  }
  if (name === "ValidationException" && /\bkeys?\b|schema/i.test(message)) {
    const text = `the table ${table} is no lease table: its key has to be pk (S) and sk (S); DynamoDB says: ${message}`;
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
    const text = `DynamoDB refused access to the table ${table}: check credentials and grants; it says: ${message}`;
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
