/** Something that keeps a deployment from being checked, and what to do about it. Not a check that failed. */
export class AcceptanceProblem extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AcceptanceProblem";
    this.code = code;
  }
}

interface SdkError extends Error {
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** What AWS calls a credential that it does not accept; the services do not agree on one name. */
const refused: ReadonlySet<string> = new Set([
  "UnrecognizedClientException",
  "InvalidClientTokenId",
  "InvalidAccessKeyId",
  "IncompleteSignature",
  "InvalidSignatureException",
  "SignatureDoesNotMatch",
  "MissingAuthenticationToken",
  "MissingAuthenticationTokenException",
]);
const expired: ReadonlySet<string> = new Set(["ExpiredToken", "ExpiredTokenException", "RequestExpired"]);
const denied: ReadonlySet<string> = new Set([
  "AccessDenied",
  "AccessDeniedException",
  "UnauthorizedOperation",
]);
const unreachable: ReadonlySet<unknown> = new Set([
  "ENOTFOUND",
  "ECONNREFUSED",
  "ECONNRESET",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "EHOSTUNREACH",
]);

/**
 * Gives the problem that an error of the SDK stands for; undefined for any other error.
 *
 * @param doing such as `reading the stack Leasehold`
 */
export function problemOf(error: unknown, doing: string): AcceptanceProblem | undefined {
  if (error instanceof AcceptanceProblem) return error;
  if (!(error instanceof Error)) return undefined;
  const { name, message, code, cause } = error as SdkError;
  const problem = (problemCode: string, text: string): AcceptanceProblem =>
    new AcceptanceProblem(problemCode, `${text}\n${doing}: ${name}: ${message}`, { cause: error });
  if (name === "CredentialsProviderError" || name === "TokenProviderError") {
    return problem(
      "NO_CREDENTIALS",
      "There are no AWS credentials: sign in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID.",
    );
  }
  if (expired.has(name)) {
    return problem("CREDENTIALS_EXPIRED", "The AWS credentials have expired: sign in again.");
  }
  if (refused.has(name)) {
    return problem(
      "CREDENTIALS_REFUSED",
      "AWS refuses the credentials: look at AWS_PROFILE and AWS_ACCESS_KEY_ID, and at this machine's clock.",
    );
  }
  if (denied.has(name)) {
    return problem(
      "ACCESS_DENIED",
      "The credentials lack a permission: docs/deploy.md lists those that acceptance needs.",
    );
  }
  if (unreachable.has(code)) {
    return problem("UNREACHABLE", "AWS does not answer: look at the network, and at AWS_REGION.");
  }
  // The lease client says in its own words what the SDK has said.
  return problemOf(cause, doing);
}
