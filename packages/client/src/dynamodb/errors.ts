import { LeaseConfigurationError, type LeaseError, LeaseServiceError, LeaseTableError } from "../errors.ts";

/** The parts of the SDK's errors that tell them apart. */
interface SdkError {
  readonly name?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

const throttlingErrors = new Set([
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "ThrottlingException",
  "ThrottledException",
  "TooManyRequestsException",
]);
const accessErrors = new Set([
  "AccessDeniedException",
  "ExpiredTokenException",
  "IncompleteSignatureException",
  "InvalidSignatureException",
  "MissingAuthenticationTokenException",
  "UnrecognizedClientException",
]);

/**
 * Turns what the SDK threw into an error of ours.
 *
 * `last` is the error of the last attempt that was answered: a call that was cut off while it waited to try again
 * failed for that reason.
 */
export function toLeaseError(
  error: unknown,
  tableName: string,
  signal: AbortSignal,
  last: unknown,
): LeaseError {
  if (!signal.aborted) return translate(error, tableName);
  if (last !== undefined) return translate(last, tableName);
  const why = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
  return new LeaseServiceError("LEASE_NO_ANSWER", `DynamoDB's answer was not awaited any longer: ${why}`, {
    cause: error,
  });
}

function translate(error: unknown, tableName: string): LeaseError {
  const { name = "", message = String(error), $metadata } = error as SdkError;
  const status = $metadata?.httpStatusCode;
  const options = { cause: error };
  const table = JSON.stringify(tableName);

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
    const text = `DynamoDB throttled the request to ${table} until its time was over; try again later (${name}: ${message})`;
    return new LeaseServiceError("LEASE_THROTTLED", text, options);
  }
  if (status !== undefined && status >= 500) {
    const text = `DynamoDB failed to serve the request to ${table}; try again later (${status} ${name}: ${message})`;
    return new LeaseServiceError("LEASE_SERVICE_FAILED", text, options);
  }
  if (status === undefined || name === "TimeoutError") {
    const text = `no answer from DynamoDB for ${table}; try again later (${name}: ${message})`;
    return new LeaseServiceError("LEASE_NO_ANSWER", text, options);
  }
  const text = `DynamoDB rejected the request to ${table} (${name}: ${message})`;
  return new LeaseServiceError("LEASE_REQUEST_REJECTED", text, options);
}
