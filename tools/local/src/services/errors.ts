// Errors of services, as their callers know them: by API, and as service integrations.

/** A service of this machine refuses a request, under the name that AWS's own API gives the error. */
export class ServiceError extends Error {
  readonly statusCode: number;

  constructor(name: string, message: string, statusCode = 400) {
    super(message);
    this.name = name;
    this.statusCode = statusCode;
  }
}

/** The error of a service integration as a state machine sees it: a name for Retry and Catch, and a cause. */
export class IntegrationError extends Error {
  readonly error: string;
  override readonly cause: string;

  constructor(error: string, cause: string) {
    super(`${error}: ${cause}`);
    this.name = new.target.name;
    this.error = error;
    this.cause = cause;
  }
}
