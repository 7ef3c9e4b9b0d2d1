/**
 * Turns the SDK's and the service's errors into errors of this package. A mistake in the program stays as it is: it is
 * no failure of the service, and every repetition would fail again.
 */

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { brandClass } from "../../base/brand.ts";
import {
  LeaseError,
  type LeaseErrorCode,
  type LeaseErrorProperties,
  LeaseItemError,
  LeaseServiceError,
  quoted,
  saying,
} from "../../base/errors.ts";
import { isMistake } from "../../base/operational.ts";
import type { DynamoDBSender } from "../../base/options.ts";
import type { UpdateRequest } from "../../base/store.ts";

/** The table does not exist, or its key is not the lease table's. */
export class LeaseTableError extends LeaseError {
  static {
    brandClass(LeaseTableError, "LeaseTableError");
  }
  declare readonly code: "LEASE_TABLE_NOT_FOUND" | "LEASE_TABLE_MISMATCH";
  declare readonly tableName: string;
}

/** The client lacks what it needs to reach the table: a region, credentials, a permission. */
export class LeaseConfigurationError extends LeaseError {
  static {
    brandClass(LeaseConfigurationError, "LeaseConfigurationError");
  }
  declare readonly code: "LEASE_REGION_MISSING" | "LEASE_CREDENTIALS_MISSING" | "LEASE_ACCESS_DENIED";
}

/** The parts by which the SDK's errors are distinguished. */
interface SdkError {
  readonly name?: string | undefined;
  readonly message?: string | undefined;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

/** The message of a cancelled transaction lists its reasons: a ValidationError would come again. */
const conflictErrors = /^(Transaction(?!.*Validation)|ReplicatedWriteConflict)/;

/** Whether an error says that the service has too many requests at the moment. */
export function isThrottling(error: unknown): boolean {
  return failureOf(error, "", {}).code === "LEASE_THROTTLED";
}

/**
 * Whether a write has met another write of the same item: a transaction, its own repetition, or another region's write.
 *
 * A transaction that was cancelled for a condition, or for what it would write, is no conflict: it would be refused
 * again.
 */
export function isConflict(error: unknown): boolean {
  const { CancellationReasons: reasons } = error as SdkError;
  if (reasons?.some(({ Code }) => Code === "ConditionalCheckFailed")) return false;
  return conflictErrors.test(String(error));
}

/** Whether an error's code says that the service, or a policy, does not accept writes in batches. */
export function isBatchRefusal(code: string | undefined): boolean {
  return /^(AccessDenied|UnknownOperation|Validation)/.test(String(code));
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
  const { mayHaveLanded, lastError } = attempts;
  if (error instanceof LeaseConfigurationError && mayHaveLanded) {
    // Not marked itself: all calls that wait for the same credentials get the same error.
    return new LeaseConfigurationError(error.code, error.message, { cause: error, mayHaveLanded });
  }
  if (error instanceof LeaseError || isMistake(error)) return error;
  const last = (signal.aborted ? lastError : error) as SdkError | undefined;
  // The SDK reports an aborted request as a failed one.
  const isSilent = last === undefined || (signal.aborted && last.name === "AbortError");
  const said = isSilent ? { name: "TimeoutError", message: saying(signal.reason) } : last;
  const location = said.$metadata?.httpStatusCode === undefined ? "" : await locationOf(dynamodb);
  const cause = isSilent ? error : last;
  return failureOf(said, `the table ${quoted(tableName)}${location}`, { cause, tableName, mayHaveLanded });
}

/**
 * Returns an error that names the item if DynamoDB refused to count up an attribute that is no number; undefined for
 * every other error.
 */
export function toItemError(error: unknown, { key, update }: UpdateRequest): LeaseItemError | undefined {
  const { name, message = "" } = error as SdkError;
  if (name !== "ValidationException" || !/incorrect data type/i.test(message)) return undefined;
  // The operand before the sign: `#fence = if_not_exists(#fence, :from) + :one`.
  const operands = update.matchAll(/#(\w+)(, :\w+\))? [+-] /g);
  const counted = new Set(Array.from(operands, ([, attribute]) => attribute));
  const address = { key: key.pk, sortKey: key.sk };
  return new LeaseItemError(address, [...counted].join(" or "), "is not a number", "a number (N)");
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

/** Creates an error of this package. Its message is the code in words, after the table. */
function failureOf(said: unknown, table: string, properties: LeaseErrorProperties): LeaseError {
  const { name = "", message = String(said), $metadata } = said as SdkError;
  const sign = `${name} ${$metadata?.httpStatusCode ?? 0}: ${message}`;
  const [, type, code] = failures.find(([pattern]) => pattern.test(sign)) as Failure;
  const finding = code.replace("LEASE_", "").replaceAll("_", " ").toLowerCase();
  return new type(code as never, `${table}: ${finding} (${name}: ${message})`, properties);
}

/** A kind of failure: its sign, its class and its code. */
type Failure = readonly [
  /** Matches an error's name, status (0 without an answer) and message, as `ThrottlingException 400: slow down`. */
  sign: RegExp,
  type: new (code: never, message: string, properties: LeaseErrorProperties) => LeaseError,
  code: LeaseErrorCode,
];

/** The first match counts. The statements of a batch name errors without "Exception", or with "Error". */
const failures: readonly Failure[] = [
  [/^ResourceNotFound/, LeaseTableError, "LEASE_TABLE_NOT_FOUND"],
  [/^Validation.*(\bkeys?\b|schema)/is, LeaseTableError, "LEASE_TABLE_MISMATCH"],
  [/^CredentialsProvider/, LeaseConfigurationError, "LEASE_CREDENTIALS_MISSING"],
  [/region (is missing|not accepted)/i, LeaseConfigurationError, "LEASE_REGION_MISSING"],
  [
    /^(AccessDenied|ExpiredToken|(Incomplete|Invalid)Signature|MissingAuthenticationToken|UnrecognizedClient)/,
    LeaseConfigurationError,
    "LEASE_ACCESS_DENIED",
  ],
  [
    /^(ProvisionedThroughput|RequestLimit|Thrott|TooManyRequests)|^\S* 429/,
    LeaseServiceError,
    "LEASE_THROTTLED",
  ],
  [conflictErrors, LeaseServiceError, "LEASE_CONFLICT"],
  [/^InternalServerError|^\S* 5/, LeaseServiceError, "LEASE_SERVICE_FAILED"],
  // No answer, or an unreadable success: a write may have landed.
  [/^TimeoutError|^\S* [02]/, LeaseServiceError, "LEASE_NO_ANSWER"],
  [/^/, LeaseServiceError, "LEASE_REQUEST_REJECTED"],
];

/**
 * The fate of an attempt to send a request. For every transport, this file alone decides whether a write may have
 * landed.
 *
 * - `notSent`: no byte of the request has left, because there was no connection.
 * - `answered`: the service, or something before it, has refused it. Nothing was written.
 * - `sent`: it has left, and no answer shows its result.
 */
export type AttemptFate = "notSent" | "answered" | "sent";

/** The parts of an error that show whether a request has left. */
interface AttemptError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly syscall?: unknown;
  /** The error of each address, if there are several. */
  readonly errors?: readonly unknown[];
  readonly $metadata?: { readonly httpStatusCode?: number };
  /** Set by a transport that knows whether it has sent the request. */
  readonly $wasSent?: boolean;
}

/**
 * The system call, the code and the message of an error without a connection that was good for a request: no name, no
 * route, no listening port, a certificate that is not trusted, a handshake that failed. An established connection, too,
 * can end with EHOSTUNREACH and the like, so those count only for `connect`.
 */
const unconnected =
  /^(connect|getaddrinfo) |^\S+ (E(CONNREFUSED|NOTFOUND|AI_AGAIN) |CERT_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH|ERR_TLS_)|before secure TLS connection was established|(did not establish|without establishing) a connection|SSL routines:[^:]*:.*(wrong version number|packet length too long|http request|(unsupported|unknown) protocol|no protocols available|handshake failure|alert protocol version)/;

/** Returns the fate of a failed attempt. An unclear fate counts as sent. */
export function fateOf(error: unknown): AttemptFate {
  const { $metadata, $wasSent } = Object(error) as AttemptError;
  const status = $metadata?.httpStatusCode;
  // After an unreadable success, or a failure of the service, a write may have landed.
  if (status !== undefined) return status >= 300 && status < 500 ? "answered" : "sent";
  return ($wasSent ?? !isUnconnected(error)) ? "sent" : "notSent";
}

function isUnconnected(error: unknown): boolean {
  const { code, message, syscall, errors } = Object(error) as AttemptError;
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isUnconnected);
  return unconnected.test(`${syscall} ${code} ${message}`);
}

/**
 * Describes the region and the endpoint of a client, for the end of a message's subject. Call it only after an answer:
 * then the client has looked up both.
 */
export async function locationOf(dynamodb: DynamoDBSender): Promise<string> {
  try {
    const { region, endpoint } = (dynamodb as DynamoDBClient).config;
    const { protocol, hostname, port } = (await endpoint?.()) ?? {};
    const address = protocol ? ` at ${protocol}//${hostname}${port ? `:${port}` : ""}` : "";
    return ` in the region ${await region()}${address}`;
  } catch {
    // Ignored: the message has its reason already, and a test double may have no settings.
    return "";
  }
}
