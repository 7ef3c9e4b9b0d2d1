/** Something that keeps a deployment from being checked, and what to do about it. Not a check that failed. */
export class AcceptanceProblem extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AcceptanceProblem";
    this.code = code;
  }
}

/** What ends all checks, by the names and codes of errors, on which the services do not agree; and what to do about it. */
const problems: readonly (readonly [code: string, ofErrors: readonly string[], text: string])[] = [
  [
    "NO_CREDENTIALS",
    ["CredentialsProviderError", "TokenProviderError"],
    "There are no AWS credentials: sign in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID.",
  ],
  [
    "CREDENTIALS_EXPIRED",
    ["ExpiredToken", "ExpiredTokenException", "RequestExpired"],
    "The AWS credentials have expired: sign in again.",
  ],
  [
    "CREDENTIALS_REFUSED",
    [
      ...["UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "IncompleteSignature"],
      ...["InvalidSignatureException", "SignatureDoesNotMatch"],
      ...["MissingAuthenticationToken", "MissingAuthenticationTokenException"],
    ],
    "AWS refuses the credentials: look at AWS_PROFILE and AWS_ACCESS_KEY_ID, and at this machine's clock.",
  ],
  [
    "ACCESS_DENIED",
    ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"],
    "The credentials lack a permission: docs/deploy.md lists those that acceptance needs.",
  ],
  [
    "UNREACHABLE",
    ["ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "EAI_AGAIN", "ETIMEDOUT", "EHOSTUNREACH"],
    "AWS does not answer: look at the network, and at AWS_REGION.",
  ],
];

/**
 * Gives the problem that an error of the SDK stands for; undefined for any other error.
 *
 * @param doing such as `reading the stack Leasehold`
 */
export function problemOf(error: unknown, doing: string): AcceptanceProblem | undefined {
  if (error instanceof AcceptanceProblem) return error;
  if (!(error instanceof Error)) return undefined;
  const { name, message, code, cause } = error as Error & { readonly code?: unknown };
  const found = problems.find(([, ofErrors]) => ofErrors.includes(name) || ofErrors.includes(String(code)));
  // The lease client says in its own words what the SDK has said.
  if (found === undefined) return problemOf(cause, doing);
  const [problem, , text] = found;
  return new AcceptanceProblem(problem, `${text}\n${doing}: ${name}: ${message}`, { cause: error });
}
