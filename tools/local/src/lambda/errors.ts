// The errors with which Lambda refuses a request, under the names of its API, to which Step Functions prefixes `Lambda.`.

/** The function's reserved concurrency is in use. */
export class TooManyRequestsException extends Error {
  override readonly name = "TooManyRequestsException";

  constructor(functionName: string, limit: number) {
    super(`Rate Exceeded: ${functionName} runs at most ${limit} invocations at once (reservedConcurrency)`);
  }
}

/** There is no such function, or no such environment. */
export class ResourceNotFoundException extends Error {
  override readonly name = "ResourceNotFoundException";
}

/** The runtime is closed, or is closing: nothing new is taken. */
export class RuntimeClosedError extends Error {
  override readonly name = "RuntimeClosedError";

  constructor() {
    super("the runtime is closed: start another one");
  }
}
