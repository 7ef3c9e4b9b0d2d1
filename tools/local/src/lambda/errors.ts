// The errors with which Lambda refuses a request, under the names of its API.

/**
 * A request that the service itself refuses. No function has run for it.
 *
 * `name` is the service's name of the error, to which Step Functions prefixes `Lambda.`.
 */
export class LambdaServiceError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The function's reserved concurrency is in use. */
export class TooManyRequestsException extends LambdaServiceError {
  readonly reason = "ReservedFunctionConcurrentInvocationLimitExceeded";

  constructor(functionName: string, limit: number) {
    super(`Rate Exceeded: ${functionName} runs at most ${limit} invocations at once (reservedConcurrency)`);
  }
}

/** There is no such function, or no such environment. */
export class ResourceNotFoundException extends LambdaServiceError {}

/** The runtime is closed, or is closing: nothing new is taken. */
export class RuntimeClosedError extends LambdaServiceError {
  constructor() {
    super("the runtime is closed: start another one");
  }
}
