/**
 * What becomes of an attempt to send a request: the one place that decides whether a write may have landed, for every
 * transport.
 */

/**
 * - `notSent`: no byte of the request has left: no connection came about.
 * - `answered`: the service, or something before it, has refused it. Nothing was written.
 * - `sent`: it has left, and nobody has said what became of it.
 */
export type AttemptFate = "notSent" | "answered" | "sent";

/** The parts of an error that tell whether a request has left. */
interface AttemptError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly syscall?: unknown;
  /** Of several addresses, each one's. */
  readonly errors?: readonly unknown[];
  readonly $metadata?: { readonly httpStatusCode?: number };
  /** Set by a transport that knows. */
  readonly $wasSent?: boolean;
}

/** No name, no route, no port that listens. */
const noConnection =
  /^E(CONNREFUSED|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|HOSTDOWN|NETDOWN|ADDRNOTAVAIL)$/;
/** A certificate that is not trusted: then the connection ends before the request is written. */
const noTrust =
  /^(CERT_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH|ERR_TLS_)/;
/** What Node, OpenSSL and the SDK say of a connection, or of a handshake, that did not come about. */
const noHandshake =
  /before secure TLS connection was established|(did not establish|without establishing) a connection|SSL routines:[^:]*:.*(wrong version number|packet length too long|http request|(unsupported|unknown) protocol|no protocols available|handshake failure|alert protocol version)/;

/** Tells what has become of an attempt that failed. What cannot be told counts as sent. */
export function fateOf(error: unknown): AttemptFate {
  const { $metadata, $wasSent } = Object(error) as AttemptError;
  const status = $metadata?.httpStatusCode;
  // Behind a success that cannot be read, and behind a failure of the service, a write may have landed.
  if (status !== undefined) return status >= 300 && status < 500 ? "answered" : "sent";
  if ($wasSent !== undefined) return $wasSent ? "sent" : "notSent";
  return isUnconnected(error) ? "notSent" : "sent";
}

function isUnconnected(error: unknown): boolean {
  const { code, message, syscall, errors } = Object(error) as AttemptError;
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isUnconnected);
  const sign = String(code);
  return (
    syscall === "connect" ||
    syscall === "getaddrinfo" ||
    noConnection.test(sign) ||
    noTrust.test(sign) ||
    noHandshake.test(String(message))
  );
}
