import { InvalidOptionsError, LeaseError, LeaseServiceError, saying } from "./errors.ts";

/** The properties of an error that show where it comes from. */
interface Traits {
  readonly name?: unknown;
  /** Of Node's system and TLS errors. */
  readonly code?: unknown;
  readonly cause?: unknown;
  /** Of the SDK's errors. */
  readonly $fault?: unknown;
  readonly $response?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
}

/** Names of the SDK's errors without a reply. */
const sdkErrors = /^(Abort|Timeout|(Credentials|Token)?Provider)Error$/;

/** The most causes of an error that are followed. */
export const longestChain = 10;

/**
 * Tells whether an error is operational: an error of the service, of the network, of the SDK before it sends, an
 * abort, or an error of this package.
 *
 * Every other error is a mistake in the program, or in a store, clock or listener that was given to it. It would come
 * again with every repetition, so it must be seen. A request that this package refuses before it sends it is a
 * mistake too.
 */
export function isOperational(error: unknown, depth = 0): boolean {
  if (error instanceof LeaseError) return !(error instanceof InvalidOptionsError);
  if (typeof error !== "object" || error === null || depth > longestChain) return false;
  const { name, code, cause, $fault, $response, $metadata } = error as Traits;
  // A reply that cannot be read is a SyntaxError or TypeError of the SDK, which holds the reply.
  if (($fault ?? $response ?? $metadata?.httpStatusCode) !== undefined) return true;
  if (typeof name === "string" && sdkErrors.test(name)) return true;
  // Node gives codes to wrong arguments as well.
  const isSystem = typeof code === "string" && !(error instanceof TypeError || error instanceof RangeError);
  return isSystem || isOperational(cause, depth + 1);
}

const mistakes = [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError];

/**
 * Tells whether an error from the SDK is a mistake in the program: an error of the language or of a wrong argument,
 * without a reply or a connection.
 *
 * Less strict than {@link isOperational}: the user's own transport, credentials and middleware run inside the SDK,
 * and throw errors of any class when they fail for a while.
 */
export function isMistake(error: unknown): boolean {
  return mistakes.some((type) => error instanceof type) && !isOperational(error);
}

/** For a promise's `catch`: gives a value in place of an operational error, and throws every other error again. */
export function ifOperational<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isOperational(error)) return value;
    throw error;
  };
}

/** Whether an error comes from the service and may pass: the same call can succeed later. */
export function mayPass(error: unknown): error is LeaseServiceError {
  return error instanceof LeaseServiceError && error.retryable;
}

/** Returns an error of the service that may pass; throws every other one. */
export function passing(error: unknown): LeaseServiceError {
  if (mayPass(error)) return error;
  throw error;
}

/**
 * Makes a look that may fail, because the next look can replace it: returns undefined if the service's failure may
 * pass. Rejects with the reason of a signal that has aborted.
 */
export async function unlessPassing<T>(look: () => Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    signal?.throwIfAborted();
    passing(error);
    return undefined;
  }
}

/** Returns the thrown value as an error. A program can throw any value. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(saying(thrown), { cause: thrown });
}
