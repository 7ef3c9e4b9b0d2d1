/**
 * The fate of an attempt to send a request: this file alone decides whether a write may have landed, for every
 * transport.
 */

/**
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
